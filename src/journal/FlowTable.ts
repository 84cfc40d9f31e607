/** Typed access to the runs of flows. @module */
import type { Sql, SqlRow } from "../host/Host.ts";
import type { Schema } from "./schema.ts";

/** How a run stands. */
export type FlowState = "active" | "done" | "failed" | "cancelled";

/** One run, as journaled. Its steps, waits and sends are under its `seq`, as a turn's are. */
export interface FlowRow {
  id: string;
  /** The number of its anchor: an inbox record of its own. */
  seq: number;
  flow: string;
  version: number;
  /** Whose messages it takes; empty: everybody's. */
  owner: string;
  state: FlowState;
  /** JSON; absent where the flow was started without one. */
  input: string | null;
  /** Random, secret: what random numbers, ids and hook tokens are made of. */
  seed: string;
  started_at: number;
  finished_at: number | null;
  /** JSON of a `WaitRecord`; null while it has not come to its first wait. */
  wait: string | null;
  /** When the wait ends by itself. */
  due_at: number | null;
  /** JSON of a `RunMemory`. */
  memory: string;
  result: string | null;
  error: string | null;
}

const BRIEF = "id, seq, flow, version, state, started_at, finished_at, wait, due_at, error";
const COLUMNS = `${BRIEF}, owner, input, seed, memory, result`;

/** A run without what it carries, which may be large. */
export type BriefFlowRow = Omit<FlowRow, "owner" | "input" | "seed" | "memory" | "result">;

/** The runs of one chat. */
export class FlowTable {
  readonly #sql: Sql;
  readonly #schema: Schema;

  constructor(sql: Sql, schema: Schema) {
    this.#sql = sql;
    this.#schema = schema;
  }

  /** Whether this chat ever had a run: chats without flows ask nothing more. */
  get any(): boolean {
    return this.#schema.has("flows");
  }

  /** Inserts a run unless its id is known. Returns whether it was new. */
  insert(row: FlowRow): boolean {
    this.#schema.need("flows");
    const names = COLUMNS.split(", ") as (keyof FlowRow)[];
    const marks = names.map(() => "?").join(", ");
    return (
      this.#sql.run(
        `INSERT INTO flows (${COLUMNS}) VALUES (${marks}) ON CONFLICT DO NOTHING`,
        ...names.map((name) => row[name]),
      ) > 0
    );
  }

  /** A run by its id. */
  get(id: string): FlowRow | undefined {
    return this.#rows(`WHERE id = ?`, id)[0];
  }

  /** The run that an anchor is of. */
  bySeq(seq: number): FlowRow | undefined {
    return this.#rows(`WHERE seq = ?`, seq)[0];
  }

  /** The active run that takes a sender's messages: their own, else one that takes everybody's. */
  activeOf(owner: string): FlowRow | undefined {
    return this.#rows(
      `WHERE state = 'active' AND owner IN (?, '') ORDER BY owner = '', seq LIMIT 1`,
      owner,
    )[0];
  }

  /** Whether any run is active. */
  anyActive(): boolean {
    return this.#rows(`WHERE state = 'active' LIMIT 1`).length > 0;
  }

  /** Active runs whose wait is over, most overdue first. */
  due(now: number, limit: number): FlowRow[] {
    return this.#rows(
      `WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at, seq LIMIT ?`,
      now,
      limit,
    );
  }

  /** When the next wait is over. */
  nextDue(): number | undefined {
    if (!this.any) return undefined;
    const query = `SELECT due_at FROM flows WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`;
    return this.#sql.all<{ due_at: number }>(query)[0]?.due_at;
  }

  /** Active runs, newest first, below a number (exclusive). */
  active(before: number, limit: number): FlowRow[] {
    return this.#rows(
      `WHERE state = 'active' AND seq < ? ORDER BY seq DESC LIMIT ?`,
      before,
      limit,
    );
  }

  /** Runs in brief, newest first, below a number (exclusive). */
  list(state: FlowState | undefined, before: number, limit: number): BriefFlowRow[] {
    if (!this.any) return [];
    const [where, params] = state === undefined ? ["", []] : ["state = ? AND ", [state]];
    return this.#sql.all<BriefFlowRow & SqlRow>(
      `SELECT ${BRIEF} FROM flows WHERE ${where}seq < ? ORDER BY seq DESC LIMIT ?`,
      ...params,
      before,
      limit,
    );
  }

  /** Changes columns of a run, and keeps `row` in step. */
  update(row: FlowRow, patch: Partial<FlowRow>): void {
    const names = Object.keys(patch) as (keyof FlowRow)[];
    this.#sql.run(
      `UPDATE flows SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
      ...names.map((name) => patch[name] ?? null),
      row.id,
    );
    Object.assign(row, patch);
  }

  /** Deletes the run of an anchor. */
  delete(seq: number): void {
    if (this.any) this.#sql.run(`DELETE FROM flows WHERE seq = ?`, seq);
  }

  #rows(where: string, ...params: (string | number)[]): FlowRow[] {
    if (!this.any) return [];
    return this.#sql.all<FlowRow & SqlRow>(`SELECT ${COLUMNS} FROM flows ${where}`, ...params);
  }
}
