/**
 * The inbox of one chat: admits events, and runs their turns one at a time in order of arrival. A turn
 * is "live" while its incarnation runs it; any other open record is an orphan of a process that died.
 *
 * @module
 */
import type { InboundItem } from "../channels/channel.ts";
import type { ChatInfo, DeliveryStatus } from "../channels/events.ts";
import { tooLarge } from "../journal/limits.ts";
import { FLAG, type InboxRow, type OutboxRow, OWES } from "../journal/records.ts";
import { TurnSends } from "../outbox/TurnSends.ts";
import { planClaim } from "../turns/poison.ts";
import type { TurnRunner } from "../turns/TurnRunner.ts";
import type { Core } from "./Core.ts";
import type { Outbox } from "./Outbox.ts";

/** Open records read at a time. */
const SLICE = 32;
/** Characters of a bad item that are kept. */
const SAMPLE_LENGTH = 2_000;
/** The kind of a record that is no event: part of a body that could not be understood. */
const BAD_KIND = "bad";
/** How long the loop rests when the journal failed, in ms. */
const PAUSE_MS = 1_000;

/** What `receive` is given. */
export interface ReceiveRequest {
  connection: string;
  channel: string;
  chat: ChatInfo;
  items: InboundItem[];
}

/** What became of one item. */
export type Admitted = "accepted" | "duplicate" | "status" | "echo" | "dead";

/** What `receive` answers. */
export type ReceiveAnswer =
  | { ok: true; results: Admitted[] }
  /** The chat's queue is full: the platform shall try again. */
  | { ok: false; retryAfterSeconds: number };

/** What one receive did, for after its commit. */
interface Receipt {
  answer: ReceiveAnswer;
  statuses: { row: OutboxRow; status: DeliveryStatus }[];
  dead: number[];
  claimed?: { row: InboxRow; claim: string };
}

/** How long a platform is asked to wait when a chat's queue is full, in seconds. */
const BACKPRESSURE_SECONDS = 30;

/** The inbox of one actor. */
export class Inbox {
  readonly #core: Core;
  readonly #outbox: Outbox;
  readonly #runner: TurnRunner;
  readonly #onTrouble: () => void;
  #running = false;
  /** An event whose run ended without its commit: claimed, and nobody runs it. */
  #lost: number | undefined;
  /** Until when the loop rests, because the journal failed. */
  #pausedUntil = 0;
  /** An event that was claimed in the commit that admitted it. */
  #claimed: { row: InboxRow; claim: string } | undefined;

  constructor(core: Core, outbox: Outbox, runner: TurnRunner, onTrouble: () => void) {
    this.#core = core;
    this.#outbox = outbox;
    this.#runner = runner;
    this.#onTrouble = onTrouble;
  }

  /** Whether a turn is running. */
  get live(): boolean {
    return this.#running;
  }

  /** Admits events, statuses and echoes in one commit, then starts their turns. */
  receive(request: ReceiveRequest): Receipt {
    const receipt = this.#core.journal.commit("inbox.receive", () => this.#admit(request));
    this.#claimed = receipt.claimed ?? this.#claimed;
    for (const seq of receipt.dead) this.#outbox.announcer.pushEvent(seq);
    for (const { row } of receipt.statuses) this.#outbox.tell(row);
    if (receipt.statuses.length > 0) this.#outbox.kick();
    this.kick();
    return receipt;
  }

