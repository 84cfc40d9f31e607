/**
 * The outbox of one chat: intents in, platform calls out, and what happens to a turn's sends when the
 * turn ends. The parts live in `src/outbox/`; this class is how they meet the engine.
 *
 * @module
 */
import type { DeliveryStatus, InboundEvent } from "../channels/events.ts";
import {
  DISCARDED,
  isOpen,
  type OutboxExtra,
  type OutboxRow,
  OWES,
  readExtra,
  writeExtra,
} from "../journal/records.ts";
import { Announcer } from "../outbox/Announcer.ts";
import { Deliveries, intentOf, outcomeOf } from "../outbox/Deliveries.ts";
import { Drain } from "../outbox/Drain.ts";
import type { Decided, Intent } from "../outbox/draft.ts";
import { follow } from "../outbox/follow.ts";
import { Intents } from "../outbox/Intents.ts";
import { Statuses } from "../outbox/Statuses.ts";
import type { TurnSends } from "../outbox/TurnSends.ts";
import { type StreamCall, Streams } from "../streams/Streams.ts";
import type { ListenerTools } from "../turns/BotRuntime.ts";
import type { Core } from "./Core.ts";

/** How a turn ended, for the sends it leaves behind. */
export type TurnEnd = "settled" | "failed" | "aborted" | "interrupted" | "dead" | "retry";

/** The outbox of one actor. */
export class Outbox {
  readonly announcer: Announcer;
  readonly #core: Core;
  readonly #drain: Drain;
  readonly #deliveries: Deliveries;
  readonly #intents: Intents;
  /** Made when first used: few chats stream. */
  #streamed: Streams | undefined;
  readonly #statuses: Statuses;
  readonly #onTrouble: () => void;

