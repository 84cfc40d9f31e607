/**
 * A page of a list across chats: how full it is, and where the next one goes on.
 *
 * @module
 */
import { ConfigError } from "../channels/errors.ts";
import type { Listing, ListRow } from "./Client.ts";

/** Chats that one page asks at most: a Worker may make only so many calls for one request. */
const MAX_CHATS = 40;
/** A page that took this long ends where it is, in ms. */
const PAGE_MS = 15_000;
const MAX_PAGE = 200;

/** Where a list across chats goes on: behind `chat`, or inside it where `inner` is set. */
export interface Place {
  shard: number;
  chat: string;
  inner: string;
}

/** A page that is being filled. */
export class AcrossPage {
  readonly rows: ListRow<never>[] = [];
  readonly unreachable: string[] = [];
  asked = 0;
  readonly #limit: number;
  readonly #startedAt: number;

  constructor(limit: number, now: number) {
    this.#limit = limit;
    this.#startedAt = now;
  }

  get left(): number {
    return this.#limit - this.rows.length;
  }

  isFull(now: number): boolean {
    return this.left <= 0 || this.asked >= MAX_CHATS || now - this.#startedAt > PAGE_MS;
  }

  end(at: Place | undefined): Listing<never> {
    return {
      rows: this.rows,
      ...(at === undefined ? {} : { cursor: writePlace(at) }),
      ...(this.unreachable.length === 0 ? {} : { unreachable: this.unreachable }),
    };
  }
}

/** The size of a page. @throws {ConfigError} with the bounds */
export function pageSize(limit: number | undefined): number {
  const size = limit ?? 50;
  if (!Number.isInteger(size) || size < 1 || size > MAX_PAGE)
    throw new ConfigError(
      `limit is ${String(limit)}, but must be a whole number from 1 to ${MAX_PAGE}`,
    );
  return size;
}

/** Reads a cursor. @throws {ConfigError} when the text is none */
export function readPlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { shard: 0, chat: "", inner: "" };
  try {
    const [shard, chat, inner] = JSON.parse(atob(cursor)) as [number, string, string];
    if (Number.isInteger(shard) && typeof chat === "string" && typeof inner === "string")
      return { shard, chat, inner };
  } catch {
    // Falls through to the one message.
  }
  throw new ConfigError("this is not a cursor; take it from the last page as it is");
}

/** The cursor of a place. */
export function writePlace(at: Place): string {
  // Names and cursors are ASCII.
  return btoa(JSON.stringify([at.shard, at.chat, at.inner]));
}
