/**
 * Rows of a session's log, and the entries that pages see of them.
 *
 * @module
 */
import type { SqlRow } from "../../host/Host.ts";
import type { Entry, WebMessage } from "./protocol.ts";

/** A row. `change` says that a message of the bot was edited or removed; the message has the content. */
export interface LogRow extends SqlRow {
  seq: number;
  key: string;
  kind: "user" | "press" | "bot" | "change";
  at: number;
  /** 1 while the bot's journal is not known to have it. */
  open: number;
  /** JSON; null for a removed message, of which only the marker is kept. */
  body: string | null;
}

/** What a user's row holds besides its id. */
export type UserBody = { text: string } | { mid: string; value: string; label?: string };

/** A user's message or press. */
export interface UserRow {
  seq: number;
  at: number;
  cid: string;
  kind: "user" | "press";
  open: boolean;
  body: UserBody;
}

// Keys of the two sides never meet, whatever ids a page makes up.

/** The key of a user's message. */
export const userKey = (cid: string): string => `u/${cid}`;
/** The key of a message of the bot. */
export const botKey = (mid: string): string => `b/${mid}`;
/** The key of the note that a message of the bot was changed. */
export const changeKey = (mid: string): string => `c/${mid}`;

const idOf = (key: string) => key.slice(2);

/** Reads a user's row. */
export function toUser(row: LogRow): UserRow {
  return {
    seq: row.seq,
    at: row.at,
    cid: idOf(row.key),
    kind: row.kind === "press" ? "press" : "user",
    open: row.open === 1,
    body: JSON.parse(row.body ?? "{}") as UserBody,
  };
}

/** A user's row as pages see it. */
export function userEntry({ seq, at, cid, body }: UserRow): Entry {
  return "text" in body
    ? { seq, at, kind: "user", cid, text: body.text }
    : { seq, at, kind: "press", cid, ...body };
}

/** Any row as pages see it; a `change` with its message's body. Nothing where only the marker is left. */
export function toEntry(row: LogRow): Entry | undefined {
  const { seq, at, kind, body } = row;
  if (kind === "user" || kind === "press") return userEntry(toUser(row));
  const mid = idOf(row.key);
  // A removed message is gone; the note after it tells pages that had it.
  if (body === null) return kind === "change" ? { seq, at, kind: "remove", mid } : undefined;
  const message = JSON.parse(body) as WebMessage;
  return { seq, at, kind: kind === "bot" ? "bot" : "edit", mid, message };
}
