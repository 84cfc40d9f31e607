/**
 * The inbox of one chat: admits events, and runs their turns one at a time in order of arrival. A turn
 * is "live" while its incarnation runs it; any other open record is an orphan of a process that died.
 *
 * @module
 */
import type { MediaRef } from "../channels/events.ts";
import { FLAG, type InboxRow, OWES } from "../journal/records.ts";
import { TurnSends } from "../outbox/TurnSends.ts";
import { type BurstPlan, eventOf, mayJoin, planBurst } from "../turns/burst.ts";
import { planClaim } from "../turns/poison.ts";
import type { TurnRunner } from "../turns/TurnRunner.ts";
import {
  Admission,
  BAD_KIND,
  type Receipt,
  type ReceiveAnswer,
  type ReceiveRequest,
  type Running,
} from "./Admission.ts";
import type { Core } from "./Core.ts";
import { LoopGuard } from "./LoopGuard.ts";
import { formatAddress } from "./names.ts";
import type { Outbox } from "./Outbox.ts";
import { Unjournaled } from "./Unjournaled.ts";

/** Open records read at a time. */
const SLICE = 32;
/** How long the loop rests when the journal failed, in ms. */
const PAUSE_MS = 1_000;

/** In the `claim` of a message that joined another's turn: before the other's id. */
const JOINED = "joined ";

/** The inbox of one actor. */
export class Inbox {
  readonly #core: Core;
  readonly #outbox: Outbox;
  readonly #runner: TurnRunner;
  readonly #onTrouble: () => void;
  readonly #admission: Admission;
  readonly #loopGuard: LoopGuard;
  #running = false;
  /** An event whose run ended without its commit: claimed, and nobody runs it. */
  #lost: number | undefined;
  /** Until when the loop rests, because the journal failed. */
  #pausedUntil = 0;
  readonly #unjournaled: Unjournaled;
  /** An event that was claimed in the commit that admitted it. */
  #claimed: { row: InboxRow; claim: string } | undefined;

  constructor(core: Core, outbox: Outbox, runner: TurnRunner, onTrouble: () => void) {
    this.#core = core;
    this.#outbox = outbox;
    this.#runner = runner;
    this.#onTrouble = onTrouble;
    this.#admission = new Admission(core, outbox);
    this.#unjournaled = new Unjournaled(core);
    this.#loopGuard = new LoopGuard(core.bot.busy.loopGuard);
  }

  /** Told of each message that joined another's turn; filled in by the engine. */
  onJoined: (id: string) => void = () => undefined;

  /** Whether a turn is running. */
  get live(): boolean {
    return this.#running;
  }

  /** Admits events, statuses and echoes in one commit, then starts their turns. */
  receive(request: ReceiveRequest): Receipt {
    const { journal } = this.#core;
    const receipt = journal.commit("inbox.receive", () =>
      this.#admission.admit(request, this.#runningTurn(), !this.#running),
    );
    this.#claimed = receipt.claimed ?? this.#claimed;
    for (const seq of receipt.dead) this.#outbox.announcer.pushEvent(seq);
    for (const { row } of receipt.statuses) this.#outbox.tell(row);
    if (receipt.statuses.length > 0) this.#outbox.kick();
    if (receipt.interrupted !== undefined) this.#runner.interrupt(receipt.interrupted);
    this.kick();
    return receipt;
  }

  /** Runs events that the journal refused without a record: what `failOpen` asks for. */
  dispatchUnjournaled(request: ReceiveRequest, error: unknown): ReceiveAnswer {
    const answer = this.#unjournaled.push(request, error);
    this.kick();
    return answer;
  }

  /** Media references of an event that the journal could not keep. */
  takeLiveMedia(id: string): MediaRef[] | undefined {
    return this.#admission.takeLiveMedia(id);
  }

  /** The turn that a new message may interrupt: the one that runs, or that a dead process left. */
  #runningTurn(): Running | undefined {
    if (this.#core.bot.busy.mode !== "interrupt") return undefined;
    const row = this.#runner.current ?? this.#orphan();
    if (row === undefined) return undefined;
    const event = eventOf(row);
    return { row, sender: event?.sender?.id, group: event?.groupId };
  }

