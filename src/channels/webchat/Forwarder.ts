/**
 * Hands a session's messages to the bot: in order, one call at a time, and again until the bot's journal
 * has them. A repeat is harmless, since the page's id is the delivery key.
 *
 * @module
 */
import type { Host } from "../../host/Host.ts";
import { connectionOf } from "../../objects/names.ts";
import { backoffMs } from "../../time/backoff.ts";
import { chatOf, itemOf } from "./inbound.ts";
import type { RoomStore } from "./RoomStore.ts";
import type { UserRow } from "./rows.ts";

/** Messages handed over in one call. */
const SLICE = 20;
/** Between attempts that no page asked for. */
const BACKOFF = { baseMs: 2_000, capMs: 15 * 60_000 };

/** Messages that may wait for the bot; more are refused until it is back. */
export const MAX_OPEN = 200;
/** How long a page is asked to wait before it sends a message again, in ms, at the least. */
export const RETRY_MS = 2_000;

/** Told of what became of messages. */
export interface ForwardListener {
  /** The bot's journal has it. */
  accepted(row: UserRow): void;
  /** Not yet. */
  refused(row: UserRow, afterMs: number): void;
}

/** Forwards what is open. */
export class Forwarder {
  readonly #host: Host;
  readonly #name: string;
  readonly #store: RoomStore;
  readonly #listener: ForwardListener;
  #running = false;
  #run: Promise<void> = Promise.resolve();

  constructor(host: Host, name: string, store: RoomStore, listener: ForwardListener) {
    this.#host = host;
    this.#name = name;
    this.#store = store;
    this.#listener = listener;
  }

  /** Resolves when nothing is open any more, or an attempt failed. Never throws. */
  flush(): Promise<void> {
    if (!this.#running) {
      this.#running = true;
      this.#run = this.#forwardAll();
    }
    return this.#run;
  }

  async #forwardAll(): Promise<void> {
    const { log } = this.#store;
    try {
      for (;;) {
        const rows = log.open(SLICE);
        if (rows.length === 0) break;
        const waitMs = await this.#forward(rows);
        if (waitMs !== undefined) {
          this.#postpone(waitMs);
          break;
        }
        this.#store.commit("webchat.forwarded", () => {
          log.close(rows);
          this.#store.clearRetry();
        });
        for (const row of rows) this.#listener.accepted(row);
      }
    } catch (error) {
      this.#host.rethrowIfHalted(error);
      // The rows are still open, and the page still has what it sent.
      this.#host.log.error("the log of a web chat failed", { error: String(error) });
    } finally {
      // No await since the last look at the rows: whoever adds one now starts a new run.
      this.#running = false;
    }
  }

  /** One call to the chat's actor. Resolves to nothing when it committed, else to how long to wait. */
  async #forward(rows: readonly UserRow[]): Promise<number | undefined> {
    try {
      const at = { connection: connectionOf(this.#name), session: sessionOf(this.#name) };
      const request = JSON.stringify({
        connection: at.connection,
        channel: "webchat",
        chat: chatOf(at.session),
        items: rows.map((row) => itemOf(row, at)),
      });
      this.#host.probe("webchat.forward", "before");
      const text = await this.#host.actors.call("ChatActor", this.#name, "receive", request);
      this.#host.probe("webchat.forward", "after");
      const answer = JSON.parse(text) as { ok?: unknown; retryAfterSeconds?: unknown };
      if (answer.ok === true) return undefined;
      const seconds = Number(answer.retryAfterSeconds);
      return Number.isFinite(seconds) ? seconds * 1_000 : 0;
    } catch (error) {
      this.#host.rethrowIfHalted(error);
      this.#host.log.warn("the bot did not take a message yet", { error: String(error) });
      return 0;
    }
  }

  /** Notes when to try without a page, since the one that sent may not come back. */
  #postpone(atLeastMs: number): void {
    const tries = this.#store.retry().n + 1;
    const wait = Math.max(atLeastMs, backoffMs(BACKOFF, tries, this.#host.random()));
    this.#store.commit("webchat.postponed", () => {
      this.#store.setRetry(tries, this.#host.clock.now() + wait);
    });
    const afterMs = Math.max(atLeastMs, RETRY_MS);
    for (const row of this.#store.log.open(MAX_OPEN)) this.#listener.refused(row, afterMs);
  }
}

/** The session in an object's name. @throws {Error} when the object was not reached by name */
function sessionOf(name: string): string {
  const session = name.split("/")[4];
  if (!session) throw new Error("a web chat is reached by its name, scope/session");
  return decodeURIComponent(session);
}
