/**
 * Items whose chat could not admit them, kept so that one chat cannot hold up the others. Each chat's
 * items are tried again in their order, oldest first, until the chat takes them or an operator discards
 * them.
 *
 * @module
 */
import type { InboundItem } from "../channels/channel.ts";
import type { ChatInfo } from "../channels/events.ts";
import { tooLarge } from "../journal/limits.ts";
import { errorText } from "../safety/redact.ts";
import { backoffMs } from "../time/backoff.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import { admit, type ChatGroup, deliveryIdOf } from "./admit.ts";
import { type Alive, ConnectionLoop } from "./ConnectionLoop.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";

/** The most items that are kept: past it, whatever would come in is refused visibly. */
export const QUARANTINE_MAX = 10_000;
/** How long a chat may take to admit a group, in ms. */
export const ADMIT_MS = 10_000;
/** Items handed to a chat at once; after a failure one, so that only a bad one holds the rest up. */
const SLICE = 20;
/** Chats tried at once. */
const CHATS = 8;
const BACKOFF = { baseMs: 1_000, capMs: 600_000 };
/** Characters kept of an item that is larger than a row may be. */
const SAMPLE = 2_000;

/** Why a group goes to the quarantine, and when its chat is tried again (epoch ms). */
export interface Spill {
  group: ChatGroup;
  dueAt: number;
  /** Absent where nothing failed: the item only waits for its turn to be handed over. */
  error?: string;
}

/** The quarantine takes no more: an operator must look. */
export class QuarantineFullError extends Error {
  constructor() {
    super(
      `the quarantine is full (${QUARANTINE_MAX} items): replay or discard what is in it, and see why its chats do not admit`,
    );
    this.name = "QuarantineFullError";
  }
}

interface StuckRow {
  chat: string;
  info: string;
  due_at: number;
  tries: number;
  [column: string]: string | number | null;
}

/** What a stuck chat needs besides its items. */
interface ChatFacts {
  connection: string;
  channel: string;
  chat: ChatInfo;
}

/** What became of one try. */
type Outcome = { ok: true } | { ok: false; error?: string; retryAfterMs?: number };

/** The quarantine of one connection. */
export class Quarantine {
  readonly #store: ConnectionStore;
  readonly #loop: ConnectionLoop;

  constructor(store: ConnectionStore) {
    this.#store = store;
    this.#loop = new ConnectionLoop(store.host, (alive) => this.#run(alive));
  }

