/**
 * The Registry's engine: chats with something unfinished beyond their turn, and counters summed up.
 * Chats report here off their hot path; losing a report costs freshness, never a message.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";
import { addMetrics, type MetricValues, noMetrics } from "./Metrics.ts";
import type { ChatReport } from "./Reporter.ts";

/** Chats that one sweep wakes. */
const SWEEP_SLICE = 50;
/** A chat is overdue when it is this far past the time it meant to wake, in ms. */
const OVERDUE_MS = 120_000;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS chats (name TEXT PRIMARY KEY, address TEXT NOT NULL, dead INTEGER NOT NULL,
    unknown INTEGER NOT NULL, failed INTEGER NOT NULL, due_at INTEGER, at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
  `CREATE INDEX IF NOT EXISTS chats_due ON chats (due_at) WHERE due_at IS NOT NULL`,
  `CREATE TABLE IF NOT EXISTS totals (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID`,
];

/** One shard of the Registry. */
export class RegistryBook {
  readonly #host: Host;
  #ready = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Calls a method by name. JSON both ways. */
  async call(method: string, payload: string): Promise<string> {
    this.#ensure();
    const input = JSON.parse(payload) as Record<string, unknown>;
    switch (method) {
      case "report":
        this.#report(input as unknown as ChatReport);
        return "null";
      case "chats":
        return JSON.stringify({
          chats: this.#chats(String(input.after ?? ""), Number(input.limit ?? 50)),
        });
      case "metrics":
        return JSON.stringify(this.#totals());
      case "sweep":
        return JSON.stringify({ woken: await this.#sweep() });
      default:
        throw new Error(`the registry has no method "${method}"`);
    }
  }

  #report(report: ChatReport): void {
    const { sql } = this.#host;
    this.#host.transaction("registry.report", () => {
      if (Object.keys(report.metrics).length > 0) {
        const totals = JSON.stringify(addMetrics(this.#totals(), report.metrics));
        sql.run(
          `INSERT INTO totals (k, v) VALUES ('metrics', ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
          totals,
        );
      }
      const quiet =
        report.dead + report.unknown + report.failed === 0 && report.dueAt === undefined;
      if (quiet) {
        sql.run(`DELETE FROM chats WHERE name = ?`, report.name);
        return;
      }
      sql.run(
        `INSERT INTO chats (name, address, dead, unknown, failed, due_at, at) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET address = excluded.address, dead = excluded.dead,
           unknown = excluded.unknown, failed = excluded.failed, due_at = excluded.due_at, at = excluded.at`,
        report.name,
        report.address,
        report.dead,
        report.unknown,
        report.failed,
        report.dueAt ?? null,
        this.#host.clock.now(),
      );
    });
  }

  #chats(after: string, limit: number): string[] {
    return this.#host.sql
      .all<{ name: string }>(
        `SELECT name FROM chats WHERE name > ? ORDER BY name LIMIT ?`,
        after,
        Math.max(1, Math.min(limit, 200)),
      )
      .map((row) => row.name);
  }

  #totals(): MetricValues {
    const text = this.#host.sql.all<{ v: string }>(`SELECT v FROM totals WHERE k = 'metrics'`)[0]
      ?.v;
    return addMetrics(
      noMetrics(),
      text === undefined ? {} : (JSON.parse(text) as Partial<MetricValues>),
    );
  }

  /** Wakes chats that slept past their time: an alarm that was lost is set again by any contact. */
  async #sweep(): Promise<number> {
    const overdue = this.#host.sql.all<{ name: string }>(
      `SELECT name FROM chats WHERE due_at IS NOT NULL AND due_at < ? ORDER BY due_at LIMIT ?`,
      this.#host.clock.now() - OVERDUE_MS,
      SWEEP_SLICE,
    );
    let woken = 0;
    for (const { name } of overdue) {
      try {
        await this.#host.actors.call("ChatActor", name, "wake", "{}");
        woken += 1;
      } catch (error) {
        this.#host.log.warn("a chat could not be woken", { chat: name, error: String(error) });
      }
    }
    return woken;
  }

  #ensure(): void {
    if (this.#ready) return;
    this.#host.transaction("registry.schema", () => {
      for (const statement of TABLES) this.#host.sql.run(statement);
    });
    this.#ready = true;
  }
}
