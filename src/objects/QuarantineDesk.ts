/**
 * What operators do with the quarantine: list it, have it tried again, throw an item away.
 *
 * @module
 */
import type { InboundItem } from "../channels/channel.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";
import type { Quarantine } from "./Quarantine.ts";

const PAGE = 50;
const PAGE_MAX = 200;
/** Chats that one sweep or replay brings forward. */
const HASTEN = 200;
/** The sweep leaves a chat alone that was tried more recently than this, in ms. */
const RECENT_MS = 60_000;

/** One item in the quarantine. */
export interface QuarantinedItem {
  /** Opaque; for `quarantine.replay` and `quarantine.discard`. */
  ref: string;
  /** The chat's actor. */
  chat: string;
  /** What the platform repeats when it delivers the item again. */
  id: string;
  /** The event's kind, or `status` or `bad`. */
  kind: string;
  /** When it came here: epoch ms. */
  at: number;
  /** When its chat first failed: epoch ms. */
  firstAt: number;
  /** Failed tries in a row. */
  tries: number;
  /** When its chat is tried next: epoch ms. */
  dueAt: number;
  /** Why; absent where it only waits to be handed over. */
  error?: string;
}

/** A page of {@link QuarantinedItem}s. */
export interface QuarantinePage {
  rows: QuarantinedItem[];
  /** For the next page; absent on the last. */
  cursor?: string;
}

interface ListRow {
  seq: number;
  chat: string;
  id: string;
  at: number;
  item: string;
  due_at: number;
  tries: number;
  first_at: number;
  error: string | null;
  [column: string]: string | number | null;
}

/** The operators' side of one quarantine. */
export class QuarantineDesk {
  readonly #store: ConnectionStore;
  readonly #quarantine: Quarantine;

  constructor(store: ConnectionStore, quarantine: Quarantine) {
    this.#store = store;
    this.#quarantine = quarantine;
  }

  /** Oldest first; of one chat where `chat` names its actor. */
  list(query: { cursor?: string; limit?: number; chat?: string }): QuarantinePage {
    if (!this.#store.exists()) return { rows: [] };
    const limit = Math.max(1, Math.min(PAGE_MAX, Math.floor(query.limit ?? PAGE)));
    const found = this.#store.host.sql.all<ListRow>(
      `SELECT q.seq, q.chat, q.id, q.at, q.item, s.due_at, s.tries, s.first_at, s.error
       FROM quarantine q JOIN stuck s ON s.chat = q.chat
       WHERE q.seq > ? ${query.chat === undefined ? "" : "AND q.chat = ?"} ORDER BY q.seq LIMIT ?`,
      seqOf(query.cursor) ?? 0,
      ...(query.chat === undefined ? [] : [query.chat]),
      limit + 1,
    );
    const rows = found.slice(0, limit);
    const last = rows.at(-1);
    return {
      rows: rows.map(shown),
      ...(found.length > limit && last !== undefined ? { cursor: refOf(last.seq) } : {}),
    };
  }

  /** Has the chat of an item, or every chat, tried now. Resolves to how many chats. */
  replay(ref: string | undefined): number {
    if (!this.#store.exists()) return 0;
    const chats =
      ref === undefined
        ? this.#store.host.sql.all<{ chat: string }>(
            `SELECT chat FROM stuck ORDER BY due_at LIMIT ?`,
            HASTEN,
          )
        : this.#chatOf(ref);
    return this.#hasten(chats);
  }

  /** The cron's sweep: brings forward what was not tried for a minute. */
  sweep(): number {
    if (!this.#store.exists()) return 0;
    const now = this.#store.now();
    return this.#hasten(
      this.#store.host.sql.all<{ chat: string }>(
        `SELECT chat FROM stuck WHERE due_at > ? AND tried_at < ? ORDER BY due_at LIMIT ?`,
        now,
        now - RECENT_MS,
        HASTEN,
      ),
    );
  }

  /** Throws an item away for good. Resolves to whether it was there. */
  discard(ref: string): boolean {
    const [found] = this.#chatOf(ref);
    const seq = seqOf(ref);
    if (found === undefined || seq === undefined) return false;
    this.#store.commit("quarantine.discard", () => {
      this.#store.host.sql.run(`DELETE FROM quarantine WHERE seq = ?`, seq);
      this.#quarantine.release(found.chat);
    });
    this.#store.host.log.warn("an operator discarded an item", { chat: found.chat, ref });
    this.#quarantine.kick();
    return true;
  }

  #chatOf(ref: string): { chat: string }[] {
    const seq = seqOf(ref);
    if (seq === undefined || !this.#store.exists()) return [];
    return this.#store.host.sql.all(`SELECT chat FROM quarantine WHERE seq = ?`, seq);
  }

  #hasten(chats: readonly { chat: string }[]): number {
    if (chats.length > 0) {
      const now = this.#store.now();
      this.#store.commit("quarantine.hasten", () => {
        for (const { chat } of chats)
          this.#store.host.sql.run(`UPDATE stuck SET due_at = ? WHERE chat = ?`, now, chat);
        this.#store.alarm.arm(now);
      });
      this.#quarantine.kick();
    }
    return chats.length;
  }
}

function shown(row: ListRow): QuarantinedItem {
  const item = JSON.parse(row.item) as InboundItem;
  return {
    ref: refOf(row.seq),
    chat: row.chat,
    id: row.id,
    kind: "event" in item ? item.event.kind : item.type,
    at: row.at,
    firstAt: row.first_at,
    tries: row.tries,
    dueAt: row.due_at,
    ...(row.error === null ? {} : { error: row.error }),
  };
}

function refOf(seq: number): string {
  return `q${seq.toString(36)}`;
}

function seqOf(ref: string | undefined): number | undefined {
  if (ref === undefined || !/^q[0-9a-z]{1,10}$/.test(ref)) return undefined;
  return Number.parseInt(ref.slice(1), 36);
}
