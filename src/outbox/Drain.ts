/**
 * The drain: the only code that calls `channel.send`. One call is in flight per lane: the chat's own
 * sends, and beside them the relays to other chats. Rows are read from the journal each time, because after any await another call, a status or an operator may have
 * changed them.
 *
 * @module
 */

import type { SendResult } from "../channels/channel.ts";
import type { Address } from "../channels/events.ts";
import type { OutboxPlace } from "../journal/OutboxTable.ts";
import { isOpen, type OutboxRow, readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import type { CancelTimer } from "../time/Clock.ts";
import type { Announcer } from "./Announcer.ts";
import { Attempt } from "./Attempt.ts";
import { Candidates, isBefore } from "./Candidates.ts";
import { type Deliveries, intentOf } from "./Deliveries.ts";
import { Pacer } from "./Pacer.ts";
import { isBehindPreview } from "./previews.ts";
import { RelayLane } from "./RelayLane.ts";
import { isRelay } from "./relay.ts";

/** A row that is already marked `sending` by the commit that recorded it. */
export interface Started {
  row: OutboxRow;
  claim: string;
}

/** How long the loop rests when the journal failed, in ms. */
const PAUSE_MS = 1_000;
/** A wait that is shorter is not left to the alarm: a pace of some milliseconds would become seconds. */
const SHORT_WAIT_MS = 2_000;

/** The sending loop of one actor. */
export class Drain {
  readonly #core: Core;
  readonly #deliveries: Deliveries;
  readonly #attempt: Attempt;
  readonly #announcer: Announcer;
  readonly #candidates: Candidates;
  /** Made when there is a relay: few chats have one. */
  #relayLane: RelayLane | undefined;
  #running = false;
  #inFlight: OutboxPlace | undefined;
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
    this.#candidates = new Candidates(core, announcer);
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

  /**
   * Whether a send could go out this instant: nothing in flight, nothing older that is waited for.
   * @param relayTo the other chat, of a relay
   */
  isFree(relayTo?: Address): boolean {
    if (this.#running || this.#candidates.held.length > 0) return false;
    if (relayTo !== undefined) return this.#relays.isFree(relayTo);
    const now = this.#core.now();
    return !this.#attempt.asksFirst && Math.max(this.#gate(), this.#paceAt(now)) <= now;
  }

  get #relays(): RelayLane {
    this.#relayLane ??= new RelayLane(this.#core);
    return this.#relayLane;
  }

  /** Whether the loop, or the lane of relays, is at work. */
  get live(): boolean {
    return this.#running || this.#relayLane?.inFlight !== undefined;
  }

  /** Whether `row` is being sent right now by this incarnation. */
  isInFlight(row: OutboxPlace): boolean {
    return [this.#inFlight, this.#relayLane?.inFlight].some(
      (place) => place?.turn === row.turn && place.pos === row.pos,
    );
  }

  /** The chat's own row that is being sent right now. */
  inFlight(): OutboxRow | undefined {
    const place = this.#inFlight;
    return place && this.#core.journal.outbox.get(place.turn, place.pos);
  }

  /** Delivers a row on behalf of a live turn. */
  hold(row: OutboxPlace): void {
    this.#candidates.hold(row);
  }

  /** Whether a live turn delivers the row by itself. */
  isHeld(row: OutboxPlace): boolean {
    return this.#candidates.isHeld(row);
  }

  /** The turn is over: its rows are found by their due time from now on. */
  release(turn: number): void {
    this.#candidates.release(turn);
  }

  /** Starts the loop unless it runs. `first` is sent in this very turn of the event loop. */
  kick(first?: Started): void {
    this.#candidates.lookBehind = true;
    this.#start(first);
  }

  #start(first?: Started): void {
    if (this.#running) return;
    this.#running = true;
    this.#timer?.();
    this.#timer = undefined;
    this.#resumeAt = undefined;
    this.#core.host.keepAlive(this.#run(first));
  }

  /** Whether the chat has nothing else to send this moment, and may be written to. */
  get idle(): boolean {
    const now = this.#core.now();
    const busy = this.#running || this.#candidates.held.length > 0;
    return !busy && Math.max(this.#gate(), this.#paceAt(now)) <= now;
  }

  /** A call that only shows what is being written: made where the lane is idle, else not at all. */
  async show(call: () => Promise<SendResult>): Promise<SendResult | undefined> {
    if (!this.idle || (await this.#attempt.slot()) > this.#core.now() || !this.idle)
      return undefined;
    return this.lane(() => this.#attempt.show(call));
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
    for (const place of this.#candidates.nextDue()) {
      if (this.isHeld(place) || this.isInFlight(place) || this.#announcer.has(place)) continue;
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
        const row = started?.row ?? this.#pick();
        if (row === undefined) break;
        if (isRelay(row)) {
          this.#relay(row, started);
          continue;
        }
        this.#inFlight = { turn: row.turn, pos: row.pos };
        await this.#call(row, started);
        this.#candidates.lookBehind = true;
      } catch (error) {
        this.#failed(error);
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
    const failed = (error: unknown) => {
      this.#failed(error);
      if (!this.#running) this.#rest();
    };
    const call = this.#relays.run(row, () => this.#call(row, started));
    this.#core.host.keepAlive(call.then(() => this.#start(), failed));
  }

  #call(row: OutboxRow, started: Started | undefined): Promise<void> {
    return started === undefined
      ? this.#attempt.deliver(row)
      : this.#attempt.send(started.row, started.claim);
  }

  /** Only the journal can fail here; the rows keep their wake-up, so the alarm tries again. */
  #failed(error: unknown): void {
    this.#core.host.log.error("the outbox could not be written", { error: String(error) });
    this.#pausedUntil = this.#core.now() + PAUSE_MS;
  }

  #wakeIdlers(): void {
    for (const resolve of this.#idlers.splice(0)) resolve();
  }

  /** The next row to act on, or nothing. No await from here to the flag that the loop stopped. */
  #pick(): OutboxRow | undefined {
    if (!this.#core.journal.exists()) return undefined;
    const now = this.#core.now();
    const strict = this.#core.settings.outbox.order === "strict";
    this.#resumeAt = undefined;
    let closed = false;
    for (const row of this.#candidates.read(strict)) {
      if (isRelay(row)) {
        const next = this.#pickRelay(row, now);
        if (next !== undefined) return next;
        continue;
      }
      if (closed || this.#isBehindAPart(row)) continue;
      const at = Math.max(row.due_at ?? 0, this.#gate(), this.#paceAt(now));
      if (at <= now) return row;
      this.#waitFor(row, at);
      closed = this.#holdsLane(row, strict, now);
      if (closed) this.#deferBehind(row, at);
    }
    return undefined;
  }

  /** The relay to begin where `row` is next in line: another chat's platform has its own limits. */
  #pickRelay(row: OutboxRow, now: number): OutboxRow | undefined {
    if (this.#relayLane?.inFlight !== undefined) {
      // The end of the call starts the loop again; this is the net below it.
      const until = now + this.#core.settings.outbox.sendTimeoutMs + PAUSE_MS;
      this.#resumeAt = Math.min(this.#resumeAt ?? until, until);
      return undefined;
    }
    const head = this.#relays.headOf(row);
    const at = Math.max(head.due_at ?? 0, this.#pausedUntil);
    if (at <= now) return head;
    this.#waitFor(row, at);
    return undefined;
  }

  /** Not before `at`: who cannot wait for that is told so. */
  #waitFor(row: OutboxRow, at: number): void {
    this.#resumeAt = Math.min(this.#resumeAt ?? at, at);
    this.#deferLate(row, at);
  }

  #deferLate(row: OutboxRow, at: number): void {
    const intent = intentOf(row);
    const deadline = this.#deliveries.deadlineOf(intent);
    if (deadline !== undefined && at > deadline) this.#deliveries.defer(intent);
  }

  /**
   * Whether a row that cannot go yet holds up those behind it: while somebody waits for it, or while its
   * replacement does. A send whose own time has not come is not ahead of anything.
   */
  #holdsLane(row: OutboxRow, strict: boolean, now: number): boolean {
    const scheduled =
      row.state === "pending" && row.attempts === 0 && row.due_at !== null && row.due_at > now;
    return (
      (strict && !scheduled) ||
      this.#deliveries.deadlineOf(intentOf(row)) !== undefined ||
      readExtra(row).superseded === true
    );
  }

  #isBehindAPart(row: OutboxRow): boolean {
    if (isBehindPreview(this.#core, row)) return true;
    if (row.part === 0) return false;
    const previous = this.#core.journal.outbox.previousPart(row);
    return previous !== undefined && isOpen(previous);
  }

  /** A reply whose blocker goes later than its own budget need not wait for the budget to run out. */
  #deferBehind(blocker: OutboxRow, at: number): void {
    for (const place of this.#candidates.held) {
      if (!isBefore(blocker, place)) continue;
      const row = this.#core.journal.outbox.get(place.turn, place.pos);
      if (row !== undefined && !isRelay(row)) this.#deferLate(row, at);
    }
  }

  /** Nothing is ready: a timer for what is waited for here, the alarm for the rest. */
  #rest(): void {
    this.#rested = true;
    const now = this.#core.now();
    const resumeAt = this.#pausedUntil > now ? this.#pausedUntil : this.#resumeAt;
    const soon = resumeAt !== undefined && resumeAt - now <= SHORT_WAIT_MS;
    if (resumeAt !== undefined && (soon || this.#candidates.held.length > 0)) {
      this.#timer?.();
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
