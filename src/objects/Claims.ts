/**
 * Claims: whether a waiting event may run now, with whom, and what ends without a run.
 *
 * @module
 */
import type { Flows } from "../flows/Flows.ts";
import { OPEN } from "../journal/OpenRecords.ts";
import { FLAG, type InboxRow, OWES } from "../journal/records.ts";
import { TurnSends } from "../outbox/TurnSends.ts";
import { type BurstPlan, eventOf, mayJoin, planBurst } from "../turns/burst.ts";
import { planClaim } from "../turns/poison.ts";
import type { Core } from "./Core.ts";
import { LoopGuard } from "./LoopGuard.ts";
import { formatAddress } from "./names.ts";
import type { Outbox } from "./Outbox.ts";

/** Records read at a time. */
const SLICE = 32;

/** In the `claim` of a message that joined another's turn: before the other's id. */
export const JOINED = "joined ";

/** What became of an event: its run's claim; others wait for it; the next may be looked at. */
export type Claimed = { id: string } | "waits" | "passed";

/** Decides and records what an event does next. */
export class Claims {
  readonly #core: Core;
  readonly #outbox: Outbox;
  readonly #onTrouble: () => void;
  readonly #onEnded: (id: string) => void;
  readonly #loopGuard: LoopGuard;
  /** The chat's flows; filled in by the engine. */
  flows: (() => Flows) | undefined;

  constructor(core: Core, outbox: Outbox, onTrouble: () => void, onEnded: (id: string) => void) {
    this.#core = core;
    this.#outbox = outbox;
    this.#onTrouble = onTrouble;
    this.#onEnded = onEnded;
    this.#loopGuard = new LoopGuard(core.bot.busy.loopGuard);
  }

  /** Claims an event whose time has come. */
  claim(row: InboxRow, now: number): Claimed {
    if ((row.flags & FLAG.interrupted) !== 0) {
      this.#endInterrupted(row);
      return "passed";
    }
    const burst = this.burst(row, now);
    if (burst !== undefined && burst.readyAt > now) return "waits";
    if (this.#guard(row, now)) return "passed";
    return this.#claim(row, now, burst);
  }

  /** An event is given up, and with it the run of a flow that waits for it. Call inside that commit. */
  died(row: InboxRow, why: string): void {
    if (this.#core.journal.hasFlows) this.flows?.().died(row, why);
  }

  /** Puts events whose rest is over back into the queue: other bots' one by one, when nobody waits. */
  wakeRested(now: number): void {
    const { journal } = this.#core;
    if (journal.inbox.resting() === 0) return;
    const rows = journal.inbox.rested(OPEN.resting, now, SLICE);
    const free = rows.length === 0 && journal.inbox.waiting() === 0;
    if (free && this.#loopGuard.room(now) > 0)
      rows.push(...journal.inbox.rested(OPEN.guarded, now, 1));
    if (rows.length === 0) return;
    journal.commit("inbox.wait", () => {
      for (const row of rows) journal.inbox.wake(row);
      this.#core.alarm.arm(now + this.#core.watchdogMs);
    });
  }

  /** When the next resting event may run. */
  restsUntil(now: number): number | undefined {
    const { inbox } = this.#core.journal;
    if (inbox.resting() === 0) return undefined;
    const own = inbox.restsUntil(OPEN.resting);
    const guarded = inbox.restsUntil(OPEN.guarded);
    if (guarded === undefined) return own;
    return Math.min(own ?? Infinity, Math.max(guarded, this.#loopGuard.roomAt(now)));
  }

  /** What a message that may wait for others waits for. */
  burst(row: InboxRow, now: number): BurstPlan | undefined {
    const { journal, bot } = this.#core;
    if (!mayJoin(row, bot.busy)) return undefined;
    // Two answers to a flow are two answers: the newer does not stand for the older.
    if (
      bot.busy.mode === "interrupt" &&
      journal.hasFlows &&
      this.flows?.().isTalking(eventOf(row)?.sender?.id)
    )
      return undefined;
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
      this.#core.journal.inbox.rest(row, at, OPEN.guarded);
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
    this.#onEnded(row.id);
    this.#outbox.kick();
  }

  #claim(row: InboxRow, now: number, burst: BurstPlan | undefined): Claimed {
    const { journal, settings, host } = this.#core;
    const reached = row.runs === 0 ? 0 : this.#reached(row);
    const plan = planClaim(row, reached, now, settings.inbox, host.random());
    if (plan.do === "dead") {
      this.#die(row, plan.stalled, plan.why);
      return "passed";
    }
    if (plan.do === "wait") {
      journal.commit("inbox.wait", () => {
        journal.inbox.update(row, { due_at: plan.until });
        this.#core.alarm.arm(plan.until);
      });
      return "waits";
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
    for (const member of burst?.members ?? []) this.#onEnded(member.id);
    if (row.runs > 1) this.#onTrouble();
    return { id: claim };
  }

  /** How far earlier runs got: ordinals and steps on record. A diverged send is no progress. */
  #reached(row: InboxRow): number {
    const { seq } = row;
    const { outbox, side, hasFlows } = this.#core.journal;
    const sends = outbox
      .ofTurn(seq)
      .filter((row) => row.part === 0 && !row.slot.includes("~")).length;
    return sends + side.countSteps(seq) + (hasFlows ? (this.flows?.().reached(row) ?? 0) : 0);
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
      this.died(row, why);
    });
    metrics.count("inboundDead");
    this.#core.host.log.error("an event is given up", { id: row.id, why });
    this.#onEnded(row.id);
    this.#onTrouble();
    this.#outbox.announcer.pushEvent(row.seq);
    this.#outbox.kick();
  }
}
