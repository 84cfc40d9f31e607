/** Pages of records, and references to one. @module */
import { ConfigError } from "../channels/errors.ts";

const MAX_PAGE = 200;

/** The opaque reference of a record: its actor, its box, its id. */
export function makeRef(actor: string, box: "in" | "out", id: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify([actor, box, id]));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/**
 * Reads {@link makeRef} back.
 * @throws {ConfigError} when the text is no reference
 */
export function readRef(ref: string): { actor: string; box: "in" | "out"; id: string } {
  try {
    const text = atob(ref.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const [actor, box, id] = JSON.parse(new TextDecoder().decode(bytes)) as [
      string,
      string,
      string,
    ];
    if (typeof actor === "string" && (box === "in" || box === "out") && typeof id === "string")
      return { actor, box, id };
  } catch {
    // Falls through to the one message.
  }
  throw new ConfigError("this is not a record's `ref`; take it from a list as it is");
}

/** @throws {ConfigError} for a size that is none */
export function pageSize(limit: number | undefined): number {
  const size = limit ?? 50;
  if (!Number.isInteger(size) || size < 1 || size > MAX_PAGE)
    throw new ConfigError(
      `limit is ${String(limit)}, but must be a whole number from 1 to ${MAX_PAGE}`,
    );
  return size;
}

/** @throws {ConfigError} for a text that is no cursor of ours */
export function readCursor(cursor: string): { turn: number; pos: number } {
  const match = /^(\d{1,17})\.(\d{1,9})$/.exec(cursor);
  if (match === null)
    throw new ConfigError("this is not a cursor; take it from the last page as it is");
  return { turn: Number(match[1]), pos: Number(match[2]) };
}