  /** The first event that a dead process left in its turn. */
  #orphan(): InboxRow | undefined {
    const { journal } = this.#core;
    if (!journal.exists()) return undefined;
    return journal.inbox.open(0, SLICE).find((one) => one.state === "processing");
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
        const unjournaled = this.#unjournaled.take();
        if (unjournaled !== undefined) {
          await this.#runner.runUnjournaled(unjournaled);
          continue;
        }
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
        if ((row.flags & FLAG.interrupted) !== 0) {
          this.#endInterrupted(row);
          continue;
        }
        const burst = this.#burst(row, now);
        if (burst !== undefined && burst.readyAt > now) return undefined;
        if (this.#guard(row, now)) continue;
        const claim = this.#claim(row, now, burst);
        if (claim === "dead") continue;
        return claim === "wait" ? undefined : { row, claim };
      }
      if (rows.length < SLICE) return undefined;
    }
  }

  /** What a message that may wait for others waits for. */
  #burst(row: InboxRow, now: number): BurstPlan | undefined {
    const { journal, bot } = this.#core;
    if (!mayJoin(row, bot.busy)) return undefined;
    return planBurst(row, journal.inbox.open(row.seq, SLICE), bot.busy, now);
  }

  /** Two bots in a loop: their messages rest for a while, people's go on. Returns whether this one rests. */
  #guard(row: InboxRow, now: number): boolean {
    if (row.runs > 0 || !row.payload.includes('"isBot":true')) return false;
    const event = eventOf(row);
    if (event?.sender?.isBot !== true) return false;
    const { at, fresh } = this.#loopGuard.ask(now);
    if (at <= now) return false;
    this.#core.journal.commit("inbox.wait", () => {
      this.#core.journal.inbox.update(row, { due_at: at, flags: row.flags | FLAG.parked });
      this.#core.alarm.arm(at);
    });
    if (fresh) this.#announcePause(event.sender.id, at);
    return true;
  }

  #announcePause(sender: string, until: number): void {
    const { host } = this.#core;
    host.log.warn("messages of other bots rest: they come too fast (loopGuard)", { sender, until });
    this.#onTrouble();
    const chatId = formatAddress(this.#core.address());
    this.#outbox.announcer.tell("durability:paused", {
      chatId,
      reason: "loop_guard",
      sender,
      until,
    });
  }

  /** Its process died between the stamp and the end of its turn. */
  #endInterrupted(row: InboxRow): void {
    const { journal } = this.#core;
    journal.commit("turn.interrupt", () => {
      if (row.state === "pending") journal.inbox.move(row, "processing");
      journal.inbox.move(row, "done", {
        finished_at: this.#core.now(),
        open: 0,
        claim: null,
        due_at: null,
      });
      const sends = new TurnSends(row.seq, row.id, journal.outbox.ofTurn(row.seq));
      this.#outbox.closeTurn(sends, "interrupted");
    });
    this.#outbox.kick();
  }

  #claim(row: InboxRow, now: number, burst: BurstPlan | undefined): string {
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
        ...(burst?.payload === undefined ? {} : { payload: burst.payload }),
      });
      // Their words are in the first one's record now, and share its fate.
      for (const member of burst?.members ?? []) {
        journal.inbox.move(member, "done", {
          finished_at: now,
          open: 0,
          claim: `${JOINED}${row.id}`,
        });
      }
      this.#core.alarm.arm(now + this.#core.watchdogMs);
    });
    for (const member of burst?.members ?? []) this.onJoined(member.id);
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
    if (row.claim?.startsWith(JOINED) === true) {
      const first = this.#core.journal.inbox.byId(row.claim.slice(JOINED.length));
      return first !== undefined && this.replay(first);
    }
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
        const burst = over || mine || row.due_at !== null ? undefined : this.#burst(row, now);
        const at =
          row.due_at ??
          (over || mine ? now + this.#core.watchdogMs : Math.max(ready, burst?.readyAt ?? 0));
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
