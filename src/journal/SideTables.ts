/** The small tables beside inbox and outbox: state, steps, buttons, receipts. @module */
import type { Sql } from "../host/Host.ts";
import type { Schema } from "./schema.ts";

/** One write of a key of `ctx.state` or `ctx.user`; `value` undefined deletes. */
export interface StateWrite {
  /** Empty for the chat's state, `u:<sender id>` for a user's. */
  scope: string;
  key: string;
  /** JSON text. */
  value: string | undefined;
}

/** State, steps, long button data and platform ids of one chat. */
export class SideTables {
  readonly #sql: Sql;
  readonly #schema: Schema;

  constructor(sql: Sql, schema: Schema) {
    this.#sql = sql;
    this.#schema = schema;
  }

  /** A state value as JSON text. */
  readState(scope: string, key: string): string | undefined {
    if (!this.#schema.has("state")) return undefined;
    return this.#sql.all<{ v: string }>(
      `SELECT v FROM state WHERE scope = ? AND k = ?`,
      scope,
      key,
    )[0]?.v;
  }

  /** Applies state writes. Call inside the commit that they belong to. */
  writeState(writes: Iterable<StateWrite>): void {
    for (const write of writes) {
      this.#schema.need("state");
      if (write.value === undefined) {
        this.#sql.run(`DELETE FROM state WHERE scope = ? AND k = ?`, write.scope, write.key);
      } else {
        this.#sql.run(
          `INSERT INTO state (scope, k, v) VALUES (?, ?, ?)
           ON CONFLICT (scope, k) DO UPDATE SET v = excluded.v`,
          write.scope,
          write.key,
          write.value,
        );
      }
    }
  }

  /** Whether any state is kept. */
  anyState(): boolean {
    return (
      this.#schema.has("state") && this.#sql.all(`SELECT 1 AS x FROM state LIMIT 1`).length > 0
    );
  }

  /** A recorded step's result. */
  step(turn: number, name: string): string | undefined {
    if (!this.#schema.has("steps")) return undefined;
    return this.#sql.all<{ result: string }>(
      `SELECT result FROM steps WHERE turn = ? AND name = ?`,
      turn,
      name,
    )[0]?.result;
  }

  /** Records a step's result. */
  recordStep(turn: number, name: string, result: string, at: number): void {
    this.#schema.need("steps");
    this.#sql.run(
      `INSERT INTO steps (turn, name, result, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      turn,
      name,
      result,
      at,
    );
  }

  /** All that a turn has recorded, in order. */
  stepsOf(turn: number): { name: string; result: string; at: number }[] {
    if (!this.#schema.has("steps")) return [];
    return this.#sql.all<{ name: string; result: string; at: number }>(
      `SELECT name, result, at FROM steps WHERE turn = ? ORDER BY at, name`,
      turn,
    );
  }

  /** How many steps a turn has recorded. */
  countSteps(turn: number): number {
    if (!this.#schema.has("steps")) return 0;
    return (
      this.#sql.all<{ n: number }>(`SELECT count(*) AS n FROM steps WHERE turn = ?`, turn)[0]?.n ??
      0
    );
  }

  /** Keeps button data that is longer than the platform allows. */
  keepButton(id: string, turn: number, value: string): void {
    this.#schema.need("buttons");
    this.#sql.run(
      `INSERT INTO buttons (id, turn, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
      id,
      turn,
      value,
    );
  }

  /** Button data by its short id. */
  button(id: string): string | undefined {
    if (!this.#schema.has("buttons")) return undefined;
    return this.#sql.all<{ value: string }>(`SELECT value FROM buttons WHERE id = ?`, id)[0]?.value;
  }

  /** Remembers which row a platform id belongs to, for channels whose statuses name only that. */
  keepReceipt(id: string, turn: number, pos: number): void {
    this.#schema.need("receipts");
    this.#sql.run(
      `INSERT INTO receipts (id, turn, pos) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
      id,
      turn,
      pos,
    );
  }

  /** The row that a platform id belongs to. */
  receipt(id: string): { turn: number; pos: number } | undefined {
    if (!this.#schema.has("receipts")) return undefined;
    return this.#sql.all<{ turn: number; pos: number }>(
      `SELECT turn, pos FROM receipts WHERE id = ?`,
      id,
    )[0];
  }

  /** Deletes what belongs to a turn. */
  deleteTurn(turn: number): void {
    for (const part of ["steps", "buttons", "receipts"] as const) {
      if (this.#schema.has(part)) this.#sql.run(`DELETE FROM ${part} WHERE turn = ?`, turn);
    }
  }
}
