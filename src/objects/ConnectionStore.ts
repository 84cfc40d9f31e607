/**
 * Storage of one connection: tables that are made with the first write, labelled commits, and the
 * alarm that belongs to them.
 *
 * @module
 */
import { AlarmClock } from "../alarms/AlarmClock.ts";
import type { Host, NotPromise } from "../host/Host.ts";
import type { ConnectionCommit } from "../journal/labels.ts";

const TABLES = [
  `CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL,
    payload TEXT NOT NULL) STRICT`,
  `CREATE TABLE IF NOT EXISTS facts (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID`,
  // AUTOINCREMENT: the number of an item that is gone must never name another one.
  `CREATE TABLE IF NOT EXISTS quarantine (seq INTEGER PRIMARY KEY AUTOINCREMENT, chat TEXT NOT NULL,
    id TEXT NOT NULL, at INTEGER NOT NULL, item TEXT NOT NULL, UNIQUE (chat, id)) STRICT`,
  `CREATE INDEX IF NOT EXISTS quarantine_chat ON quarantine (chat, seq)`,
  `CREATE TABLE IF NOT EXISTS stuck (chat TEXT PRIMARY KEY, info TEXT NOT NULL, due_at INTEGER NOT NULL,
    tries INTEGER NOT NULL, first_at INTEGER NOT NULL, tried_at INTEGER NOT NULL, error TEXT)
    STRICT, WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS stuck_due ON stuck (due_at)`,
  `CREATE TABLE IF NOT EXISTS failures (chat TEXT NOT NULL, id TEXT NOT NULL, count INTEGER NOT NULL,
    first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, PRIMARY KEY (chat, id)) STRICT, WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS failures_last ON failures (last_at)`,
];

/** The storage. */
export class ConnectionStore {
  readonly host: Host;
  readonly alarm: AlarmClock;
  /** When the connection wants to be woken; filled in by its engine. */
  wanted: () => number | undefined = () => undefined;
  #ready = false;

  constructor(host: Host) {
    this.host = host;
    this.alarm = new AlarmClock(host, () => this.wanted());
  }

  now(): number {
    return this.host.clock.now();
  }

  /** Whether anything was ever written. */
  exists(): boolean {
    this.#ready ||=
      this.host.sql.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'failures_last'`).length > 0;
    return this.#ready;
  }

  /** Runs one labelled commit. */
  commit<T>(label: ConnectionCommit, fn: () => NotPromise<T>): T {
    try {
      return this.alarm.commit(label, () => {
        if (!this.exists()) for (const statement of TABLES) this.host.sql.run(statement);
        return fn();
      });
    } catch (error) {
      // The tables may have been rolled back with the rest.
      this.#ready = false;
      throw error;
    }
  }

  /** A fact by its name, as it was written. */
  fact<T>(name: string): T | undefined {
    if (!this.exists()) return undefined;
    const row = this.host.sql.all<{ v: string }>(`SELECT v FROM facts WHERE k = ?`, name)[0];
    return row === undefined ? undefined : (JSON.parse(row.v) as T);
  }

  /** Writes a fact; inside a commit. */
  setFact(name: string, value: unknown): void {
    this.host.sql.run(
      `INSERT INTO facts (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
      name,
      JSON.stringify(value),
    );
  }
}
