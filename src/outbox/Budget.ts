/**
 * The bot account's own pace, over all its chats. A chat asks its connection only while the platform
 * has lately told it to slow down, so that nothing is asked on the way of an ordinary reply.
 *
 * A limit's `retryAfterMs` is not passed on: most platforms do not say whether it is the chat's or the
 * account's, and one busy group must not silence all others.
 *
 * @module
 */
import type { Core } from "../objects/Core.ts";
import { scopeOf } from "../objects/names.ts";
import type { BudgetGrant, BudgetRequest } from "../objects/RateBudget.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";

/** How long after a rate limit a chat asks, in ms. */
const HOT_MS = 60_000;
/** How long the connection may take, in ms. Without an answer the call goes: the platform has the last word. */
const ANSWER_MS = 2_000;
/** Calls asked for at a time. */
const BLOCK = 5;

/** The share of one chat in its bot's budget. */
export class Budget {
  readonly #core: Core;
  #hotUntil = 0;
  #left = 0;
  #nextAt = 0;
  #everyMs = 0;

  constructor(core: Core) {
    this.#core = core;
  }

  /** The platform said that it was too fast. */
  limited(): void {
    this.#hotUntil = this.#core.now() + HOT_MS;
  }

  /** Whether the platform has lately said so. */
  get hot(): boolean {
    return this.#core.now() < this.#hotUntil;
  }

  /** When the next call may be made: epoch ms. `take` spends it, once the call is really made. */
  async slot(): Promise<number> {
    if (!this.hot || this.#core.channel().capabilities.pacing?.perBot === undefined)
      return this.#core.now();
    if (this.#left === 0) await this.#ask();
    return Math.max(this.#nextAt, this.#core.now());
  }

  /** A call is made. */
  take(): void {
    if (this.#left === 0) return;
    this.#left -= 1;
    this.#nextAt = Math.max(this.#nextAt, this.#core.now()) + this.#everyMs;
  }

  async #ask(): Promise<void> {
    const { host, name } = this.#core;
    const request: BudgetRequest = { want: BLOCK };
    try {
      const payload = JSON.stringify(request);
      const asked = host.actors.call("Connection", scopeOf(name), "budget", payload);
      const answer = await withDeadline(host.clock, ANSWER_MS, asked);
      if (answer === TIMED_OUT) throw new Error("the connection did not answer");
      const grant = JSON.parse(answer) as BudgetGrant;
      this.#left = grant.granted;
      this.#nextAt = grant.notBefore;
      this.#everyMs = grant.everyMs;
    } catch (error) {
      host.rethrowIfHalted(error);
      host.log.debug("the connection's budget could not be asked", { error: String(error) });
      this.#left = 1;
      this.#nextAt = 0;
    }
  }
}
