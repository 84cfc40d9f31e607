/**
 * Counts what an operator pays for: rows that statements write and read, `setAlarm` calls, requests of
 * an object and runs of its alarm. Kept outside the objects, so that it outlives them.
 *
 * @module
 */

/** What one statement cost, summed over its runs. */
export interface Statement {
  sql: string;
  runs: number;
  written: number;
  read: number;
}

/** The meter of one object. */
export class Meter {
  rowsWritten = 0;
  rowsRead = 0;
  alarmsSet = 0;
  /** When `alarm()` ran. */
  alarmRuns: number[] = [];
  /** RPC calls, by method. */
  readonly requests = new Map<string, number>();
  readonly statements = new Map<string, Statement>();
  #last: { sql: string; cursor: SqlStorageCursor<Record<string, SqlStorageValue>> } | undefined;

  /** Starts at zero. */
  reset(): void {
    this.flush();
    this.rowsWritten = 0;
    this.rowsRead = 0;
    this.alarmsSet = 0;
    this.alarmRuns = [];
    this.requests.clear();
    this.statements.clear();
  }

  /** Written rows as billed: those of statements, and one for each `setAlarm`. */
  get billed(): number {
    this.flush();
    return this.rowsWritten + this.alarmsSet;
  }

  /** All RPC calls and alarm runs: what is billed as requests. */
  get billedRequests(): number {
    return [...this.requests.values()].reduce((sum, n) => sum + n, 0) + this.alarmRuns.length;
  }

  /** The statements that cost something, most expensive first: what to look at when a budget fails. */
  table(column: "written" | "read" = "written"): string {
    this.flush();
    const rows = [...this.statements.values()].filter((one) => one[column] > 0);
    rows.sort((a, b) => b[column] - a[column]);
    const lines = rows.map((one) => `  ${one[column]} in ${one.runs} × ${one.sql.slice(0, 150)}`);
    return [...lines, `  ${this.alarmsSet} × setAlarm`].join("\n");
  }

  counted(method: string): void {
    this.requests.set(method, (this.requests.get(method) ?? 0) + 1);
  }

  executed(sql: string, cursor: SqlStorageCursor<Record<string, SqlStorageValue>>): void {
    this.flush();
    this.#last = { sql: sql.replace(/\s+/g, " "), cursor };
  }

  /** A cursor counts while it is read, so its counters are taken once the next one begins. */
  flush(): void {
    const last = this.#last;
    if (last === undefined) return;
    this.#last = undefined;
    const { rowsWritten, rowsRead } = last.cursor;
    this.rowsWritten += rowsWritten;
    this.rowsRead += rowsRead;
    const known = this.statements.get(last.sql);
    const statement = known ?? { sql: last.sql, runs: 0, written: 0, read: 0 };
    statement.runs += 1;
    statement.written += rowsWritten;
    statement.read += rowsRead;
    if (known === undefined) this.statements.set(last.sql, statement);
  }
}

const meters = new Map<string, Meter>();

/** The meter of the object with this name. */
export function meterOf(name: string): Meter {
  let meter = meters.get(name);
  if (meter === undefined) {
    meter = new Meter();
    meters.set(name, meter);
  }
  return meter;
}

const unmetered = new WeakMap<SqlStorage, SqlStorage["exec"]>();

/** Runs a statement of the test's own, which the meter does not count. */
export function peek<T extends Record<string, SqlStorageValue>>(
  sql: SqlStorage,
  query: string,
): SqlStorageCursor<T> {
  const exec = (unmetered.get(sql) ?? sql.exec.bind(sql)) as SqlStorage["exec"];
  return exec<T>(query);
}

/** Puts the meter between an object and its storage. */
export function attachMeter(ctx: DurableObjectState): Meter {
  const meter = meterOf(ctx.id.name ?? ctx.id.toString());
  const { storage } = ctx;
  const { sql } = storage;
  const exec = sql.exec.bind(sql);
  unmetered.set(sql, exec as SqlStorage["exec"]);
  const setAlarm = storage.setAlarm.bind(storage);
  Object.defineProperty(sql, "exec", {
    value: (query: string, ...bindings: SqlStorageValue[]) => {
      const cursor = exec(query, ...bindings);
      meter.executed(query, cursor);
      return cursor;
    },
  });
  Object.defineProperty(storage, "setAlarm", {
    value: (at: number | Date) => {
      meter.alarmsSet += 1;
      return setAlarm(at);
    },
  });
  return meter;
}
