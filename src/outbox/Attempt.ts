/**
 * One attempt to deliver one row: what has to be asked before the call, the call itself, and the
 * commit of what became of it.
 *
 * @module
 */
import type { SendResult } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import {
  type OutboxExtra,
  type OutboxRow,
  readExtra,
  unreadable,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { sleep } from "../time/Clock.ts";
import { Budget } from "./Budget.ts";
import { markedAt } from "./doubt.ts";
import { type AttemptHooks, Ending } from "./Ending.ts";
import { markerOf } from "./keys.ts";
import {
  addressOf,
  callChannel,
  callWithin,
  lookUp,
  messageOf,
  prepareRequest,
  selfTest,
} from "./platform.ts";
import { afterRefusedEdit, changeCapabilities, changeOf, hasNothingToDo } from "./previews.ts";
import { callRelay, isRelay, relayCapabilities } from "./relay.ts";
import { resplit } from "./render.ts";
import {
  afterAttempt,
  afterCrash,
  afterLookup,
  beforeRepeat,
  expiresAt,
  giveUp,
  type VerdictContext,
} from "./verdict.ts";

/** How often an answer is tried to be recorded, and the wait between, in ms (times the try). */
const RECORD_TRIES = 8;
const RECORD_WAIT_MS = 250;

/** How long a platform is left alone that limited a preview and did not say for how long, in ms. */
const LIMITED_MS = 5_000;
const ONCE = { afterCrash: "skip", noAnswer: "skip" } as const;

/** Attempts of one actor. */
export class Attempt {
  readonly #core: Core;
  readonly #hooks: AttemptHooks;
  readonly #ending: Ending;
  readonly #budget: Budget;

  constructor(core: Core, hooks: AttemptHooks) {
    this.#core = core;
    this.#hooks = hooks;
    this.#ending = new Ending(core, hooks);
    this.#budget = new Budget(core);
  }

  /** Whether a send has to ask for its place in the bot's own pace first. */
  get asksFirst(): boolean {
    return this.#budget.hot;
  }

  /** When the bot's own pace allows a call: epoch ms. */
  slot(): Promise<number> {
    return this.#budget.slot();
  }

  /** A call that has no row: it spends the pace, and a rate limit counts as for a send. */
  async show(call: () => Promise<SendResult>): Promise<SendResult> {
    this.#calling();
    const result = await call();
    const limited = !result.ok && result.kind === "rate_limit";
    if (limited) this.#hooks.gate(this.#core.now() + (result.retryAfterMs ?? LIMITED_MS));
    this.#answered(result);
    return result;
  }

  #calling(): void {
    this.#hooks.calling();
    this.#budget.take();
  }

  #answered(result: SendResult): void {
    if (result.ok || result.kind !== "rate_limit") return;
    this.#budget.limited();
    this.#hooks.limited();
  }

  /** Moves a row that is due one step on: crash verdict, lookup, or a send. */
  async deliver(row: OutboxRow): Promise<void> {
    const broken = unreadable(row);
    if (broken !== undefined) {
      this.#ending.giveUp(row, "invalid_payload", `unreadable record: its ${broken} is not JSON`);
      return;
    }
    const { connection } = this.#core.identity();
    if (this.#core.bot.channel(connection) === undefined) {
      this.#ending.giveUp(row, "auth", `the bot no longer has the connection "${connection}"`);
      return;
    }
    if (row.state === "sending") {
      // Nobody of this life sends it: the process died between the mark and the record.
      const context = this.#context(row);
      const startedAt = markedAt(row, context.settings.leaseMs);
      this.#ending.conclude(row, row.claim ?? "", afterCrash(context, startedAt), undefined);
      return;
    }
    if (hasNothingToDo(this.#core, row)) return this.#ending.drop(row, "no_preview");
    const ready = await this.#prepare(row);
    if (ready === undefined) return;
    const claim = this.#core.claim();
    const now = this.#core.now();
    const held = this.#hooks.isHeld(row);
    const dueAt = held ? null : now + this.#core.settings.outbox.leaseMs;
    this.#core.journal.commit("outbox.markSending", () => {
      const marker = markerOf(this.#core.name, row);
      const request = row.first_maybe_at === null ? JSON.stringify(ready.request) : row.request;
      const extra = writeExtra(ready.extra);
      this.#core.journal.outbox.move(row, "sending", {
        claim,
        marker,
        request,
        extra,
        due_at: dueAt,
        ...ready.patch,
      });
      if (dueAt !== null) this.#core.alarm.arm(dueAt);
    });
    if (row.attempts > 0 || row.first_maybe_at !== null) this.#core.metrics.count("outboxRetried");
    await this.send(row, claim, ready.request);
  }

  /**
   * Calls the platform for a row that is marked `sending`. The call starts before the first await, in
   * the same turn of the event loop as the mark: the output gate holds it until the mark is on disk.
   */
  async send(row: OutboxRow, claim: string, request?: JsonObject): Promise<void> {
    const startedAt = this.#core.now();
    if (!isRelay(row)) this.#calling();
    const result = await (isRelay(row) ? callRelay(this.#core, row) : this.#call(row, request));
    this.#answered(result);
    await this.#record(row, claim, startedAt, result);
  }

  #call(row: OutboxRow, request = JSON.parse(row.request) as JsonObject): Promise<SendResult> {
    const address = addressOf(this.#core, row);
    const change = changeOf(this.#core, row, request);
    return change === undefined
      ? callChannel(this.#core, address, row.marker ?? "", request)
      : callWithin(this.#core, address, row.marker ?? "", change);
  }

  /**
   * Records an answer. The journal may refuse for a while (full, reset): the answer is worth keeping in
   * memory and trying again, since without it the send is ambiguous.
   */
  async #record(
    row: OutboxRow,
    claim: string,
    startedAt: number,
    result: SendResult,
  ): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        // The call took time: a status, an announcement or a replay may have changed the row.
        const fresh = this.#core.journal.outbox.get(row.turn, row.pos);
        if (fresh === undefined) return;
        Object.assign(row, fresh);
        this.#ending.conclude(
          row,
          claim,
          afterRefusedEdit(row, this.#core.now(), result) ??
            afterAttempt(this.#context(row), startedAt, result),
          result,
        );
        return;
      } catch (error) {
        this.#core.host.rethrowIfHalted(error);
        if (tries === RECORD_TRIES) throw error;
        this.#core.host.log.error("an answer could not be recorded yet", {
          tries,
          error: messageOf(this.#core, error),
        });
        await sleep(this.#core.host.clock, RECORD_WAIT_MS * tries);
      }
    }
  }

  /** Everything before the mark. Resolves to the request to send, or nothing if there is no call now. */
  async #prepare(
    row: OutboxRow,
  ): Promise<{ request: JsonObject; extra: OutboxExtra; patch: Partial<OutboxRow> } | undefined> {
    const context = this.#context(row);
    const now = context.now;
    if (row.not_after !== null && now > row.not_after) {
      return this.#ending.stop(
        row,
        giveUp(context, "cancelled", "not delivered before `notAfter`"),
      );
    }
    if (now > expiresAt(context))
      return this.#ending.stop(row, giveUp(context, "transient", "older than `outbox.maxAgeMs`"));
    if (context.extra.superseded === true && row.state !== "unknown") {
      // Nobody wants it repeated: unsent it is dropped, else it stays in doubt.
      if (row.first_maybe_at === null) return this.#ending.drop(row);
      return this.#ending.stop(
        row,
        giveUp(context, "cancelled", "its turn says something else by now"),
      );
    }
    const late = beforeRepeat(context);
    if (late !== undefined) return this.#ending.stop(row, late);
    const patch: Partial<OutboxRow> = {};
    const before = { state: row.state, generation: row.generation, extra: row.extra };
    if (row.state === "unknown" && context.extra.resend !== true) {
      const found = await lookUp(this.#core, row);
      if (!this.#unchanged(row, before)) return undefined;
      const verdict = afterLookup(this.#context(row), found);
      if (verdict !== undefined) {
        return this.#ending.stop(row, verdict, found.result === "sent" ? found.receipt : undefined);
      }
      if (context.extra.superseded === true) return this.#ending.drop(row);
      // Proven about this marker, so the evidence is cleared, and its window begins again.
      patch.first_maybe_at = null;
      patch.maybes = 0;
    }
    if (context.extra.probe === true && !(await selfTest(this.#core))) {
      if (this.#unchanged(row, before)) this.#ending.postpone(row);
      return undefined;
    }
    const relayed = isRelay(row);
    const slot = relayed ? now : await this.#budget.slot();
    if (!this.#unchanged(row, before)) return undefined;
    if (slot > this.#core.now()) {
      this.#hooks.gate(slot);
      return undefined;
    }
    let request = JSON.parse(row.request) as JsonObject;
    // A row of an earlier life may have been recorded by other code, under another limit.
    const otherCode = row.created_at < this.#core.startedAt || context.extra.rerender === true;
    if (otherCode && !relayed) {
      const again = resplit(this.#core, row);
      if (again === "replaced") return undefined;
      request = again ?? request;
    }
    const prepared = relayed
      ? { ok: true as const, request }
      : await prepareRequest(this.#core, row, request);
    if (!this.#unchanged(row, before)) return undefined;
    if (!prepared.ok)
      return this.#ending.stop(row, afterAttempt(this.#context(row), now, prepared));
    const {
      probe: _probe,
      resend: _resend,
      lookups: _lookups,
      rerender: _rerender,
      ...extra
    } = readExtra(row);
    return { request: prepared.request, extra, patch };
  }

  /** Whether nothing else touched the row during an await; brings `row` up to date. */
  #unchanged(row: OutboxRow, before: Pick<OutboxRow, "state" | "generation" | "extra">): boolean {
    const now = this.#core.journal.outbox.get(row.turn, row.pos);
    if (now === undefined) return false;
    Object.assign(row, now);
    return (
      now.state === before.state &&
      now.generation === before.generation &&
      now.extra === before.extra
    );
  }

  #context(row: OutboxRow): VerdictContext {
    const channel = this.#core.channel();
    const { capabilities } = channel;
    const settings = this.#core.settings.outbox;
    const extra = readExtra(row);
    return {
      row,
      extra,
      now: this.#core.now(),
      random: this.#core.host.random(),
      settings,
      // A preview is not worth a second message: its answer comes by itself.
      policies: extra.preview === true ? ONCE : settings.onAmbiguous(channel.name),
      capabilities: isRelay(row)
        ? relayCapabilities(capabilities)
        : changeCapabilities(this.#core, row, capabilities),
    };
  }
}
