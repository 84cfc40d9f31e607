/**
 * The Registry's engine: chats with something unfinished beyond their turn, and counters summed up.
 * Chats report here off their hot path; losing a report costs freshness, never a message.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";
import { type Having, isHaving, RegistryTable, type UnfinishedRow } from "./RegistryTable.ts";
import type { ChatReport } from "./Reporter.ts";
import { WakeSweep } from "./WakeSweep.ts";

const MAX_PAGE = 200;

/** Which chats of a shard. */
export interface UnfinishedQuery {
  /** Names after this one. */
  after?: string;
  /** At most 200. Default 50. */
  limit?: number;
  /** Names that begin with this. */
  prefix?: string;
  having?: Having;
}

/** One shard of the Registry. */
export class RegistryBook {
  readonly #table: RegistryTable;
  readonly #sweep: WakeSweep;

  constructor(host: Host) {
    this.#table = new RegistryTable(host);
    this.#sweep = new WakeSweep(host, this.#table);
  }

  /** Calls a method by name. JSON both ways. */
  async call(method: string, payload: string): Promise<string> {
    const input = JSON.parse(payload) as Record<string, unknown>;
    switch (method) {
      case "report":
        this.#table.report(input as unknown as ChatReport);
        return "null";
      case "chats":
        // For callers of before `unfinished`, while versions differ in a rollout.
        return JSON.stringify({ chats: this.#list(input).map((row) => row.name) });
      case "unfinished":
        return JSON.stringify({ chats: this.#list(input) });
      case "counts":
        return JSON.stringify(this.#table.counts());
      case "metrics":
        return JSON.stringify(this.#table.totals());
      case "sweep":
        return JSON.stringify({ woken: await this.#sweep.slice() });
      default:
        throw new Error(`the registry has no method "${method}"`);
    }
  }

  /** The alarm: the sweep goes on. */
  alarm(): Promise<void> {
    return this.#sweep.alarm();
  }

  #list({ after, limit, prefix, having }: UnfinishedQuery): UnfinishedRow[] {
    return this.#table.list({
      after: String(after ?? ""),
      limit: Math.max(1, Math.min(Number(limit ?? 50), MAX_PAGE)),
      prefix: String(prefix ?? ""),
      having: having !== undefined && isHaving(having) ? having : undefined,
    });
  }
}
