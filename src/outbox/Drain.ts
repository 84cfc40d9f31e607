/**
 * The drain: the only code that calls `channel.send`. One call is in flight per chat. Rows are read
 * from the journal each time, because after any await another call, a status or an operator may have
 * changed them.
 *
 * @module
 */

import { isOpen, type OutboxRow, readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import type { CancelTimer } from "../time/Clock.ts";
import type { Announcer } from "./Announcer.ts";
import { Attempt } from "./Attempt.ts";
import { type Deliveries, intentOf } from "./Deliveries.ts";
import { Pacer } from "./Pacer.ts";
import { isRelay } from "./relay.ts";

/** How many due rows one look reads. */
const SLICE = 32;

/** A row that is already marked `sending` by the commit that recorded it. */
export interface Started {
  row: OutboxRow;
  claim: string;
}

/** How long the loop rests when the journal failed, in ms. */
const PAUSE_MS = 1_000;
/** A wait that is shorter is not left to the alarm: a pace of some milliseconds would become seconds. */
const SHORT_WAIT_MS = 2_000;

interface Picked {
  row: OutboxRow;
}

/** The sending loop of one actor. */
export class Drain {
  readonly #core: Core;
  readonly #deliveries: Deliveries;
  readonly #attempt: Attempt;
  readonly #announcer: Announcer;
  /** Rows of live turns that somebody asked to deliver; everything else is found by its due time. */
  readonly #held = new Map<string, { turn: number; pos: number }>();
  #running = false;
  #inFlight: { turn: number; pos: number } | undefined;
  /** The relay under way. Relays have a lane of their own: another chat's silence must not hold this one. */
  #relaying: { turn: number; pos: number } | undefined;
  #gateUntil: number | undefined;
  /** While at rest with something not ready: when it will be. */
  #resumeAt: number | undefined;
  /** Until when the loop rests, because the journal failed. */
  #pausedUntil = 0;
  /** Whether the loop has looked at the rows and found nothing ready. */
  #rested = false;
  #timer: CancelTimer | undefined;
  #pacer: Pacer | undefined;

  constructor(
    core: Core,
    deliveries: Deliveries,
    announcer: Announcer,
    onDone: (row: OutboxRow) => void,
  ) {
    this.#core = core;
    this.#announcer = announcer;
    this.#deliveries = deliveries;
    this.#attempt = new Attempt(core, {
      isHeld: (row) => this.isHeld(row),
      isInline: (row) => deliveries.deadlineOf(intentOf(row)) !== undefined,
      gate: (until) => {
        this.#gateUntil = Math.max(this.#gateUntil ?? 0, until);
      },
      done: onDone,
      limited: () => this.#pacer?.limited(this.#core.now()),
      calling: () => this.#pacer?.take(this.#core.now()),
    });
  }

  /** Whether a send could go out this instant: nothing in flight, nothing older that is waited for. */
  get idle(): boolean {
    const now = this.#core.now();
    if (this.#attempt.asksFirst) return false;
    return (
      !this.#running && this.#held.size === 0 && Math.max(this.#gate(), this.#paceAt(now)) <= now
    );
  }

  /** Whether the loop, or the lane of relays, is at work. */
  get live(): boolean {
    return this.#running || this.#relaying !== undefined;
  }

  /** Whether `row` is being sent right now by this incarnation. */
  isInFlight(row: { turn: number; pos: number }): boolean {
    return [this.#inFlight, this.#relaying].some(
      (place) => place?.turn === row.turn && place.pos === row.pos,
    );
  }

  /** The row that is being sent right now. */
  inFlight(): OutboxRow | undefined {
    const place = this.#inFlight;
    return place && this.#core.journal.outbox.get(place.turn, place.pos);
  }

  /** Delivers a row on behalf of a live turn. */
  hold(row: { turn: number; pos: number }): void {
    this.#held.set(placeKey(row), { turn: row.turn, pos: row.pos });
  }

  /** Whether a live turn delivers the row by itself. */
  isHeld(row: { turn: number; pos: number }): boolean {
    return this.#held.has(placeKey(row));
  }

  /** The turn is over: its rows are found by their due time from now on. */
  release(turn: number): void {
    for (const [key, place] of this.#held) if (place.turn === turn) this.#held.delete(key);
  }

  /** Starts the loop unless it runs. `first` is sent in this very turn of the event loop. */
  kick(first?: Started): void {
    if (this.#running) return;
    this.#running = true;
    this.#timer?.();
    this.#timer = undefined;
    this.#resumeAt = undefined;
    this.#core.host.keepAlive(this.#run(first));
  }

  /** Runs a call outside the journal in the lane, after what is in flight. */
  async lane<T>(call: () => Promise<T>): Promise<T> {
    while (this.#running) await new Promise<void>((resolve) => this.#idlers.push(resolve));
    this.#running = true;
    try {
      return await call();
    } finally {
      this.#running = false;
      this.#wakeIdlers();
      this.kick();
    }
  }
  readonly #idlers: (() => void)[] = [];

  /** When the alarm is needed for rows that no live loop holds. */
  nextDue(): number | undefined {
    if (!this.#core.journal.exists()) return undefined;
    const now = this.#core.now();
    let next: number | undefined;
    for (const place of this.#core.journal.outbox.nextDue(SLICE)) {
      if (this.#held.has(placeKey(place)) || this.isInFlight(place) || this.#announcer.has(place))
        continue;
      // A row that is due but could not go waits for something this life knows about; the second is a
      // guard, so that no row that nothing can move makes the alarm spin.
      const at =
        place.due_at > now
          ? place.due_at
          : Math.max(
              this.#pausedUntil,
              this.#resumeAt ?? 0,
              this.#gateUntil ?? 0,
              this.#rested ? now + 1_000 : now,
            );
      next = Math.min(next ?? at, at);
    }
    return next;
  }

  #gate(): number {
    if (!this.#core.journal.exists()) return 0;
    this.#gateUntil ??= this.#core.journal.outbox.rateLimitedUntil(this.#core.now()) ?? 0;
    return this.#gateUntil;
  }

  /** When the chat's own pace allows a call. */
  #paceAt(now: number): number {
    if (this.#pacer === undefined) {
      const identity = this.#core.journal.identity();
      const channel = identity && this.#core.bot.channel(identity.connection);
      const pacing = channel?.capabilities.pacing;
      if (pacing === undefined) return now;
      this.#pacer = new Pacer(identity?.kind === "group" ? pacing.group : pacing.direct);
    }
    return this.#pacer.nextAt(now);
  }

  async #run(first: Started | undefined): Promise<void> {
    let started = first;
    for (;;) {
      try {
        const picked = started ?? this.#pick();
        if (picked === undefined) break;
        if (isRelay(picked.row)) {
          this.#relay(picked.row, started);
          continue;
        }
        this.#inFlight = { turn: picked.row.turn, pos: picked.row.pos };
        await (started === undefined
          ? this.#attempt.deliver(picked.row)
          : this.#attempt.send(started.row, started.claim));
      } catch (error) {
        // Only the journal can fail here; the rows keep their wake-up, so the alarm tries again.
        this.#core.host.log.error("the outbox could not be written", { error: String(error) });
        this.#pausedUntil = this.#core.now() + PAUSE_MS;
        break;
      } finally {
        this.#inFlight = undefined;
        started = undefined;
      }
    }
    this.#running = false;
    this.#rest();
    this.#wakeIdlers();
  }

  /** Hands a row to another chat, beside the loop. */
  #relay(row: OutboxRow, started: Started | undefined): void {
    this.#relaying = { turn: row.turn, pos: row.pos };
    const work =
      started === undefined
        ? this.#attempt.deliver(row)
        : this.#attempt.send(started.row, started.claim);
    const over = () => {
      this.#relaying = undefined;
      this.kick();
    };
    const failed = (error: unknown) => {
      this.#core.host.log.error("the outbox could not be written", { error: String(error) });
      this.#pausedUntil = this.#core.now() + PAUSE_MS;
      this.#relaying = undefined;
      if (!this.#running) this.#rest();
    };
    this.#core.host.keepAlive(work.then(over, failed));
  }

  #wakeIdlers(): void {
    for (const resolve of this.#idlers.splice(0)) resolve();
  }

  /** The next row to act on, or nothing. No await from here to the flag that the loop stopped. */
  #pick(): Picked | undefined {
    if (!this.#core.journal.exists()) return undefined;
    const now = this.#core.now();
    const gate = this.#gate();
    this.#resumeAt = undefined;
    const strict = this.#core.settings.outbox.order === "strict";
    for (const row of this.#candidates(strict)) {
      const relay = isRelay(row);
      if (relay && (this.#relaying !== undefined || this.#pausedUntil > now)) continue;
      const own = row.due_at ?? 0;
      // Another chat's platform has its own limits.
      const at = relay ? own : Math.max(own, gate, this.#paceAt(now));
      if (this.#isBehindAPart(row)) continue;
      if (at <= now) return { row };
      this.#resumeAt = Math.min(this.#resumeAt ?? at, at);
      const intent = intentOf(row);
      const deadline = this.#deliveries.deadlineOf(intent);
      if (deadline !== undefined && at > deadline) this.#deliveries.defer(intent);
      // An older row holds the lane while somebody waits for it, or while its replacement does.
      // A send whose own time has not come is not ahead of anything.
      const scheduled =
        row.state === "pending" && row.attempts === 0 && row.due_at !== null && row.due_at > now;
      const holds =
        !relay &&
        ((strict && !scheduled) ||
          this.#deliveries.deadlineOf(intent) !== undefined ||
          readExtra(row).superseded === true);
      if (holds) {
        this.#deferBehind(row, at);
        break;
      }
    }
    return undefined;
  }

  /** Open rows that may be next, oldest first. */
  #candidates(strict: boolean): OutboxRow[] {
    const { outbox } = this.#core.journal;
    const rows = new Map<string, OutboxRow>();
    for (const [key, place] of this.#held) {
      const row = outbox.get(place.turn, place.pos);
      if (row === undefined || !isOpen(row)) this.#held.delete(key);
      else rows.set(key, row);
    }
    const due = outbox.due(this.#core.now(), SLICE);
    // Under strict order a row that is not due yet may be ahead of one that is.
    const ahead = strict ? outbox.waiting(SLICE) : [];
    for (const row of [...due, ...ahead]) if (isOpen(row)) rows.set(placeKey(row), row);
    // Over, but somebody has still to be told: beside the lane, so that no listener holds a send.
    for (const row of outbox.owing(this.#core.now(), SLICE))
      if (!isOpen(row)) this.#announcer.pushSend(row);
    return [...rows.values()].sort((a, b) => a.turn - b.turn || a.pos - b.pos);
  }

  #isBehindAPart(row: OutboxRow): boolean {
    if (row.part === 0) return false;
    const previous = this.#core.journal.outbox.previousPart(row);
    return previous !== undefined && isOpen(previous);
  }

  /** A reply whose blocker goes later than its own budget need not wait for the budget to run out. */
  #deferBehind(blocker: OutboxRow, at: number): void {
    for (const place of [...this.#held.values()]) {
      if (place.turn < blocker.turn || (place.turn === blocker.turn && place.pos <= blocker.pos))
        continue;
      const row = this.#core.journal.outbox.get(place.turn, place.pos);
      if (row === undefined) continue;
      const deadline = this.#deliveries.deadlineOf(intentOf(row));
      if (deadline !== undefined && at > deadline) this.#deliveries.defer(intentOf(row));
    }
  }

  /** Nothing is ready: a timer for what is waited for here, the alarm for the rest. */
  #rest(): void {
    this.#rested = true;
    const now = this.#core.now();
    const resumeAt = this.#pausedUntil > now ? this.#pausedUntil : this.#resumeAt;
    const soon = resumeAt !== undefined && resumeAt - now <= SHORT_WAIT_MS;
    if (resumeAt !== undefined && (this.#held.size > 0 || soon)) {
      this.#timer = this.#core.host.clock.setTimer(resumeAt - now, () => {
        this.#timer = undefined;
        this.kick();
      });
    }
    const next = this.nextDue();
    if (next !== undefined && this.#core.alarm.isLaterThan(next)) {
      try {
        this.#core.journal.commit("outbox.arm", () => this.#core.alarm.arm(next));
      } catch (error) {
        this.#core.host.log.error("the alarm could not be set", { error: String(error) });
      }
    }
  }
}

function placeKey(row: { turn: number; pos: number }): string {
  return `${row.turn}.${row.pos}`;
}
