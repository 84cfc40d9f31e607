/**
 * The storage of one actor over `node:sqlite`: rows and alarm commit together, and survive the death
 * of an incarnation.
 *
 * @module
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Sql, SqlRow, SqlValue } from "../../host/Host.ts";

/** One actor's storage. */
export class NodeStorage {
  #db = new DatabaseSync(":memory:");
  readonly #statements = new Map<string, StatementSync>();
  /** The alarm on disk: epoch milliseconds. */
  alarm: number | undefined;
  #depth = 0;

  /** Table rows changed since it was made, for rough cost checks. */
  rowsChanged = 0;

  all<R extends SqlRow>(query: string, params: readonly SqlValue[]): R[] {
    // Rows come without a prototype; copied, so that they compare as plain objects.
    return this.#prepare(query)
      .all(...params)
      .map((row) => ({ ...row })) as R[];
  }

  run(query: string, params: readonly SqlValue[]): number {
    const changes = Number(this.#prepare(query).run(...params).changes);
    this.rowsChanged += changes;
    return changes;
  }

  /** Runs `fn` atomically, with the alarm. */
  transaction<T>(fn: () => T): T {
    const alarm = this.alarm;
    const outer = this.#depth === 0;
    this.#db.exec(outer ? "BEGIN" : `SAVEPOINT s${this.#depth}`);
    this.#depth += 1;
    try {
      const value = fn();
      this.#depth -= 1;
      this.#db.exec(outer ? "COMMIT" : `RELEASE s${this.#depth}`);
      return value;
    } catch (error) {
      if (this.#depth > 0) this.#depth -= 1;
      this.#db.exec(outer ? "ROLLBACK" : `ROLLBACK TO s${this.#depth}`);
      this.alarm = alarm;
      throw error;
    }
  }

  /** Deletes everything. */
  clear(): void {
    this.#statements.clear();
    this.#db.close();
    this.#db = new DatabaseSync(":memory:");
    this.alarm = undefined;
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #prepare(query: string): StatementSync {
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = this.#db.prepare(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }
}

/** `Sql` over a storage, as long as `check` lets it. */
export function sqlOver(storage: NodeStorage, check: () => void): Sql {
  return {
    all<R extends SqlRow = SqlRow>(query: string, ...params: SqlValue[]): R[] {
      check();
      return storage.all<R>(query, params);
    },
    run(query: string, ...params: SqlValue[]): number {
      check();
      return storage.run(query, params);
    },
  };
}
