/** Typed access to the inbox. @module */
import type { Sql, SqlRow, SqlValue } from "../host/Host.ts";
import { enforceInbox, type InboxRow, type InboxState } from "./records.ts";
import type { Schema } from "./schema.ts";

/** What an insert needs; the rest has defaults. */
export interface NewEvent {
  seq: number;
  id: string;
  semantic: string | null;
  kind: string;
  payload: string;
  receivedAt: number;
  /** Set when the event is claimed in the commit that admits it. */
  claim: string | null;
  /** A record that is dead on arrival, and whether a listener has to be told. */
  dead?: string;
  owed?: number;
}

/** Which records `list` returns. `failed` are turns that are done with an error. */
export type InboxFilter = InboxState | "failed";

const COLUMNS =
  "seq, id, semantic, kind, state, claim, runs, stalled, progress, due_at, flags, received_at, finished_at, error, payload, owed, open";

/** The inbox of one chat. */
export class InboxTable {
  readonly #sql: Sql;
  readonly #schema: Schema;
  /** Numbers of the open records; read once in a life. Unknown in a cold actor and after a rollback. */
  #openSeqs: OpenSeqs | undefined;
  /** The one open record, where it was admitted in this life: mostly there is no other to look for. */
  #sole: InboxRow | undefined;

  constructor(sql: Sql, schema: Schema) {
    this.#sql = sql;
    this.#schema = schema;
  }

