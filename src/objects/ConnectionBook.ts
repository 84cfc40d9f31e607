/**
 * The engine of one connection: what belongs to the bot account and to no chat. It keeps events that
 * name no chat, so that nothing admitted is lost.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";

/** Account-level events kept, newest first in lists. */
const KEEP = 1_000;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL,
    payload TEXT NOT NULL) STRICT`,
];

/** One connection. */
export class ConnectionBook {
  readonly #host: Host;
  #ready = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Calls a method by name. JSON both ways. */
  async call(method: string, payload: string): Promise<string> {
    const input = JSON.parse(payload) as Record<string, unknown>;
    switch (method) {
      case "keep":
        return JSON.stringify({ kept: this.#keep(input.events as { id: string }[]) });
      case "events":
        return JSON.stringify({ events: this.#events(Number(input.limit ?? 50)) });
      default:
        throw new Error(`a connection has no method "${method}"`);
    }
  }

  #keep(events: { id: string }[]): number {
    return this.#host.transaction("connection.keep", () => {
      this.#ensure();
      const { sql, clock } = this.#host;
      let kept = 0;
      for (const event of events) {
        kept += Math.sign(
          sql.run(
            `INSERT INTO events (id, at, payload) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
            event.id,
            clock.now(),
            JSON.stringify(event),
          ),
        );
      }
      sql.run(`DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?`, KEEP);
      return kept;
    });
  }

  #events(limit: number): unknown[] {
    const exists =
      this.#host.sql.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'events'`).length > 0;
    if (!exists) return [];
    return this.#host.sql
      .all<{ payload: string }>(
        `SELECT payload FROM events ORDER BY seq DESC LIMIT ?`,
        Math.max(1, Math.min(200, limit)),
      )
      .map((row) => JSON.parse(row.payload));
  }

  #ensure(): void {
    if (this.#ready) return;
    for (const statement of TABLES) this.#host.sql.run(statement);
    this.#ready = true;
  }
}