  #admit(request: ReceiveRequest): Receipt {
    const { journal, alarm, metrics, settings } = this.#core;
    const now = this.#core.now();
    const { connection, channel, chat } = request;
    // Where a chat has moved to is known from its sends; its old name must not undo that.
    if (journal.identity() === undefined)
      journal.identify({
        name: this.#core.name,
        connection,
        channel,
        chat: chat.id,
        ...(chat.thread === undefined ? {} : { thread: chat.thread }),
      });
    const receipt: Receipt = { answer: { ok: true, results: [] }, statuses: [], dead: [] };
    const results: Admitted[] = [];
    const events = request.items.filter((item) => item.type === "event").length;
    const waiting = events === 0 ? 0 : journal.inbox.countOpen(settings.inbox.maxPending);
    if (events > 0 && waiting >= settings.inbox.maxPending) {
      receipt.answer = { ok: false, retryAfterSeconds: BACKPRESSURE_SECONDS };
      return receipt;
    }
    let idle = !this.#running && waiting === 0;
    for (const item of request.items) {
      if (item.type === "status") {
        const row = this.#outbox.applyStatus(item.status);
        if (row !== undefined) receipt.statuses.push({ row, status: item.status });
        results.push("status");
        continue;
      }
      const seq = journal.nextSeq();
      if (item.type === "bad") {
        results.push(this.#admitBad(seq, item, now, receipt));
        continue;
      }
      // An external event has no platform clock: it happened when it came.
      const event = item.event.at === 0 ? { ...item.event, at: now } : item.event;
      if (event.selfAuthored === true && this.#outbox.absorbEcho(event, undefined)) {
        results.push("echo");
        continue;
      }
      const payload = JSON.stringify(event);
      if (tooLarge(payload)) {
        const sample = payload.slice(0, SAMPLE_LENGTH);
        results.push(
          this.#admitBad(
            seq,
            { id: event.id, error: "larger than the journal allows", sample },
            now,
            receipt,
          ),
        );
        continue;
      }
      const claim = idle ? this.#core.claim() : null;
      const fresh = journal.inbox.insert({
        seq,
        id: event.id,
        semantic: event.semanticKey ?? null,
        kind: event.kind,
        payload,
        receivedAt: now,
        claim,
      });
      metrics.count(fresh ? "inboundJournaled" : "inboundDuplicates");
      results.push(fresh ? "accepted" : "duplicate");
      if (fresh && claim !== null) {
        const row = journal.inbox.get(seq);
        if (row !== undefined) receipt.claimed = { row, claim };
        idle = false;
      }
    }
    if (results.some((result) => result === "accepted")) alarm.arm(now + this.#core.watchdogMs);
    receipt.answer = { ok: true, results };
    return receipt;
  }

