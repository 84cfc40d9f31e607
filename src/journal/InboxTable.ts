/** Typed access to the inbox. @module */
import type { Sql, SqlRow, SqlValue } from "../host/Host.ts";
import { OPEN, OpenRecords } from "./OpenRecords.ts";
import { DISCARDED, enforceInbox, FLAG, type InboxRow, type InboxState } from "./records.ts";
import type { Schema } from "./schema.ts";
import { updateText } from "./texts.ts";

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

type OpenLook = Pick<InboxRow, "seq" | "state" | "open"> & SqlRow;

/** The inbox of one chat. */
export class InboxTable {
  readonly #sql: Sql;
  readonly #schema: Schema;
  /** The open records; read once in a life. Unknown in a cold actor and after a rollback. */
  #known: OpenRecords | undefined;
  /** The one active record, where it was admitted in this life: mostly there is no other to look for. */
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
      this.#opened(event.seq, { state, open: OPEN.yes }, dead ? undefined : event);
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

  /** Whether a record with either of an event's keys is here. */
  knows(id: string, semantic: string | null): boolean {
    if (this.byId(id) !== undefined) return true;
    if (semantic === null || !this.#schema.has("semantic")) return false;
    return this.#sql.all(`SELECT 1 AS x FROM inbox WHERE semantic = ?`, semantic).length > 0;
  }

  /** Open records in order of arrival, from `after` (exclusive), without those at rest. */
  open(after: number, limit: number): InboxRow[] {
    const open = this.#open();
    if (open.active === 0) return [];
    if (this.#sole !== undefined) return this.#sole.seq > after ? [{ ...this.#sole }] : [];
    return this.#sql.all<InboxRow & SqlRow>(
      `SELECT ${COLUMNS} FROM inbox WHERE open = 1 AND seq > ? ORDER BY seq LIMIT ?`,
      after,
      limit,
    );
  }

  /** How many events wait or run. Asks nothing: a flood must not read all that waits for each message. */
  waiting(): number {
    return this.#open().waiting;
  }

  /** How many events rest. */
  resting(): number {
    return this.#open().resting;
  }

  /** Rests an event until a time: others pass it, and no look at the queue reads it before. */
  rest(row: InboxRow, until: number, open: typeof OPEN.resting | typeof OPEN.guarded): void {
    this.update(row, { due_at: until, flags: row.flags | FLAG.parked, open });
  }

  /** Puts an event that rested back into the queue, in its place. */
  wake(row: InboxRow): void {
    this.update(row, { flags: row.flags & ~FLAG.parked, open: OPEN.yes });
  }

  /** Resting events whose time has come, oldest first. */
  rested(open: typeof OPEN.resting | typeof OPEN.guarded, now: number, limit: number): InboxRow[] {
    if (!this.#rests()) return [];
    return this.#page(
      `SELECT ${COLUMNS} FROM inbox WHERE open = ? AND open > 1 AND due_at <= ? ORDER BY due_at, seq LIMIT ?`,
      open,
      now,
      limit,
    );
  }

  /** When the next resting event is due. */
  restsUntil(open: typeof OPEN.resting | typeof OPEN.guarded): number | undefined {
    if (!this.#rests()) return undefined;
    const [row] = this.#sql.all<{ due_at: number }>(
      `SELECT due_at FROM inbox WHERE open = ? AND open > 1 ORDER BY due_at LIMIT 1`,
      open,
    );
    return row?.due_at;
  }

  #rests(): boolean {
    return this.#schema.has("resting") && this.#open().resting > 0;
  }

  /** The tables were made just now: there is no record. */
  born(): void {
    this.#known = new OpenRecords();
    this.#sole = undefined;
  }

  /** Forgets what it knew: a transaction was rolled back, or all storage deleted. */
  forget(): void {
    this.#known = undefined;
    this.#sole = undefined;
  }

  #open(): OpenRecords {
    if (this.#known === undefined) {
      this.#known = new OpenRecords();
      const open = `SELECT seq, state, open FROM inbox WHERE open`;
      const looks = this.#schema.has("resting") ? [`${open} = 1`, `${open} > 1`] : [`${open} = 1`];
      for (const query of looks) {
        for (const row of this.#sql.all<OpenLook>(query)) this.#known.set(row.seq, row);
      }
    }
    return this.#known;
  }

  #opened(seq: number, row: Pick<InboxRow, "state" | "open">, event: NewEvent | undefined): void {
    if (this.#known === undefined) return;
    this.#known.set(seq, row);
    this.#sole = this.#known.active === 1 && event !== undefined ? this.fresh(event) : undefined;
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
      const open = (how: string) =>
        this.#page(
          `SELECT ${COLUMNS} FROM inbox WHERE ${how} AND state = '${filter}' AND ${page}`,
          before,
          limit,
        );
      const found = open("open = 1");
      if (this.#rests()) found.push(...open("open > 1"));
      return found.sort((a, b) => b.seq - a.seq).slice(0, limit);
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

  /** How many records of a trouble an operator has still to look at, counted up to `cap`. */
  countTrouble(filter: "failed" | "dead", cap: number): number {
    if (!this.#schema.has("trouble")) return 0;
    const [found] = this.#sql.all<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM inbox
         WHERE error IS NOT NULL AND state = ? AND substr(error, 1, ?) <> ? LIMIT ?)`,
      filter === "failed" ? "done" : "dead",
      DISCARDED.length,
      DISCARDED,
      cap,
    );
    return found?.n ?? 0;
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
    this.#known?.delete(seq);
  }

  #write(row: InboxRow, patch: Partial<InboxRow>, guard: string, params: SqlValue[]): boolean {
    if (patch.error !== undefined && patch.error !== null) this.#schema.need("trouble");
    if ((patch.open ?? OPEN.no) >= OPEN.resting) this.#schema.need("resting");
    const names = Object.keys(patch) as (keyof InboxRow)[];
    const changed = this.#sql.run(
      updateText("inbox", names, `WHERE seq = ?${guard}`),
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
    const now = { ...row, ...patch };
    const sole = this.#sole?.seq === seq && now.open === OPEN.yes ? this.#sole : undefined;
    if (sole !== undefined) Object.assign(sole, patch);
    if (now.open === OPEN.no) this.#known?.delete(seq);
    else if (patch.open !== undefined || this.#known?.has(seq)) this.#known?.set(seq, now);
    // Known still only where nothing else became active.
    if (this.#sole?.seq === seq || patch.open === OPEN.yes) this.#sole = sole;
  }

  #page(query: string, ...params: SqlValue[]): InboxRow[] {
    return this.#sql.all<InboxRow & SqlRow>(query, ...params);
  }
}