  constructor(core: Core, tools: () => ListenerTools, onTrouble: () => void) {
    this.#core = core;
    this.#onTrouble = onTrouble;
    this.announcer = new Announcer(core, tools);
    this.#deliveries = new Deliveries(core.host.clock, () => this.#drain.kick());
    this.#drain = new Drain(core, this.#deliveries, this.announcer, (row) => this.#done(row));
    this.#statuses = new Statuses(
      core,
      (row) => this.#drain.isHeld(row),
      () => this.#drain.inFlight(),
    );
    this.#intents = new Intents(core, this.#drain, this.#deliveries);
  }

  /** Whether the drain is at work. */
  get live(): boolean {
    return this.#drain.live;
  }

  /** When the alarm is needed for sends. */
  nextDue(): number | undefined {
    return this.#drain.nextDue();
  }

  /** Starts the drain. */
  kick(): void {
    this.#drain.kick();
  }

  /** Decides a send. */
  intend(intent: Intent): Promise<Decided> {
    return this.#intents.intend(intent);
  }

  /** Shows an answer while it is written, and delivers it. */
  stream(call: StreamCall): Promise<Decided> {
    return this.#streams.stream(call);
  }

  get #streams(): Streams {
    this.#streamed ??= new Streams(this.#core, this.#intents, this.#drain);
    return this.#streamed;
  }

  /** A recorded step is not run again: what it said is taken over as it stands. */
  adopt(sends: TurnSends, slots: readonly string[]): void {
    for (const slot of slots) {
      const head = sends.recorded(slot);
      if (head === undefined) continue;
      sends.consume(slot);
      // Of an earlier turn of a run: the background has it.
      if (head.turn !== sends.seq) continue;
      for (const row of this.#core.journal.outbox.partsOf(head))
        if (isOpen(row)) this.#drain.hold(row);
    }
    this.#drain.kick();
  }

  /** Runs a platform call that is not a send (an edit, a raw method) after what is in flight. */
  lane<T>(call: () => Promise<T>): Promise<T> {
    return this.#drain.lane(call);
  }

  /** A turn runs again: rows that the last process left `sending` are settled by the table of §6. */
  recover(rows: readonly OutboxRow[]): void {
    const orphans = rows.filter((row) => row.state === "sending" && !this.#drain.isInFlight(row));
    for (const row of orphans) this.#drain.hold(row);
    if (orphans.length > 0) this.#drain.kick();
  }

  /**
   * Gives each open row of a turn a wake-up or suppresses it, so that none is left where nothing looks.
   * Part of every commit that ends a turn.
   */
  closeTurn(sends: TurnSends, end: TurnEnd): void {
    const stopped = end === "aborted" || end === "interrupted";
    if (end === "settled" || end === "failed" || stopped) {
      this.#intents.insertSettled(sends, end !== "settled");
    }
    if (sends.hasRows) this.#closeRows(sends, end, stopped);
    if (sends.streams.size > 0 || sends.hasPreviews) this.#streams.close(sends, end);
  }

  #closeRows(sends: TurnSends, end: TurnEnd, stopped: boolean): void {
    const { journal, alarm, settings } = this.#core;
    const now = this.#core.now();
    let blocked: string | undefined;
    const begun = new Set<string>();
    for (const row of journal.outbox.ofTurn(sends.seq)) {
      if (row.state !== "pending" || row.attempts > 0) begun.add(row.slot);
      if (!isOpen(row)) continue;
      // A message of which a part is out is said to its end, and so is an answer that was seen to grow.
      if (readExtra(row).edits !== undefined) begun.add(row.slot);
      const unstarted = row.state === "pending" && row.attempts === 0 && !begun.has(row.slot);
      const scheduled = row.due_at !== null;
      const notRepeated =
        end === "settled" && !sends.isConsumed(row.slot) && row.first_maybe_at === null;
      const drop =
        (row.state === "pending" || row.state === "failed") &&
        row.first_maybe_at === null &&
        ((notRepeated && row.part === 0 && !scheduled) ||
          (stopped && unstarted && !scheduled && !sends.kept?.has(row.slot)));
      if (drop || (blocked === undefined ? false : blocked === `drop ${row.slot}`)) {
        blocked = `drop ${row.slot}`;
        journal.outbox.move(row, "suppressed", {
          extra: writeExtra({
            ...readExtra(row),
            reason:
              end === "interrupted"
                ? "interrupted"
                : end === "aborted"
                  ? "turn_aborted"
                  : "not_repeated",
          }),
          due_at: null,
          finished_at: now,
        });
        continue;
      }
      // A turn that runs again holds its unsent rows until that run asks for them.
      if (end === "retry" && row.state !== "sending") continue;
      // Parts behind an open part get their wake-up in the commit that ends it.
      if (blocked === row.slot) continue;
      blocked = row.slot;
      if (row.due_at === null) {
        const at = row.state === "sending" ? now + settings.outbox.leaseMs : now;
        journal.outbox.update(row, { due_at: at });
        alarm.arm(at);
      } else {
        alarm.arm(row.due_at);
      }
    }
  }

  /** After the commit that ended a turn. */
  released(sends: TurnSends): void {
    sends.closed = true;
    this.#drain.release(sends.seq);
    for (const row of sends.hasRows ? this.#core.journal.outbox.ofTurn(sends.seq) : [])
      this.#tell(row);
    this.#core.journal.outbox.forgetTurn(sends.seq);
    this.#drain.kick();
  }

  /** Applies a delivery status. Call inside the receive commit. Returns the row it was about. */
  applyStatus(status: DeliveryStatus): OutboxRow | undefined {
    return this.#statuses.apply(status);
  }

  /** Whether an event is our own message come back. Call inside the receive commit. */
  absorbEcho(event: InboundEvent): boolean {
    return this.#statuses.absorbEcho(event);
  }

  /** Sends a dead, failed or unknown record again, with a fresh budget. Returns whether it could. */
  retry(head: OutboxRow): boolean {
    const { journal, alarm } = this.#core;
    const rows = journal.outbox
      .partsOf(head)
      .filter((row) => isOpen(row) || row.state === "dead" || row.state === "unknown");
    const first = rows[0];
    // Nobody needs a preview any more.
    if (
      first === undefined ||
      readExtra(first).preview === true ||
      !["dead", "failed", "unknown"].includes(first.state)
    )
      return false;
    const now = this.#core.now();
    journal.commit("outbox.retry", () => {
      for (const row of rows) {
        if (row.state === "sending") continue;
        const {
          held: _held,
          lookups: _lookups,
          at: _at,
          reason: _reason,
          delivery,
          ...rest
        } = readExtra(row);
        const extra: OutboxExtra = rest;
        const fresh: Partial<OutboxRow> = {
          attempts: 0,
          finished_at: null,
          owed: row.owed & OWES.ambiguous,
          due_at: row === first ? now : null,
          created_at: now,
        };
        if (delivery !== undefined && delivery !== "failed") extra.delivery = delivery;
        if (row.state === "unknown") {
          // The operator accepts a possible duplicate; a keyed marker past its window is of no use.
          const spent = row.first_maybe_at !== null && this.#windowOver(row);
          journal.outbox.update(row, {
            ...fresh,
            ...(spent ? { generation: row.generation + 1, owed: row.owed | OWES.ambiguous } : {}),
            extra: writeExtra({
              ...extra,
              resend: true,
              ...(spent ? { action: "resent" as const, cause: "operator" } : {}),
            }),
          });
        } else if (row.state === "dead") {
          journal.outbox.move(row, "pending", {
            ...fresh,
            error: null,
            error_kind: null,
            receipt: null,
            maybes: 0,
            first_maybe_at: null,
            // The platform has done the old marker, or refused it: a new one makes it a new message.
            generation: row.generation + 1,
            extra: writeExtra({ ...extra, rerender: true }),
          });
        } else {
          journal.outbox.update(row, fresh);
        }
      }
      alarm.arm(now);
    });
    this.#drain.kick();
    return true;
  }

  /** Gives a record up. Returns whether it could. */
  discard(row: OutboxRow): boolean {
    if (!isOpen(row) && row.state !== "unknown" && row.state !== "dead") return false;
    if (row.state === "sending") return false;
    this.#core.journal.commit("outbox.discard", () => {
      const patch = {
        due_at: null,
        finished_at: this.#core.now(),
        owed: 0,
        error_kind: "cancelled",
        error: DISCARDED,
      };
      if (row.state === "dead") this.#core.journal.outbox.update(row, patch);
      else this.#core.journal.outbox.move(row, "dead", patch);
      this.#follow(row);
    });
    this.#tell(row);
    this.#onTrouble();
    this.#drain.kick();
    return true;
  }

  /** Cancels a send that has not begun. Returns whether it did. */
  cancel(head: OutboxRow): boolean {
    const rows = this.#core.journal.outbox.partsOf(head);
    const unsent = rows.every(
      (row) => (row.state === "pending" || row.state === "failed") && row.first_maybe_at === null,
    );
    if (!unsent || rows.some((row) => this.#drain.isInFlight(row))) return false;
    this.#core.journal.commit("outbox.cancel", () => {
      for (const row of rows) {
        this.#core.journal.outbox.move(row, "suppressed", {
          due_at: null,
          finished_at: this.#core.now(),
          extra: writeExtra({ ...readExtra(row), reason: "cancelled" }),
        });
      }
    });
    this.#tell(head);
    return true;
  }

  #windowOver(row: OutboxRow): boolean {
    const { markerWindowMs, class: kind } = this.#core.channel().capabilities.delivery;
    if (kind !== "keyed" || markerWindowMs === undefined || row.first_maybe_at === null)
      return false;
    return (
      this.#core.now() + this.#core.settings.outbox.sendTimeoutMs >
      row.first_maybe_at + markerWindowMs
    );
  }

  /** A row changed: tell who waits, announce what is owed, apply what came early. */
  #done(row: OutboxRow): void {
    if (row.state === "sent") this.#statuses.applyEarly(row);
    if (
      row.state === "dead" ||
      row.state === "unknown" ||
      (row.state === "failed" && row.due_at !== null)
    )
      this.#onTrouble();
    this.#tell(row);
  }

  #follow(row: OutboxRow): void {
    follow(this.#core, row, (next) => this.#drain.isHeld(next));
  }

  /** Tells inline waiters and listeners about a row. */
  tell(row: OutboxRow): void {
    this.#tell(row);
  }

  #tell(row: OutboxRow): void {
    this.announcer.pushSend(row);
    const intent = intentOf(row);
    if (this.#deliveries.deadlineOf(intent) === undefined) return;
    const outcome = outcomeOf(this.#core.journal.outbox.partsOf(row));
    if (outcome !== undefined) this.#deliveries.settle(intent, outcome);
  }
}
