/** Typed access to the outbox. @module */
import type { Sql, SqlRow, SqlValue } from "../host/Host.ts";
import { PARTS_PER_INTENT } from "./limits.ts";
import { RecentRows } from "./RecentRows.ts";
import { DISCARDED, enforceOutbox, type OutboxRow, type OutboxState } from "./records.ts";
import type { Schema } from "./schema.ts";
import { insertText, updateText } from "./texts.ts";

const NAMES = [
  "turn",
  "pos",
  "slot",
  "part",
  "key",
  "state",
  "claim",
  "attempts",
  "maybes",
  "first_maybe_at",
  "due_at",
  "not_after",
  "created_at",
  "finished_at",
  "content",
  "fingerprint",
  "request",
  "marker",
  "generation",
  "receipt",
  "error_kind",
  "error",
  "attempt_log",
  "origin",
  "owed",
  "address",
  "extra",
] as const satisfies readonly (keyof OutboxRow)[];

const COLUMNS = NAMES.join(", ");

/** A place in the outbox. */
export interface OutboxPlace {
  turn: number;
  pos: number;
}

/** The outbox of one chat. */
export class OutboxTable {
  readonly #sql: Sql;
  readonly #schema: Schema;
  readonly #recent = new RecentRows();
  /** False where it is known that no row has a due time. */
  #maybeDue = true;

  constructor(sql: Sql, schema: Schema) {
    this.#sql = sql;
    this.#schema = schema;
  }

  /** Inserts a row. */
  insert(row: OutboxRow): void {
    if (row.key !== null) this.#schema.need("keys");
    this.#needFor(row.state);
    // Only what is set: each parameter of a query costs a chat memory for as long as it lives.
    const names = NAMES.filter((name) => row[name] !== null);
    this.#sql.run(insertText("outbox", names), ...names.map((name) => row[name]));
    this.#schema.grew();
    this.#recent.add(row);
    if (row.due_at !== null) this.#maybeDue = true;
  }

  /** One row. */
  get(turn: number, pos: number): OutboxRow | undefined {
    return this.#range(turn, pos, pos)[0];
  }

  /** The first part recorded under an explicit, relay or random key. */
  byKey(key: string): OutboxRow | undefined {
    if (!this.#schema.has("keys")) return undefined;
    return this.#rows(`WHERE key = ?`, key)[0];
  }

  /** All rows of a turn, in order. A turn's rows are few: one per part it sent. */
  ofTurn(turn: number): OutboxRow[] {
    return this.#range(turn, 0, Number.MAX_SAFE_INTEGER);
  }

  /** All parts of the intent that `head` begins. */
  partsOf(head: OutboxRow): OutboxRow[] {
    const first = head.pos - (head.pos % PARTS_PER_INTENT);
    const rows = this.#range(head.turn, first, first + PARTS_PER_INTENT - 1);
    return rows.filter((row) => row.slot === head.slot);
  }

  /** The part before `row`, if it has one. */
  previousPart(row: OutboxRow): OutboxRow | undefined {
    if (row.part === 0) return undefined;
    const before = this.get(row.turn, row.pos - 1);
    return before?.slot === row.slot ? before : undefined;
  }

  /**
   * Rows of a turn by position. The one way to read by key: each text of a query costs a chat some
   * kilobytes of memory for as long as it lives.
   */
  #range(turn: number, from: number, to: number): OutboxRow[] {
    const known = this.#recent.rows(turn);
    if (known !== undefined) return known.filter((row) => row.pos >= from && row.pos <= to);
    return this.#rows(`WHERE turn = ? AND pos >= ? AND pos <= ? ORDER BY pos`, turn, from, to);
  }

