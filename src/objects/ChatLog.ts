/** The journal read as an event log: what arrived and what was said, in order. @module */
import type { InboundEvent } from "../channels/events.ts";
import type { InboxRow, OutboxRow } from "../journal/records.ts";
import { publicKeyOf } from "../outbox/publicKey.ts";
import type { LogEntry } from "../turns/Client.ts";
import type { Core } from "./Core.ts";

/** The most entries one read returns. */
const MAX_ENTRIES = 500;

/** The log of one chat. */
export class ChatLog {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Entries after a cursor, oldest first. */
  after(cursor: string | undefined, limit: number): LogEntry[] {
    if (!this.#core.journal.exists()) return [];
    const { inbox, outbox } = this.#core.journal;
    const [turn = 0, pos = -2] = cursor === undefined ? [] : cursor.split(".").map(Number);
    const count = Math.max(1, Math.min(limit, MAX_ENTRIES));
    // An event comes before the sends of its turn, so its place is one below their first.
    const events = inbox.range(pos < -1 ? turn - 1 : turn, count);
    const sends = outbox.from({ turn, pos }, count);
    const entries = [...events.map(eventEntry), ...sends.map((row) => this.#sendEntry(row))];
    return entries
      .sort((a, b) => compare(a.cursor, b.cursor))
      .filter((entry) => cursor === undefined || compare(entry.cursor, cursor) > 0)
      .slice(0, count);
  }

  /** The last entries, oldest first. */
  recent(limit: number): LogEntry[] {
    if (!this.#core.journal.exists()) return [];
    const count = Math.max(1, Math.min(limit, MAX_ENTRIES));
    const { inbox, outbox } = this.#core.journal;
    const events = inbox.list(undefined, Number.MAX_SAFE_INTEGER, count).map(eventEntry);
    const sends = outbox
      .list(undefined, { turn: Number.MAX_SAFE_INTEGER, pos: 0 }, count)
      .map((row) => this.#sendEntry(row));
    return [...events, ...sends].sort((a, b) => compare(a.cursor, b.cursor)).slice(-count);
  }

  #sendEntry(row: OutboxRow): LogEntry {
    const text =
      row.content === null ? undefined : (JSON.parse(row.content) as { text?: string }).text;
    return {
      cursor: `${row.turn}.${row.pos}`,
      at: row.created_at,
      type: "send",
      id: publicKeyOf(this.#core.journal, row),
      state: row.state,
      ...(text === undefined ? {} : { text }),
    };
  }
}

function eventEntry(row: InboxRow): LogEntry {
  let text: string | undefined;
  try {
    text = (JSON.parse(row.payload) as InboundEvent).text;
  } catch {
    // An unreadable record is listed all the same.
  }
  return {
    cursor: `${row.seq}.-1`,
    at: row.received_at,
    type: "event",
    kind: row.kind,
    id: row.id,
    state: row.state === "done" && row.error !== null ? "failed" : row.state,
    ...(text === undefined ? {} : { text }),
  };
}

function compare(a: string, b: string): number {
  const [aTurn = 0, aPos = 0] = a.split(".").map(Number);
  const [bTurn = 0, bPos = 0] = b.split(".").map(Number);
  return aTurn - bTurn || aPos - bPos;
}
