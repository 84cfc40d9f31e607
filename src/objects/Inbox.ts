/**
 * The inbox of one chat: admits events, and runs their turns one at a time in order of arrival. A turn
 * is "live" while its incarnation runs it; any other open record is an orphan of a process that died.
 *
 * @module
 */
import type { MediaRef } from "../channels/events.ts";
import type { Flows } from "../flows/Flows.ts";
import { DISCARDED, FLAG, type InboxRow } from "../journal/records.ts";
import { TurnSends } from "../outbox/TurnSends.ts";
import { eventOf } from "../turns/burst.ts";
import type { TurnRunner } from "../turns/TurnRunner.ts";
import {
  Admission,
  BAD_KIND,
  type Receipt,
  type ReceiveAnswer,
  type ReceiveRequest,
  type Running,
} from "./Admission.ts";
import { Claims, JOINED } from "./Claims.ts";
import type { Core } from "./Core.ts";
import type { Outbox } from "./Outbox.ts";
import { Unjournaled } from "./Unjournaled.ts";

/** Open records read at a time. */
const SLICE = 32;
/** How long the loop rests when the journal failed, in ms. */
const PAUSE_MS = 1_000;

/** The inbox of one actor. */
export class Inbox {
  readonly #core: Core;
  readonly #outbox: Outbox;
  readonly #runner: TurnRunner;
  readonly #admission: Admission;
  readonly #claims: Claims;
  #running = false;
  /** An event whose run ended without its commit: claimed, and nobody runs it. */
  #lost: number | undefined;
  /** Until when the loop rests, because the journal failed. */
  #pausedUntil = 0;
  /** Made by the first event that the journal refuses, where `failOpen` is on. */
  #unjournaled: Unjournaled | undefined;
  /** An event that was claimed in the commit that admitted it. */
  #claimed: { row: InboxRow; claim: string } | undefined;

  constructor(core: Core, outbox: Outbox, runner: TurnRunner, onTrouble: () => void) {
    this.#core = core;
    this.#outbox = outbox;
    this.#runner = runner;
    this.#admission = new Admission(core, outbox);
    this.#claims = new Claims(core, outbox, onTrouble, (id) => this.onEnded(id));
  }

  /** Told of each event that is over without a turn of its own; filled in by the engine. */
  onEnded: (id: string) => void = () => undefined;

  /** The chat's flows, which know whose messages are answers. */
  connect(flows: () => Flows): void {
    this.#claims.flows = flows;
    const { journal } = this.#core;
    this.#admission.isTalking = (sender) =>
      journal.exists() && journal.hasFlows && flows().isTalking(sender);
  }

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
    const unjournaled = this.#unjournaled ?? new Unjournaled(this.#core, this.#admission);
    this.#unjournaled = unjournaled;
    this.#admission.ranUnjournaled = (id) => unjournaled.has(id);
    const answer = unjournaled.push(request, error);
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
        const unjournaled = this.#unjournaled?.take();
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
    this.#claims.wakeRested(now);
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
        const claim = this.#claims.claim(row, now);
        if (claim === "passed") continue;
        return claim === "waits" ? undefined : { row, claim: claim.id };
      }
      if (rows.length < SLICE) return undefined;
    }
  }

  /** Runs an event again, for an operator. Returns whether it could. */
  replay(row: InboxRow): boolean {
    if (row.state === "pending" || row.state === "processing") return false;
    // What never was a readable event cannot be run.
    if (row.kind === BAD_KIND) return false;
    // It was an answer to a question that is no longer asked.
    if ((row.flags & FLAG.inRun) !== 0) return false;
    if (row.claim?.startsWith(JOINED) === true) {
      const first = this.#core.journal.inbox.byId(row.claim.slice(JOINED.length));
      return first !== undefined && this.replay(first);
    }
    // An interrupted turn is done, and its state was dropped.
    const settled = row.error === null && (row.flags & FLAG.interrupted) === 0;
    const applied = row.state === "done" && settled;
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

  /** A turn that failed is over: given up, it only leaves what somebody has to look at. */
  #settleFailed(row: InboxRow): boolean {
    if (row.error?.startsWith(DISCARDED)) return false;
    this.#core.journal.commit("inbox.discard", () =>
      this.#core.journal.inbox.update(row, { error: `${DISCARDED}; it was: ${row.error}` }),
    );
    this.#core.onTrouble();
    return true;
  }

  /** Gives an event up, for an operator. Returns whether it could. */
  discard(row: InboxRow): boolean {
    if (row.state === "processing" || (row.state === "done" && row.error === null)) return false;
    if (row.state === "done") return this.#settleFailed(row);
    const sends = new TurnSends(row.seq, row.id, this.#core.journal.outbox.ofTurn(row.seq));
    this.#core.journal.commit("inbox.discard", () => {
      const patch = {
        error: DISCARDED,
        finished_at: this.#core.now(),
        owed: 0,
        open: 0,
        due_at: null,
      };
      if (row.state === "dead") this.#core.journal.inbox.update(row, patch);
      else this.#core.journal.inbox.move(row, "dead", patch);
      this.#outbox.closeTurn(sends, "dead");
      if (row.kind === "timer") this.#claims.died(row, "discarded by an operator");
    });
    this.onEnded(row.id);
    this.#core.onTrouble();
    this.#outbox.kick();
    this.kick();
    return true;
  }

  /** When the alarm is needed for events that no live loop holds. */
  nextDue(): number | undefined {
    const now = this.#core.now();
    let next = this.#claims.restsUntil(now);
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
        const waits = over || mine || row.due_at !== null;
        const burst = waits ? undefined : this.#claims.burst(row, now);
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
