/**
 * Storage of one shard of the Registry: rows of chats that have something unfinished, and counters
 * summed up.
 *
 * @module
 */
import { AlarmClock } from "../alarms/AlarmClock.ts";
import type { Host, NotPromise, SqlValue } from "../host/Host.ts";
import type { RegistryCommit } from "../journal/labels.ts";
import { addMetrics, type MetricValues, noMetrics } from "./Metrics.ts";
import type { ChatReport } from "./Reporter.ts";

/** A chat may be woken when it is this far past the time it meant to wake, in ms. */
export const OVERDUE_MS = 120_000;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS chats (name TEXT PRIMARY KEY, address TEXT NOT NULL, dead INTEGER NOT NULL,
    unknown INTEGER NOT NULL, failed INTEGER NOT NULL, due_at INTEGER, at INTEGER NOT NULL,
    wake_at INTEGER, tries INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS totals (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID`,
];

/** What a table of before the sweep kept its own times lacks. */
const ADDED = [
  `ALTER TABLE chats ADD COLUMN wake_at INTEGER`,
  `ALTER TABLE chats ADD COLUMN tries INTEGER NOT NULL DEFAULT 0`,
  `UPDATE chats SET wake_at = due_at + ${OVERDUE_MS} WHERE due_at IS NOT NULL`,
];

const INDEX = `CREATE INDEX IF NOT EXISTS chats_wake ON chats (wake_at) WHERE wake_at IS NOT NULL`;

/** A chat with something unfinished. */
export interface UnfinishedRow {
  /** The chat's actor. */
  name: string;
  address: string;
  dead: number;
  unknown: number;
  failed: number;
  due_at: number | null;
  /** When it reported: epoch ms. */
  at: number;
  [column: string]: SqlValue;
}

/** Only chats that have this. */
export type Having = "dead" | "unknown" | "failed" | "due";

const HAVING: Record<Having, string> = {
  dead: "AND dead > 0",
  unknown: "AND unknown > 0",
  failed: "AND failed > 0",
  due: "AND due_at IS NOT NULL",
};

/** Whether a text from outside names a filter. */
export function isHaving(text: string): text is Having {
  return Object.hasOwn(HAVING, text);
}

/** A chat that the sweep has claimed. */
export interface Claimed {
  name: string;
  /** Wakes in a row that did not work. */
  tries: number;
  /** Until when nobody else wakes it: epoch ms. */
  heldUntil: number;
}

/** The rows of one shard. */
export class RegistryTable {
  readonly alarm: AlarmClock;
  readonly #host: Host;
  #ready = false;

  constructor(host: Host) {
    this.#host = host;
    // Rows need no alarm of their own: the cron's sweep comes each minute.
    this.alarm = new AlarmClock(host, () => undefined);
  }

  /** Runs one labelled commit; the armed copy of the alarm follows the rows. */
  commit<T>(label: RegistryCommit, fn: () => NotPromise<T>): T {
    this.#ensure();
    return this.alarm.commit(label, fn);
  }

  /** Takes a report: counters are added, the chat's row is written, or goes where nothing is left. */
  report(report: ChatReport): void {
    const { sql, clock } = this.#host;
    this.commit("registry.report", () => {
      if (Object.keys(report.metrics).length > 0) {
        sql.run(
          `INSERT INTO totals (k, v) VALUES ('metrics', ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
          JSON.stringify(addMetrics(this.totals(), report.metrics)),
        );
      }
      const { name, address, dead, unknown, failed, dueAt } = report;
      if (dead + unknown + failed === 0 && dueAt === undefined) {
        sql.run(`DELETE FROM chats WHERE name = ?`, name);
        return;
      }
      const now = clock.now();
      sql.run(
        `INSERT INTO chats (name, address, dead, unknown, failed, due_at, at, wake_at, tries)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
         ON CONFLICT (name) DO UPDATE SET address = excluded.address, dead = excluded.dead,
           unknown = excluded.unknown, failed = excluded.failed, due_at = excluded.due_at,
           at = excluded.at, wake_at = excluded.wake_at, tries = 0`,
        name,
        address,
        dead,
        unknown,
        failed,
        dueAt ?? null,
        now,
        // A chat that reports is awake: whatever is due since long, it is at it.
        dueAt === undefined ? null : Math.max(dueAt, now) + OVERDUE_MS,
      );
    });
  }

  /** Chats in order of their names, after one (exclusive), whose names begin with `prefix`. */
  list(query: {
    after: string;
    limit: number;
    prefix: string;
    having: Having | undefined;
  }): UnfinishedRow[] {
    this.#ensure();
    const { after, limit, prefix, having } = query;
    const filter = having === undefined ? "" : HAVING[having];
    return this.#host.sql.all<UnfinishedRow>(
      `SELECT name, address, dead, unknown, failed, due_at, at FROM chats
       WHERE name > ? AND name >= ? AND name < ? ${filter} ORDER BY name LIMIT ?`,
      after,
      prefix,
      // Names are ASCII: nothing that begins with the prefix sorts behind this.
      `${prefix}\u007f`,
      limit,
    );
  }

  /** How many chats have something unfinished, and how many of them slept past their time. */
  counts(): { unfinished: number; overdue: number } {
    this.#ensure();
    const { sql, clock } = this.#host;
    const all = sql.all<{ n: number }>(`SELECT count(*) AS n FROM chats`)[0]?.n ?? 0;
    const overdue = sql.all<{ n: number }>(
      `SELECT count(*) AS n FROM chats WHERE wake_at IS NOT NULL AND (wake_at <= ? OR tries > 0)`,
      clock.now(),
    )[0]?.n;
    return { unfinished: all, overdue: overdue ?? 0 };
  }

  /** Counters of all chats of this shard. */
  totals(): MetricValues {
    this.#ensure();
    const text = this.#host.sql.all<{ v: string }>(`SELECT v FROM totals WHERE k = 'metrics'`)[0]
      ?.v;
    return addMetrics(
      noMetrics(),
      text === undefined ? {} : (JSON.parse(text) as Partial<MetricValues>),
    );
  }

  /** The overdue, longest overdue first. */
  overdue(limit: number): { name: string; tries: number }[] {
    this.#ensure();
    return this.#host.sql.all<{ name: string; tries: number }>(
      `SELECT name, tries FROM chats WHERE wake_at IS NOT NULL AND wake_at <= ?
       ORDER BY wake_at LIMIT ?`,
      this.#host.clock.now(),
      limit,
    );
  }

  /** Nobody wakes the chat before `until`. Call inside a commit. */
  hold(name: string, until: number): void {
    this.#host.sql.run(`UPDATE chats SET wake_at = ? WHERE name = ?`, until, name);
  }

  /** A wake did not work: the chat goes to the back, unless it has reported since. Inside a commit. */
  postpone(claimed: Claimed, until: number): void {
    this.#host.sql.run(
      `UPDATE chats SET wake_at = ?, tries = ? WHERE name = ? AND wake_at = ?`,
      until,
      claimed.tries + 1,
      claimed.name,
      claimed.heldUntil,
    );
  }

  #ensure(): void {
    if (this.#ready) return;
    const { sql } = this.#host;
    const found = sql.all<{ name: string; sql: string | null }>(
      `SELECT name, sql FROM sqlite_master WHERE name IN ('chats', 'chats_wake')`,
    );
    if (!found.some((one) => one.name === "chats_wake")) {
      const before = found.find((one) => one.name === "chats")?.sql ?? undefined;
      this.#host.transaction("registry.schema" satisfies RegistryCommit, () => {
        for (const statement of TABLES) sql.run(statement);
        if (before !== undefined && !before.includes("wake_at"))
          for (const statement of ADDED) sql.run(statement);
        sql.run(INDEX);
      });
    }
    this.#ready = true;
  }
}
