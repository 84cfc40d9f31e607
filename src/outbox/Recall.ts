/**
 * What the journal already knows of a send: a replay is answered from the record, a used key too, and a
 * handler that says something else than before has diverged (design §6, §17).
 *
 * @module
 */
import {
  isOpen,
  type OutboxExtra,
  type OutboxRow,
  readExtra,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { type Deliveries, intentOf, outcomeOf } from "./Deliveries.ts";
import type { Drain, Started } from "./Drain.ts";
import type { Decided, Draft } from "./draft.ts";
import { keyOf } from "./keys.ts";
import type { TurnSends } from "./TurnSends.ts";

/** Answers from the record of one chat. */
export class Recall {
  readonly #core: Core;
  readonly #drain: Drain;
  readonly #deliveries: Deliveries;

  constructor(core: Core, drain: Drain, deliveries: Deliveries) {
    this.#core = core;
    this.#drain = drain;
    this.#deliveries = deliveries;
  }

  /** The answer from the record, where there is one. */
  known(draft: Draft): Promise<Decided> | undefined {
    const { outbox } = this.#core.journal;
    const { sends } = draft.intent;
    if (draft.intent.options.idempotencyKey !== undefined && draft.key !== null) {
      const head = outbox.byKey(draft.key);
      if (head === undefined) {
        // Held back for the settle: there is a send under this key, though no row yet.
        return sends?.recorded(draft.slot) === undefined
          ? undefined
          : Promise.resolve({ key: draft.publicKey, outcome: { status: "deferred", rows: [] } });
      }
      if (
        sends?.settledBefore !== true &&
        draft.intent.options.onConflict === "replace" &&
        this.#replaceable(draft, head, true)
      )
        return undefined;
      sends?.consume(head.slot);
      return this.#fromRecord(draft, head);
    }
    if (sends?.isConsumed(draft.slot)) {
      // Another call of this run has taken what was recorded here: this one gets a row of its own.
      draft.slot = `${draft.slot}~${draft.fingerprint}`;
      draft.publicKey = keyOf({ key: null, slot: draft.slot, part: 0 }, sends.id);
    }
    const head = sends?.recorded(draft.slot);
    if (sends === undefined || head === undefined) return undefined;
    const current = outbox.get(head.turn, head.pos) ?? head;
    if (!sends.settledBefore && wasTakenBack(current) && this.#replaceable(draft, current)) {
      // The run that took it back failed; this one may say it.
      draft.pos = current.pos;
      sends.consume(draft.slot);
      return undefined;
    }
    const fixed = sends.isFixed(draft.slot) && !sends.settledBefore;
    const same = current.fingerprint === draft.fingerprint;
    if ((same || fixed) && readExtra(current).superseded !== true) {
      sends.consume(draft.slot);
      return this.#fromRecord(draft, current);
    }
    return this.#diverged(draft, sends, current);
  }

  /** The handler now says something else than the recorded send of this ordinal (§6, §17). */
  #diverged(draft: Draft, sends: TurnSends, recorded: OutboxRow): Promise<Decided> | undefined {
    const { outbox } = this.#core.journal;
    const same = sends.unconsumed(draft.intent.scope, draft.fingerprint);
    if (same !== undefined) {
      sends.consume(same.slot);
      return this.#fromRecord(draft, outbox.get(same.turn, same.pos) ?? same);
    }
    sends.consume(recorded.slot);
    if (sends.settledBefore) return this.#fromRecord(draft, recorded);
    if (this.#replaceable(draft, recorded)) {
      draft.pos = recorded.pos;
      return undefined;
    }
    if (this.#core.settings.outbox.onDiverged === "skip") return this.#fromRecord(draft, recorded);
    this.#core.metrics.count("outboxDiverged");
    this.#core.host.log.warn("a replayed turn says something else than before", {
      key: draft.publicKey,
    });
    this.#supersede(recorded);
    const second = sends.divergedFrom(draft.slot);
    const slot = `${draft.slot}~${draft.fingerprint}`;
    if (second !== undefined) {
      sends.consume(second.slot);
      const now = outbox.get(second.turn, second.pos) ?? second;
      if (now.slot === slot) return this.#fromRecord(draft, now);
      if (!this.#replaceable(draft, now)) {
        return Promise.resolve({
          key: draft.publicKey,
          outcome: { status: "suppressed", rows: [] },
          reason: "diverged",
        });
      }
    }
    draft.slot = slot;
    draft.publicKey = keyOf({ key: null, slot, part: 0 }, sends.id);
    return undefined;
  }

  /**
   * Whether an intent is proven unsent, so that another takes its place: then its rows go in the commit
   * that records the new one.
   */
  #replaceable(draft: Draft, head: OutboxRow, orCancelled = false): boolean {
    const rows = this.#core.journal.outbox.partsOf(head);
    const free = (row: OutboxRow): boolean =>
      (orCancelled && row.state === "suppressed" && readExtra(row).reason === "cancelled") ||
      wasTakenBack(row) ||
      ((row.state === "pending" || row.state === "failed") && row.first_maybe_at === null);
    if (!rows.every(free) || rows.some((row) => this.#drain.isInFlight(row))) return false;
    draft.replaces = rows;
    return true;
  }

  /** Marks a send that may be under way as replaced: it ends as it ends, but is not repeated. */
  #supersede(head: OutboxRow): void {
    const { outbox } = this.#core.journal;
    const rows = outbox.partsOf(head).filter(isOpen);
    if (rows.length === 0) return;
    this.#core.journal.commit("outbox.supersede", () => {
      for (const row of rows) {
        const extra: OutboxExtra = { ...readExtra(row), superseded: true };
        const now = this.#core.now();
        const unsent =
          row.first_maybe_at === null && (row.state === "pending" || row.state === "failed");
        if (this.#drain.isInFlight(row)) {
          outbox.update(row, { extra: writeExtra(extra) });
          this.#drain.hold(row);
        } else if (unsent) {
          outbox.move(row, "suppressed", {
            extra: writeExtra({ ...extra, reason: "diverged" }),
            due_at: null,
            finished_at: now,
          });
        } else if (row.state === "failed") {
          // It may have been sent, and nobody wants it repeated.
          outbox.move(row, "unknown", {
            extra: writeExtra({ ...extra, held: true, action: "held" }),
            due_at: row.owed === 0 ? null : now,
            finished_at: now,
          });
        } else {
          outbox.update(row, { extra: writeExtra(extra) });
          this.#drain.hold(row);
        }
      }
    });
  }

  /** Answers from the record: a finished send as it ended, an open one by joining its delivery. */
  #fromRecord(draft: Draft, head: OutboxRow): Promise<Decided> {
    this.#core.metrics.count("outboxDeduped");
    const { inbox, outbox } = this.#core.journal;
    const { sends } = draft.intent;
    const own = sends !== undefined && sends.seq === head.turn;
    const rows = outbox.partsOf(head);
    const event = own ? undefined : inbox.get(head.turn);
    const key = keyOf(head, event?.id ?? sends?.id);
    const outcome = outcomeOf(rows);
    if (sends !== undefined && !own && sends.earlier(head.slot) !== undefined) {
      // Of an earlier turn of a run: it is told what it was told then, whatever became of the send since.
      const since = (row: OutboxRow) => (row.finished_at ?? 0) > (event?.finished_at ?? 0);
      const later = outcome === undefined || rows.some(since);
      if (later) return Promise.resolve({ key, outcome: { status: "deferred", rows: [] } });
    }
    if (outcome !== undefined) {
      const reason = readExtra(head).reason;
      return Promise.resolve({ key, outcome, ...(reason === undefined ? {} : { reason }) });
    }
    if (own && draft.intent.wait) {
      for (const row of rows) if (isOpen(row)) this.#drain.hold(row);
    }
    return this.wait(draft, key, intentOf(head));
  }

  /** Waits for a delivery, where the caller does. `started` goes out in this turn of the event loop. */
  async wait(draft: Draft, key: string, intent: string, started?: Started): Promise<Decided> {
    if (!draft.intent.wait) {
      this.#drain.kick(started);
      return { key, outcome: { status: "deferred", rows: [] } };
    }
    const waiting = this.#deliveries.wait(
      intent,
      draft.intendedAt + this.#core.settings.outbox.inlineMaxMs,
    );
    this.#drain.kick(started);
    const outcome = await waiting;
    if (outcome.status === "deferred") {
      this.#core.metrics.count("outboxDeferred");
      this.#core.onTrouble();
    }
    return { key, outcome };
  }
}

/** Whether a send was dropped with the turn that failed or was stopped. */
function wasTakenBack(row: OutboxRow): boolean {
  if (row.state !== "suppressed") return false;
  const { reason } = readExtra(row);
  return reason === "turn_failed" || reason === "turn_aborted" || reason === "interrupted";
}