  /** Whether a chat has items here: later ones must go behind them. */
  has(chat: string): boolean {
    if (!this.#store.exists()) return false;
    return this.#sql.all(`SELECT 1 AS x FROM stuck WHERE chat = ?`, chat).length > 0;
  }

  /** Whether `more` items have room. */
  hasRoom(more: number): boolean {
    if (!this.#store.exists()) return more <= QUARANTINE_MAX;
    const [row] = this.#sql.all<{ n: number }>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM quarantine LIMIT ?)`,
      QUARANTINE_MAX,
    );
    return (row?.n ?? 0) + more <= QUARANTINE_MAX;
  }

  /**
   * Takes a group in; inside a commit.
   * @throws {QuarantineFullError}
   */
  put({ group, dueAt, error }: Spill): void {
    const { name, request } = group;
    const now = this.#store.now();
    if (!this.hasRoom(request.items.length)) throw new QuarantineFullError();
    for (const item of request.items) {
      this.#sql.run(
        `INSERT INTO quarantine (chat, id, at, item) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        name,
        deliveryIdOf(item),
        now,
        textOf(item, request.chat),
      );
    }
    const { connection, channel, chat } = request;
    const info: ChatFacts = { connection, channel, chat };
    this.#sql.run(
      `INSERT INTO stuck (chat, info, due_at, tries, first_at, tried_at, error) VALUES (?, ?, ?, 0, ?, ?, ?)
       ON CONFLICT (chat) DO NOTHING`,
      name,
      JSON.stringify(info),
      dueAt,
      now,
      now,
      error ?? null,
    );
    this.#store.alarm.arm(dueAt);
  }

  /** When the next chat is due; epoch ms. */
  nextDue(): number | undefined {
    if (!this.#store.exists()) return undefined;
    return (
      this.#sql.all<{ at: number | null }>(`SELECT min(due_at) AS at FROM stuck`)[0]?.at ??
      undefined
    );
  }

  /** Tries whatever is due. */
  kick(): void {
    const due = this.nextDue();
    if (due !== undefined && due <= this.#store.now()) this.#loop.kick();
  }

  get #sql() {
    return this.#store.host.sql;
  }

  async #run(alive: Alive): Promise<void> {
    try {
      while (alive()) {
        const due = this.#sql.all<StuckRow>(
          `SELECT chat, info, due_at, tries FROM stuck WHERE due_at <= ? ORDER BY due_at LIMIT ?`,
          this.#store.now(),
          CHATS,
        );
        if (due.length === 0) break;
        await Promise.all(due.map((row) => this.#replay(row, alive)));
      }
    } catch (error) {
      this.#store.host.rethrowIfHalted(error);
      // Rows keep their time; the watchdog that the alarm set comes back to them.
      this.#store.host.log.error("the quarantine could not be replayed", this.#about(error));
    }
  }

  async #replay(row: StuckRow, alive: Alive): Promise<void> {
    const items = this.#sql.all<{ seq: number; item: string }>(
      `SELECT seq, item FROM quarantine WHERE chat = ? ORDER BY seq LIMIT ?`,
      row.chat,
      row.tries > 0 ? 1 : SLICE,
    );
    const outcome = items.length === 0 ? ({ ok: true } as const) : await this.#try(row, items);
    // Whoever runs now has its own answer.
    if (!alive()) return;
    if (outcome.ok) this.#done(row, items);
    else this.#wait(row, outcome);
  }

  async #try(row: StuckRow, items: readonly { item: string }[]): Promise<Outcome> {
    const { host } = this.#store;
    try {
      const group: ChatGroup = {
        name: row.chat,
        request: {
          ...(JSON.parse(row.info) as ChatFacts),
          items: items.map(({ item }) => JSON.parse(item) as InboundItem),
        },
      };
      const answer = await withDeadline(
        host.clock,
        ADMIT_MS,
        admit(host.actors, group, { atCommit: true }),
      );
      if (answer === TIMED_OUT) return { ok: false, error: "the chat did not answer" };
      if (answer.ok) return { ok: true };
      return { ok: false, retryAfterMs: answer.retryAfterSeconds * 1_000 };
    } catch (error) {
      host.rethrowIfHalted(error);
      return { ok: false, error: errorText(error, host.env) };
    }
  }

  #done(row: StuckRow, items: readonly { seq: number }[]): void {
    const left = this.#store.commit("quarantine.done", () => {
      for (const { seq } of items) this.#sql.run(`DELETE FROM quarantine WHERE seq = ?`, seq);
      return this.release(row.chat);
    });
    if (!left) this.#store.host.log.info("a chat admitted what waited for it", { chat: row.chat });
  }

  /** Frees a chat that has nothing here any more, else lets it go on; inside a commit. Says which. */
  release(chat: string): boolean {
    const left = this.#sql.all(`SELECT 1 AS x FROM quarantine WHERE chat = ? LIMIT 1`, chat);
    if (left.length === 0) this.#sql.run(`DELETE FROM stuck WHERE chat = ?`, chat);
    else {
      const now = this.#store.now();
      this.#sql.run(`UPDATE stuck SET tries = 0, due_at = ? WHERE chat = ?`, now, chat);
      this.#store.alarm.arm(now);
    }
    return left.length > 0;
  }

  #wait(row: StuckRow, outcome: Extract<Outcome, { ok: false }>): void {
    const { host, alarm } = this.#store;
    const now = this.#store.now();
    // A full queue is not a failure: the chat works, and said when to come back.
    const tries = outcome.retryAfterMs === undefined ? row.tries + 1 : row.tries;
    const waitMs = outcome.retryAfterMs ?? backoffMs(BACKOFF, tries, host.random());
    const dueAt = now + Math.max(1_000, waitMs);
    this.#store.commit("quarantine.wait", () => {
      this.#sql.run(
        `UPDATE stuck SET tries = ?, due_at = ?, tried_at = ?, error = ? WHERE chat = ?`,
        tries,
        dueAt,
        now,
        outcome.error ?? "its queue is full",
        row.chat,
      );
      alarm.arm(dueAt);
    });
  }

  #about(error: unknown): { error: string } {
    return { error: errorText(error, this.#store.host.env) };
  }
}

/** An item as a row holds it; one that is larger than a row may be becomes a dead record of its chat. */
function textOf(item: InboundItem, chat: ChatInfo): string {
  const text = JSON.stringify(item);
  if (!tooLarge(text)) return text;
  const bad: InboundItem = {
    type: "bad",
    id: deliveryIdOf(item),
    chat,
    error: "larger than the journal allows",
    sample: text.slice(0, SAMPLE),
  };
  return JSON.stringify(bad);
}