  /** Whether any row's time has come: a narrow look that most often spares a wide one. */
  #anyDue(now: number): boolean {
    const [first] = this.nextDue(1);
    return first !== undefined && first.due_at <= now;
  }

  /** Rows to deliver whose time has come, most overdue first. */
  due(now: number, limit: number): OutboxRow[] {
    if (!this.#anyDue(now)) return [];
    return this.#rows(
      `WHERE due_at IS NOT NULL AND due_at <= ? AND (state IN ('pending', 'sending', 'failed')
         OR (state = 'unknown' AND (extra IS NULL OR instr(extra, '"held":true') = 0)))
       ORDER BY due_at LIMIT ?`,
      now,
      limit,
    );
  }

  /** Rows that are over and whose listeners have still to be told. */
  owing(now: number, limit: number): OutboxRow[] {
    if (!this.#anyDue(now)) return [];
    return this.#rows(
      `WHERE due_at IS NOT NULL AND due_at <= ? AND owed <> 0 ORDER BY due_at LIMIT ?`,
      now,
      limit,
    );
  }

  /** Tried rows that wait for their next attempt, oldest first. Reads every row with a due time. */
  waiting(limit: number): OutboxRow[] {
    return this.#rows(
      `WHERE due_at IS NOT NULL AND (attempts > 0 OR state <> 'pending') ORDER BY turn, pos LIMIT ?`,
      limit,
    );
  }

  /** Times and places of the rows due next. */
  nextDue(limit: number): (OutboxPlace & { due_at: number })[] {
    if (!this.#maybeDue) return [];
    const places = this.#sql.all<{ turn: number; pos: number; due_at: number }>(
      `SELECT turn, pos, due_at FROM outbox WHERE due_at IS NOT NULL ORDER BY due_at LIMIT ?`,
      limit,
    );
    this.#maybeDue = places.length > 0;
    return places;
  }

  /** The tables were made just now: there is no row. */
  born(): void {
    this.#maybeDue = false;
  }

  /** Rows of turns above this number are all written in this life. */
  since(seq: number): void {
    this.#recent.since(seq);
  }

  /** A turn is over: its rows are read from disk from now on. */
  forgetTurn(turn: number): void {
    this.#recent.drop(turn);
  }

  /** Forgets what it knew: a transaction was rolled back, or all storage deleted. */
  forget(): void {
    this.#recent.clear();
    this.#maybeDue = true;
  }

  /** The latest time until which a rate limit holds this chat, from its rows. */
  rateLimitedUntil(now: number): number | undefined {
    if (this.nextDue(1).length === 0) return undefined;
    const rows = this.#sql.all<{ at: number | null }>(
      `SELECT max(due_at) AS at FROM (SELECT due_at FROM outbox
         WHERE due_at IS NOT NULL AND due_at > ? AND state = 'failed' AND error_kind = 'rate_limit' LIMIT 50)`,
      now,
    );
    return rows[0]?.at ?? undefined;
  }

  /** The turn numbers with rows, oldest first, from `after` (exclusive). */
  turns(after: number, limit: number): number[] {
    return this.#sql
      .all<{ turn: number }>(
        `SELECT DISTINCT turn FROM outbox WHERE turn > ? ORDER BY turn LIMIT ?`,
        after,
        limit,
      )
      .map((row) => row.turn);
  }

  /** Rows in order, oldest first, from a place (exclusive). */
  from(after: OutboxPlace, limit: number): OutboxRow[] {
    return this.#rows(
      `WHERE (turn, pos) > (?, ?) ORDER BY turn, pos LIMIT ?`,
      after.turn,
      after.pos,
      limit,
    );
  }

  /** Rows in a state, newest first, before a place (exclusive). */
  list(state: OutboxState | undefined, before: OutboxPlace, limit: number): OutboxRow[] {
    const page = `(turn, pos) < (?, ?) ORDER BY turn DESC, pos DESC LIMIT ?`;
    if (state === undefined) return this.#rows(`WHERE ${page}`, before.turn, before.pos, limit);
    if (state === "dead" || state === "unknown") {
      if (!this.#schema.has("trouble")) return [];
      return this.#rows(
        `WHERE state IN ('dead', 'unknown') AND state = ? AND ${page}`,
        state,
        before.turn,
        before.pos,
        limit,
      );
    }
    return this.#rows(`WHERE state = ? AND ${page}`, state, before.turn, before.pos, limit);
  }

  /** How many rows of a trouble an operator has still to look at, counted up to `cap`. */
  countTrouble(state: "dead" | "unknown", cap: number): number {
    if (!this.#schema.has("trouble")) return 0;
    const [found] = this.#sql.all<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM outbox WHERE state IN ('dead', 'unknown')
         AND state = ? AND substr(coalesce(error, ''), 1, ?) <> ? LIMIT ?)`,
      state,
      DISCARDED.length,
      DISCARDED,
      cap,
    );
    return found?.n ?? 0;
  }

  /** Moves a row to a state, by the transition table, and keeps `row` in step. */
  move(row: OutboxRow, to: OutboxState, patch: Partial<OutboxRow> = {}): void {
    enforceOutbox(row.state, to);
    this.update(row, { ...patch, state: to });
  }

  /** Moves a row only while `claim` is still the attempt that owns it. Returns whether it did. */
  moveIfClaimed(
    row: OutboxRow,
    claim: string,
    to: OutboxState,
    patch: Partial<OutboxRow>,
  ): boolean {
    enforceOutbox("sending", to);
    this.#needFor(to);
    return this.#write(row, { ...patch, state: to }, ` AND claim = ? AND state = 'sending'`, [
      claim,
    ]);
  }

  /** Changes columns of a row, and keeps `row` in step. */
  update(row: OutboxRow, patch: Partial<OutboxRow>): void {
    this.#needFor(patch.state);
    this.#write(row, patch, "", []);
  }

  /** Deletes one row. */
  deleteRow(turn: number, pos: number): void {
    this.#sql.run(`DELETE FROM outbox WHERE turn = ? AND pos = ?`, turn, pos);
    this.#recent.drop(turn);
  }

  /** Deletes all rows of a turn. */
  deleteTurn(turn: number): void {
    this.#sql.run(`DELETE FROM outbox WHERE turn = ?`, turn);
    this.#recent.drop(turn);
  }

  #needFor(state: OutboxState | undefined): void {
    if (state === "dead" || state === "unknown") this.#schema.need("trouble");
  }

  #write(row: OutboxRow, patch: Partial<OutboxRow>, guard: string, params: SqlValue[]): boolean {
    const names = Object.keys(patch) as (keyof OutboxRow)[];
    if (names.length === 0) return true;
    const changed = this.#sql.run(
      updateText("outbox", names, `WHERE turn = ? AND pos = ?${guard}`),
      ...names.map((name) => patch[name] ?? null),
      row.turn,
      row.pos,
      ...params,
    );
    if (changed > 0) {
      Object.assign(row, patch);
      this.#recent.patch(row, patch);
      if (patch.due_at != null) this.#maybeDue = true;
    }
    return changed > 0;
  }

  #rows(where: string, ...params: SqlValue[]): OutboxRow[] {
    return this.#sql.all<OutboxRow & SqlRow>(`SELECT ${COLUMNS} FROM outbox ${where}`, ...params);
  }
}
