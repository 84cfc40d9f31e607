/**
 * Events that are about the account and belong to no chat. They are kept here, once each; where the bot
 * handles their kind they also go through the quarantine's queue to the chat that the channel reserves
 * for them, so that they run as turns, in order, and survive a crash on the way.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import type { InboundEvent } from "../channels/events.ts";
import { tooLarge } from "../journal/limits.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { groupOf } from "./admit.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";
import type { Quarantine } from "./Quarantine.ts";

/** Events kept. */
const KEEP = 1_000;
/** The most events that one look gives. */
const PAGE_MAX = 200;
/** Characters kept of an event that is larger than a row may be. */
const SAMPLE = 2_000;

/** The account's events of one connection. */
export class ConnectionEvents {
  readonly #store: ConnectionStore;
  readonly #quarantine: Quarantine;
  readonly #bot: BotRuntime;

  constructor(store: ConnectionStore, quarantine: Quarantine, bot: BotRuntime) {
    this.#store = store;
    this.#quarantine = quarantine;
    this.#bot = bot;
  }

  /**
   * Keeps events; inside a commit. Resolves to how many were new.
   * @throws {QuarantineFullError}
   */
  keep(channel: AnyChannel, events: readonly InboundEvent[]): number {
    const { sql } = this.#store.host;
    const now = this.#store.now();
    let kept = 0;
    for (const event of events) {
      const text = JSON.stringify(event);
      const fresh = sql.run(
        `INSERT INTO events (id, at, payload) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
        event.id,
        now,
        tooLarge(text) ? JSON.stringify({ id: event.id, truncated: text.slice(0, SAMPLE) }) : text,
      );
      if (fresh === 0) continue;
      kept += 1;
      if (this.#bot.handles(event.kind)) this.#handOver(channel, event, now);
    }
    sql.run(`DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?`, KEEP);
    return kept;
  }

  /** The newest events first. */
  list(limit: number): unknown[] {
    if (!this.#store.exists()) return [];
    return this.#store.host.sql
      .all<{ payload: string }>(
        `SELECT payload FROM events ORDER BY seq DESC LIMIT ?`,
        Math.max(1, Math.min(PAGE_MAX, limit)),
      )
      .map((row) => JSON.parse(row.payload));
  }

  #handOver(channel: AnyChannel, event: InboundEvent, now: number): void {
    const group = groupOf(this.#bot.scope, channel, event.chat);
    group.request.items.push({ type: "event", event });
    this.#quarantine.put({ group, dueAt: now });
  }
}