  #admitBad(
    seq: number,
    item: { id: string; error: string; sample: string },
    now: number,
    receipt: Receipt,
  ): Admitted {
    const owed = this.#core.bot.hasListener("durability:dead") ? OWES.dead : 0;
    const fresh = this.#core.journal.inbox.insert({
      seq,
      id: item.id,
      semantic: null,
      kind: BAD_KIND,
      payload: JSON.stringify({ truncated: item.sample.slice(0, SAMPLE_LENGTH) }),
      receivedAt: now,
      claim: null,
      dead: item.error,
      owed,
    });
    if (!fresh) return "duplicate";
    this.#core.metrics.count("inboundDead");
    receipt.dead.push(seq);
    this.#core.alarm.arm(now + this.#core.watchdogMs);
    this.#onTrouble();
    return "dead";
  }

  /** Starts the turn loop unless it runs. */
  kick(): void {
    if (this.#running) return;
    this.#running = true;
    this.#core.host.keepAlive(this.#run());
  }

  async #run(): Promise<void> {
    for (;;) {
      let running: number | undefined;
      try {
        const next = this.#next();
        if (next === undefined) break;
        running = next.row.seq;
        await this.#runner.run(next.row, next.claim);
      } catch (error) {
        // The journal failed; the record keeps its wake-up, so the alarm tries again.
        this.#core.host.log.error("a turn could not be recorded", { error: String(error) });
        this.#pausedUntil = this.#core.now() + PAUSE_MS;
        this.#lost = running;
        break;
      }
    }
    this.#running = false;
    this.#rest();
  }

  /** Claims the next event that may run. No await from here to the flag that the loop stopped. */
  #next(): { row: InboxRow; claim: string } | undefined {
    const claimed = this.#claimed;
    this.#claimed = undefined;
    if (claimed !== undefined) return claimed;
    if (!this.#core.journal.exists()) return undefined;
    const now = this.#core.now();
    let after = 0;
    for (;;) {
      const rows = this.#core.journal.inbox.open(after, SLICE);
      for (const row of rows) {
        after = row.seq;
        if (row.state === "dead" || row.state === "done") {
          if (row.due_at === null || row.due_at <= now) this.#outbox.announcer.pushEvent(row.seq);
          continue;
        }
        if (row.due_at !== null && row.due_at > now) {
          if ((row.flags & FLAG.parked) !== 0) continue;
          return undefined;
        }
        const claim = this.#claim(row, now);
        if (claim === "dead") continue;
        return claim === "wait" ? undefined : { row, claim };
      }
      if (rows.length < SLICE) return undefined;
    }
  }

  #claim(row: InboxRow, now: number): string {
    const { journal, settings, host } = this.#core;
    const reached = row.runs === 0 ? 0 : this.#reached(row.seq);
    const plan = planClaim(row, reached, now, settings.inbox, host.random());
    if (plan.do === "dead") {
      this.#die(row, plan.stalled, plan.why);
      return "dead";
    }
    if (plan.do === "wait") {
      journal.commit("inbox.wait", () => {
        journal.inbox.update(row, { due_at: plan.until });
        this.#core.alarm.arm(plan.until);
      });
      return "wait";
    }
    const claim = this.#core.claim();
    journal.commit("inbox.claim", () => {
      journal.inbox.move(row, "processing", {
        claim,
        runs: row.runs + 1,
        stalled: plan.stalled,
        progress: reached,
        ...(row.due_at === null ? {} : { due_at: null }),
      });
      this.#core.alarm.arm(now + this.#core.watchdogMs);
    });
    if (row.runs > 1) this.#onTrouble();
    return claim;
  }

  /** How far earlier runs got: ordinals and steps on record. A diverged send is no progress. */
  #reached(seq: number): number {
    const { outbox, side } = this.#core.journal;
    const sends = outbox
      .ofTurn(seq)
      .filter((row) => row.part === 0 && !row.slot.includes("~")).length;
    return sends + side.countSteps(seq);
  }

  #die(row: InboxRow, stalled: number, why: string): void {
    const { journal, metrics, bot } = this.#core;
    const owed = bot.hasListener("durability:dead") ? OWES.dead : 0;
    journal.commit("inbox.dead", () => {
      // A retry that failed for good is moved through its run, which the table permits.
      if (row.state === "pending") journal.inbox.move(row, "processing");
      journal.inbox.move(row, "dead", {
        stalled,
        error: `given up: ${why}`,
        finished_at: this.#core.now(),
        due_at: null,
        claim: null,
        owed,
        open: owed === 0 ? 0 : 1,
      });
      this.#outbox.closeTurn(
        new TurnSends(row.seq, row.id, journal.outbox.ofTurn(row.seq)),
        "dead",
      );
    });
    metrics.count("inboundDead");
    this.#core.host.log.error("an event is given up", { id: row.id, why });
    this.#onTrouble();
    this.#outbox.announcer.pushEvent(row.seq);
    this.#outbox.kick();
  }

  /** Runs an event again, for an operator. Returns whether it could. */
  replay(row: InboxRow): boolean {
    if (row.state === "pending" || row.state === "processing") return false;
    // What never was a readable event cannot be run.
    if (row.kind === BAD_KIND) return false;
    const applied = row.state === "done" && row.error === null;
    this.#core.journal.commit("inbox.replay", () => {
      this.#core.journal.inbox.move(row, "pending", {
        // One run is remembered, so that the next looks for what was recorded.
        runs: 1,
        stalled: 0,
        progress: -1,
        // Counted anew: an old event must not die of its age at the first crash.
        received_at: this.#core.now(),
        error: null,
        owed: 0,
        due_at: null,
        claim: null,
        open: 1,
        flags: applied ? FLAG.applied : row.flags & FLAG.applied,
      });
      this.#core.alarm.arm(this.#core.now() + this.#core.watchdogMs);
    });
    this.kick();
    return true;
  }

  /** Gives an event up, for an operator. Returns whether it could. */
  discard(row: InboxRow): boolean {
    if (row.state === "processing" || row.state === "done") return false;
    const sends = new TurnSends(row.seq, row.id, this.#core.journal.outbox.ofTurn(row.seq));
    this.#core.journal.commit("inbox.discard", () => {
      const patch = {
        error: "discarded by an operator",
        finished_at: this.#core.now(),
        owed: 0,
        open: 0,
        due_at: null,
      };
      if (row.state === "dead") this.#core.journal.inbox.update(row, patch);
      else this.#core.journal.inbox.move(row, "dead", patch);
      this.#outbox.closeTurn(sends, "dead");
    });
    this.#outbox.kick();
    this.kick();
    return true;
  }

  /** When the alarm is needed for events that no live loop holds. */
  nextDue(): number | undefined {
    const now = this.#core.now();
    let next: number | undefined;
    let after = 0;
    for (;;) {
      const rows = this.#core.journal.inbox.open(after, SLICE);
      for (const row of rows) {
        after = row.seq;
        const over = row.state === "dead" || row.state === "done";
        const ready = Math.max(now, this.#pausedUntil);
        // Claimed by this life: the watchdog that its claim armed covers it.
        const mine =
          row.seq !== this.#lost && row.claim?.startsWith(`${this.#core.incarnation}.`) === true;
        const at = row.due_at ?? (over || mine ? now + this.#core.watchdogMs : ready);
        next = Math.min(next ?? at, at);
        // Everything behind an event that is not parked waits for it.
        if (!over && (row.flags & FLAG.parked) === 0) return next;
      }
      if (rows.length < SLICE) break;
    }
    return next;
  }

  #rest(): void {
    if (!this.#core.journal.exists()) return;
    const next = this.nextDue();
    if (next === undefined || !this.#core.alarm.isLaterThan(next)) return;
    try {
      this.#core.journal.commit("inbox.arm", () => this.#core.alarm.arm(next));
    } catch (error) {
      this.#core.host.log.error("the alarm could not be set", { error: String(error) });
    }
  }
}