  /** Inserts unless either key is known. Returns whether it was new. */
  insert(event: NewEvent): boolean {
    if (event.semantic !== null) this.#schema.need("semantic");
    if (event.dead !== undefined) this.#schema.need("trouble");
    const dead = event.dead !== undefined;
    const state: InboxState = dead ? "dead" : event.claim === null ? "pending" : "processing";
    const fresh =
      this.#sql.run(
        `INSERT INTO inbox (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, NULL, 0, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO NOTHING`,
        event.seq,
        event.id,
        event.semantic,
        event.kind,
        state,
        event.claim,
        event.claim === null ? 0 : 1,
        event.receivedAt,
        dead ? event.receivedAt : null,
        event.dead ?? null,
        event.payload,
        event.owed ?? 0,
        dead && !event.owed ? 0 : 1,
      ) > 0;
    if (fresh) this.#schema.grew();
    if (fresh && (!dead || event.owed)) {
      this.#opened(event.seq, !dead, dead ? undefined : event);
    }
    return fresh;
  }

  /** A record as `insert` writes it. */
  fresh(event: NewEvent): InboxRow {
    return {
      seq: event.seq,
      id: event.id,
      semantic: event.semantic,
      kind: event.kind,
      state: event.claim === null ? "pending" : "processing",
      claim: event.claim,
      runs: event.claim === null ? 0 : 1,
      stalled: 0,
      progress: 0,
      due_at: null,
      flags: 0,
      received_at: event.receivedAt,
      finished_at: null,
      error: null,
      payload: event.payload,
      owed: 0,
      open: 1,
    };
  }

  /** One record by its number. */
  get(seq: number): InboxRow | undefined {
    return this.#sql.all<InboxRow & SqlRow>(`SELECT ${COLUMNS} FROM inbox WHERE seq = ?`, seq)[0];
  }

  /** One record by its delivery key. */
  byId(id: string): InboxRow | undefined {
    return this.#sql.all<InboxRow & SqlRow>(`SELECT ${COLUMNS} FROM inbox WHERE id = ?`, id)[0];
  }

  /** Open records in order of arrival, from `after` (exclusive). */
  open(after: number, limit: number): InboxRow[] {
    const open = this.#open();
    if (open.size === 0) return [];
    if (this.#sole !== undefined) return this.#sole.seq > after ? [{ ...this.#sole }] : [];
    return this.#sql.all<InboxRow & SqlRow>(
      `SELECT ${COLUMNS} FROM inbox WHERE open = 1 AND seq > ? ORDER BY seq LIMIT ?`,
      after,
      limit,
    );
  }

  /**
   * How many events wait or run, counted up to `cap`. Asks nothing: a flood must not read all that waits
   * for each message that comes.
   */
  countOpen(cap: number): number {
    return Math.min(this.#open().waiting, cap);
  }

  /** The tables were made just now: there is no record. */
  born(): void {
    this.#openSeqs = new OpenSeqs();
    this.#sole = undefined;
  }

  /** Forgets what it knew: a transaction was rolled back, or all storage deleted. */
  forget(): void {
    this.#openSeqs = undefined;
    this.#sole = undefined;
  }

  #open(): OpenSeqs {
    if (this.#openSeqs === undefined) {
      this.#openSeqs = new OpenSeqs();
      const rows = this.#sql.all<{ seq: number; state: InboxState }>(
        `SELECT seq, state FROM inbox WHERE open = 1`,
      );
      for (const { seq, state } of rows) this.#openSeqs.set(seq, isWaiting(state));
    }
    return this.#openSeqs;
  }

  #opened(seq: number, waiting: boolean, event: NewEvent | undefined): void {
    if (this.#openSeqs === undefined) return;
    this.#openSeqs.set(seq, waiting);
    this.#sole = this.#openSeqs.size === 1 && event !== undefined ? this.fresh(event) : undefined;
  }

  /** Records in order, oldest first, from `after` (exclusive). */
  range(after: number, limit: number): InboxRow[] {
    return this.#sql.all<InboxRow & SqlRow>(
      `SELECT ${COLUMNS} FROM inbox WHERE seq > ? ORDER BY seq LIMIT ?`,
      after,
      limit,
    );
  }

  /** Records that match a filter, newest first, below `before` (exclusive). */
  list(filter: InboxFilter | undefined, before: number, limit: number): InboxRow[] {
    const page = `seq < ? ORDER BY seq DESC LIMIT ?`;
    if (filter === undefined)
      return this.#page(`SELECT ${COLUMNS} FROM inbox WHERE ${page}`, before, limit);
    if (filter === "pending" || filter === "processing") {
      return this.#page(
        `SELECT ${COLUMNS} FROM inbox WHERE open = 1 AND state = '${filter}' AND ${page}`,
        before,
        limit,
      );
    }
    if (filter === "done") {
      return this.#page(
        `SELECT ${COLUMNS} FROM inbox WHERE state = 'done' AND error IS NULL AND ${page}`,
        before,
        limit,
      );
    }
    if (!this.#schema.has("trouble")) return [];
    const state = filter === "failed" ? "done" : "dead";
    return this.#page(
      `SELECT ${COLUMNS} FROM inbox WHERE error IS NOT NULL AND state = '${state}' AND ${page}`,
      before,
      limit,
    );
  }

  /** Moves a record to a state, by the transition table, and keeps `row` in step. */
  move(row: InboxRow, to: InboxState, patch: Partial<InboxRow> = {}): void {
    enforceInbox(row.state, to);
    this.update(row, { ...patch, state: to });
  }

  /**
   * Moves a record only if `claim` still owns it: what a run that lost its claim would write, it must
   * not write. Returns whether it did.
   */
  moveIfClaimed(row: InboxRow, claim: string, to: InboxState, patch: Partial<InboxRow>): boolean {
    enforceInbox("processing", to);
    return this.#write(row, { ...patch, state: to }, ` AND claim = ? AND state = 'processing'`, [
      claim,
    ]);
  }

  /** Changes columns of a record, and keeps `row` in step. */
  update(row: InboxRow, patch: Partial<InboxRow>): void {
    this.#write(row, patch, "", []);
  }

  /** Deletes a finished record. */
  delete(seq: number): void {
    this.#sql.run(`DELETE FROM inbox WHERE seq = ?`, seq);
    this.#openSeqs?.delete(seq);
  }

  #write(row: InboxRow, patch: Partial<InboxRow>, guard: string, params: SqlValue[]): boolean {
    if (patch.error !== undefined && patch.error !== null) this.#schema.need("trouble");
    const names = Object.keys(patch) as (keyof InboxRow)[];
    const changed = this.#sql.run(
      `UPDATE inbox SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE seq = ?${guard}`,
      ...names.map((name) => patch[name] ?? null),
      row.seq,
      ...params,
    );
    if (changed > 0) {
      this.#follow(row, patch);
      Object.assign(row, patch);
    }
    return changed > 0;
  }

  /** Keeps what is known of open records in step with a write. */
  #follow(row: InboxRow, patch: Partial<InboxRow>): void {
    const { seq } = row;
    if (this.#sole?.seq === seq) Object.assign(this.#sole, patch);
    if (patch.open === 0) {
      this.#openSeqs?.delete(seq);
      if (this.#sole?.seq === seq) this.#sole = undefined;
    } else if (patch.open === 1) {
      this.#opened(seq, isWaiting(patch.state ?? row.state), undefined);
    } else if (patch.state !== undefined && this.#openSeqs?.has(seq)) {
      this.#openSeqs.set(seq, isWaiting(patch.state));
    }
  }

  #page(query: string, before: number, limit: number): InboxRow[] {
    return this.#sql.all<InboxRow & SqlRow>(query, before, limit);
  }
}

function isWaiting(state: InboxState): boolean {
  return state === "pending" || state === "processing";
}

/** Numbers of open records, and how many of them wait or run; the others have still to be announced. */
class OpenSeqs {
  readonly #waits = new Map<number, boolean>();
  waiting = 0;

  get size(): number {
    return this.#waits.size;
  }

  has(seq: number): boolean {
    return this.#waits.has(seq);
  }

  set(seq: number, waits: boolean): void {
    this.delete(seq);
    this.#waits.set(seq, waits);
    if (waits) this.waiting += 1;
  }

  delete(seq: number): void {
    if (this.#waits.get(seq) === true) this.waiting -= 1;
    this.#waits.delete(seq);
  }
}
