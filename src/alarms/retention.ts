/**
 * Purging finished records in bounded slices. Records go in batches, not one by one, so that the alarm
 * this needs is a small part of what it removes.
 *
 * @module
 */

import { sendsOf } from "../flows/records.ts";
import type { Journal } from "../journal/Journal.ts";
import { type InboxRow, isOpen, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { TROUBLE_RETENTION_MS } from "../turns/options.ts";

/** Records examined in one alarm. */
const SLICE = 200;
const DAY_MS = 86_400_000;
/** The longest that a purge waits for more to come due, in ms. */
const MAX_SLACK_MS = 6 * 3_600_000;

/** The retention of one chat. */
export class Retention {
  readonly #core: Core;
  /** Where the next slice goes on, when one was not enough. */
  #cursor = 0;
  /** When the next purge is due: epoch ms; `undefined` until it is computed. */
  #nextAt: number | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  /** How long finished records are kept, in ms: the option, or the channel's redelivery window and a day. */
  retentionMs(): number {
    const { settings, bot, journal } = this.#core;
    const identity = journal.identity();
    const channel = identity && bot.channel(identity.connection);
    return Math.max(
      settings.retentionMs,
      (channel?.capabilities.redelivery.windowMs ?? 0) + DAY_MS,
    );
  }

  /** When the alarm is needed for a purge. */
  nextAt(): number | undefined {
    if (!this.#core.journal.exists()) return undefined;
    this.#nextAt ??= this.#oldest();
    return this.#nextAt;
  }

  /** Deletes a slice of what is due. Returns whether the actor is empty now, so that its storage can go. */
  purge(): boolean {
    const { journal } = this.#core;
    const now = this.#core.now();
    const due = this.nextAt();
    // The process may have died between the purge of the last record and the deletion.
    if (due === undefined) return journal.exists() && journal.isEmpty();
    if (due > now) return false;
    const keep = this.retentionMs();
    const events = journal.inbox.range(this.#cursor, SLICE);
    const turns = new Set(journal.outbox.turns(this.#cursor, SLICE));
    const bySeq = new Map(events.map((row) => [row.seq, row]));
    const seqs = [...new Set([...bySeq.keys(), ...turns])].sort((a, b) => a - b).slice(0, SLICE);
    let next: number | undefined;
    const runs = keptRuns(journal);
    journal.commit("purge", () => {
      for (const seq of seqs) {
        const expiry = this.#expiry(
          seq,
          runs,
          bySeq.get(seq),
          turns.has(seq) ? journal.outbox.ofTurn(seq) : [],
          keep,
          now,
        );
        if (expiry <= now) {
          journal.inbox.delete(seq);
          if (journal.hasFlows) journal.flows.delete(seq);
          if (turns.has(seq)) journal.outbox.deleteTurn(seq);
          journal.side.deleteTurn(seq);
        } else {
          next = Math.min(next ?? expiry, expiry);
        }
        this.#cursor = seq;
        // Numbers are microseconds of arrival: whatever follows a record too young is younger still.
        if (seq / 1_000 + keep > now) break;
      }
    });
    const lastSeen = seqs.at(-1);
    const finished = seqs.length < SLICE || (lastSeen !== undefined && this.#cursor < lastSeen);
    if (finished) {
      this.#cursor = 0;
      this.#nextAt = next === undefined ? undefined : next + slack(keep);
      return next === undefined && journal.isEmpty();
    }
    this.#nextAt = now;
    return false;
  }

  /** Forgets what it computed: new records came, or storage went. */
  reset(): void {
    this.#cursor = 0;
    this.#nextAt = undefined;
  }

  #oldest(): number | undefined {
    const { journal } = this.#core;
    const keep = this.retentionMs();
    const now = this.#core.now();
    const due = (seq: number) => Math.ceil(seq / 1_000) + keep;
    const floor = journal.floor();
    if (floor !== undefined && due(floor) > now) return due(floor) + slack(keep);
    const first = journal.bounds()?.first;
    if (first === undefined) return undefined;
    const young = due(first);
    if (young > now) return young + slack(keep);
    // Old, but it may be kept for longer than others: look as the purge would.
    const runs = keptRuns(journal);
    let next: number | undefined;
    for (const row of journal.inbox.range(0, SLICE)) {
      const sends = journal.outbox.ofTurn(row.seq);
      const expiry = this.#expiry(row.seq, runs, row, sends, keep, now);
      next = Math.min(next ?? expiry, expiry);
      if (row.seq / 1_000 + keep > now) break;
    }
    return next === undefined ? young + slack(keep) : next + slack(keep);
  }

  /** When a record and its sends may go: epoch ms. */
  #expiry(
    seq: number,
    runs: KeptRuns,
    event: InboxRow | undefined,
    sends: readonly OutboxRow[],
    keep: number,
    now: number,
  ): number {
    if ((event !== undefined && event.open !== 0 && event.state !== "dead") || sends.some(isOpen))
      return now + keep;
    // What an active run did is what it is executed from.
    if (runs.active.has(seq)) return now + keep;
    const trouble =
      (event !== undefined && event.state === "dead") ||
      // A listener that never works keeps a record for this long, and no longer.
      sends.some((row) => row.state === "dead" || row.state === "unknown" || row.owed !== 0);
    const finished = Math.max(
      runs.finished(seq) ?? 0,
      event?.finished_at ?? 0,
      ...sends.map((row) => row.finished_at ?? row.created_at),
    );
    return finished + (trouble ? Math.max(keep, TROUBLE_RETENTION_MS) : keep);
  }
}

function slack(keepMs: number): number {
  return Math.min(MAX_SLACK_MS, Math.ceil(keepMs / 8));
}

/** What runs of flows keep. */
interface KeptRuns {
  /** Turns of active runs. */
  active: ReadonlySet<number>;
  /** When the run that a turn began ended, where it began one. */
  finished(seq: number): number | undefined;
}

function keptRuns(journal: Journal): KeptRuns {
  if (!journal.hasFlows) return { active: new Set(), finished: () => undefined };
  const active = new Set<number>();
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const rows = journal.flows.active(before, SLICE);
    for (const row of rows) {
      active.add(row.seq);
      for (const [turn] of sendsOf(row)) active.add(turn);
    }
    const last = rows.at(-1);
    if (rows.length < SLICE || last === undefined) break;
    before = last.seq;
  }
  return { active, finished: (seq) => journal.flows.bySeq(seq)?.finished_at ?? undefined };
}
