/**
 * The log of one session: rows by server sequence number. A user's message costs three rows written
 * and one more when the bot has it; the bot's message two.
 *
 * @module
 */
import type { Host } from "../../host/Host.ts";
import type { Entry, WebMessage } from "./protocol.ts";
import {
  botKey,
  changeKey,
  type LogRow,
  toEntry,
  toUser,
  type UserBody,
  type UserRow,
  userKey,
} from "./rows.ts";

/** How many entries a page can scroll back to. */
export const KEEP_ENTRIES = 2_000;
/** Entries over that before some are removed: a trim costs less per entry in batches. */
const SLACK_ENTRIES = 200;
/** Rows purged in one commit. */
const PURGE_SLICE = 500;
/** Entries in one frame of a replay, their characters, and the characters of a whole replay. */
const REPLAY_SLICE = 50;
const REPLAY_CHARACTERS = 131_072;
const REPLAY_MAX_CHARACTERS = 2_097_152;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL, at INTEGER NOT NULL, open INTEGER NOT NULL, body TEXT) STRICT`,
  `CREATE INDEX IF NOT EXISTS log_open ON log (seq) WHERE open = 1`,
];

/** Typed access to the log. Everything that writes belongs into a transaction of the caller. */
export class LogTable {
  readonly #host: Host;
  #ready = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Whether there are tables; makes none, so that a look at an unused session leaves no storage. */
  exists(): boolean {
    this.#ready ||= this.#rows(`SELECT 1 AS x FROM sqlite_master WHERE name = 'log_open'`) > 0;
    return this.#ready;
  }

  /** Makes the tables where they are missing. */
  ensure(): void {
    if (this.#ready) return;
    for (const statement of TABLES) this.#host.sql.run(statement);
    this.#ready = true;
  }

  /** Forgets what it knows: after `deleteAll`, or a rollback. */
  reset(): void {
    this.#ready = false;
  }

  /** The last sequence number; 0 in an empty log. */
  lastSeq(): number {
    if (!this.exists()) return 0;
    return this.#host.sql.all<{ s: number | null }>(`SELECT max(seq) AS s FROM log`)[0]?.s ?? 0;
  }

  /** Inserts a user's message unless its id is known. Returns the row, and whether it is new. */
  addUser(
    cid: string,
    kind: UserRow["kind"],
    body: UserBody,
    now: number,
  ): { row: UserRow; fresh: boolean } {
    const known = this.#get(userKey(cid));
    if (known !== undefined) return { row: toUser(known), fresh: false };
    const seq = this.#insert(userKey(cid), kind, now, 1, JSON.stringify(body));
    return { row: { seq, at: now, cid, kind, open: true, body }, fresh: true };
  }

  /** Inserts a message of the bot unless its marker is known. */
  addBot(mid: string, message: WebMessage, now: number): { seq: number; fresh: boolean } {
    const known = this.#get(botKey(mid));
    if (known !== undefined) return { seq: known.seq, fresh: false };
    return { seq: this.#insert(botKey(mid), "bot", now, 0, JSON.stringify(message)), fresh: true };
  }

  /**
   * Replaces a message of the bot, or removes it. `undefined`: there is none. `changed` is false where
   * it is so already, which makes a repeat free.
   */
  change(
    mid: string,
    message: WebMessage | null,
    now: number,
  ): { seq: number; changed: boolean } | undefined {
    const row = this.#get(botKey(mid));
    if (row === undefined || (row.body === null && message !== null)) return undefined;
    const body = message === null ? null : JSON.stringify(message);
    if (row.body === body) return { seq: row.seq, changed: false };
    this.#host.sql.run(`UPDATE log SET body = ? WHERE seq = ?`, body, row.seq);
    // One note per message, always the newest: a page that was away needs no more, and a streamed
    // answer does not push the conversation out of the log.
    const seq = this.#nextSeq(now);
    const note = this.#get(changeKey(mid));
    if (note === undefined) this.#insert(changeKey(mid), "change", now, 0, null);
    else this.#host.sql.run(`UPDATE log SET seq = ?, at = ? WHERE seq = ?`, seq, now, note.seq);
    return { seq, changed: true };
  }

  /** Messages that the bot's journal may not have, oldest first. */
  open(limit: number): UserRow[] {
    if (!this.exists()) return [];
    return this.#host.sql
      .all<LogRow>(`SELECT * FROM log WHERE open = 1 ORDER BY seq LIMIT ?`, limit)
      .map(toUser);
  }

  /** Whether `count` messages or more are open. Reads no more rows than that. */
  hasOpen(count: number): boolean {
    if (!this.exists()) return false;
    return this.#rows(`SELECT 1 AS x FROM log WHERE open = 1 LIMIT ?`, count) >= count;
  }

  /** The bot's journal has these. */
  close(rows: readonly UserRow[]): void {
    for (const { seq } of rows) this.#host.sql.run(`UPDATE log SET open = 0 WHERE seq = ?`, seq);
  }

  /**
   * Everything after a number, a frame's worth at a time and read as it is asked for, so that no long
   * history is ever in memory as a whole. What lies further back than a page can use is left out.
   */
  *after(seq: number): Generator<Entry[]> {
    if (!this.exists()) return;
    let last = this.#replayStart(Math.max(seq, this.#floor() - 1));
    let slice: Entry[] = [];
    let characters = 0;
    for (;;) {
      const rows = this.#host.sql.all<LogRow>(
        `SELECT seq, key, kind, at, open, CASE kind WHEN 'change'
           THEN (SELECT m.body FROM log m WHERE m.key = 'b/' || substr(log.key, 3))
           ELSE body END AS body
         FROM log WHERE seq > ? ORDER BY seq LIMIT ?`,
        last,
        REPLAY_SLICE,
      );
      for (const row of rows) {
        last = row.seq;
        const entry = toEntry(row);
        if (entry === undefined) continue;
        slice.push(entry);
        characters += row.body?.length ?? 0;
        if (characters < REPLAY_CHARACTERS) continue;
        yield slice;
        slice = [];
        characters = 0;
      }
      if (slice.length > 0) yield slice;
      if (rows.length < REPLAY_SLICE) return;
      slice = [];
      characters = 0;
    }
  }

  /** Where a replay starts at the earliest, so that it stays within what one socket should carry. */
  #replayStart(seq: number): number {
    let room = REPLAY_MAX_CHARACTERS;
    const sizes = this.#host.sql.all<{ seq: number; size: number }>(
      `SELECT seq, coalesce(length(body), 0) AS size FROM log WHERE seq > ? ORDER BY seq DESC LIMIT ?`,
      seq,
      KEEP_ENTRIES + SLACK_ENTRIES,
    );
    for (const row of sizes) {
      room -= row.size;
      if (room < 0) return row.seq;
    }
    return seq;
  }

  /**
   * Keeps the log short. How far the numbers have run says when to look, so that most calls read three
   * rows. A trimmed message of the bot leaves its marker, which a late repeat must still meet.
   */
  trim(): void {
    const last = this.lastSeq();
    const first = this.#host.sql.all<{ s: number | null }>(`SELECT min(seq) AS s FROM log`)[0]?.s;
    const due = this.meta("trim") ?? (first ?? 0) + KEEP_ENTRIES + SLACK_ENTRIES;
    if (last < Number(due)) return;
    this.setMeta("trim", String(last + SLACK_ENTRIES));
    const floor = this.#floor();
    const cut = this.#host.sql.all<{ seq: number }>(
      `SELECT seq FROM log WHERE seq >= ? ORDER BY seq DESC LIMIT 1 OFFSET ?`,
      floor,
      KEEP_ENTRIES - 1,
    )[0]?.seq;
    if (cut === undefined) return;
    const { sql } = this.#host;
    sql.run(
      `DELETE FROM log WHERE seq >= ? AND seq < ? AND kind <> 'bot' AND open = 0`,
      floor,
      cut,
    );
    sql.run(
      `UPDATE log SET body = NULL WHERE seq >= ? AND seq < ? AND kind = 'bot' AND body IS NOT NULL`,
      floor,
      cut,
    );
    this.setMeta("floor", String(cut));
  }

  /**
   * Deletes a slice of what is older than `before`.
   * @returns whether more is due, and how many messages went that the bot never got
   */
  purge(before: number): { more: boolean; lost: number } {
    const oldest = this.#host.sql.all<{ seq: number; at: number; open: number }>(
      `SELECT seq, at, open FROM log ORDER BY seq LIMIT ?`,
      PURGE_SLICE,
    );
    const due = oldest.filter((row) => row.at < before);
    for (const { seq } of due) this.#host.sql.run(`DELETE FROM log WHERE seq = ?`, seq);
    return {
      more: due.length === PURGE_SLICE,
      lost: due.filter((row) => row.open === 1).length,
    };
  }

  /** When the oldest row was written; `undefined` in an empty log. */
  oldestAt(): number | undefined {
    if (!this.exists()) return undefined;
    return this.#host.sql.all<{ at: number }>(`SELECT at FROM log ORDER BY seq LIMIT 1`)[0]?.at;
  }

  /** A small named value. */
  meta(key: string): string | undefined {
    if (!this.exists()) return undefined;
    return this.#host.sql.all<{ v: string }>(`SELECT v FROM meta WHERE k = ?`, key)[0]?.v;
  }

  /** Sets a small named value, or removes it. */
  setMeta(key: string, value: string | undefined): void {
    if (value === undefined) this.#host.sql.run(`DELETE FROM meta WHERE k = ?`, key);
    else {
      this.#host.sql.run(
        `INSERT INTO meta (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
        key,
        value,
      );
    }
  }

  /** Entries below are trimmed: only markers are left there, and what the bot has not got. */
  #floor(): number {
    return Number(this.meta("floor") ?? 0);
  }

  /**
   * One more than the last. An empty log starts at the clock's microseconds: a page that was open when
   * everything was purged drops numbers that it has seen.
   */
  #nextSeq(now: number): number {
    const last = this.lastSeq();
    return last === 0 ? now * 1_000 : last + 1;
  }

  #insert(key: string, kind: LogRow["kind"], now: number, open: 0 | 1, body: string | null) {
    const seq = this.#nextSeq(now);
    this.#host.sql.run(
      `INSERT INTO log (seq, key, kind, at, open, body) VALUES (?, ?, ?, ?, ?, ?)`,
      seq,
      key,
      kind,
      now,
      open,
      body,
    );
    return seq;
  }

  #get(key: string): LogRow | undefined {
    return this.#host.sql.all<LogRow>(`SELECT * FROM log WHERE key = ?`, key)[0];
  }

  #rows(query: string, ...params: number[]): number {
    return this.#host.sql.all(query, ...params).length;
  }
}
