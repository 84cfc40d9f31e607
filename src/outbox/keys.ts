/**
 * Names of sends: keys that people see, slots inside a turn, fingerprints of content, markers for the
 * platform.
 *
 * @module
 */
// node:crypto hashes synchronously; WebCrypto would put an await between deciding a send and its row.
import { createHash } from "node:crypto";

/** Encodes what separates the pieces of a key. */
export function encodeKey(part: string): string {
  return part.replace(
    /[%#~:/=!]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** What separates a stream's slot from those of its previews. No slot has it of itself. */
export const PREVIEW = "!";

/** Whether a slot is that of a preview, or of what tidies up after one. */
export function isPreviewSlot(slot: string): boolean {
  return slot.includes(PREVIEW);
}

/** The slot of an explicit key: it consumes no ordinal. */
export function explicitSlot(key: string): string {
  return `=${encodeKey(key)}`;
}

/** The key of a row: its own, or made of its turn's event and its slot. */
export function keyOf(
  row: { key: string | null; slot: string; part: number },
  inboxId: string | undefined,
): string {
  const head = row.key ?? `${inboxId ?? "?"}:${row.slot}`;
  return row.part === 0 ? head : `${head}#${row.part + 1}`;
}

/** Splits `<inbox id>:<slot>` and `#part`; slots never contain a colon. */
export function parseKey(key: string): {
  head: string;
  part: number;
  inboxId?: string;
  slot?: string;
} {
  const hash = /#(\d+)$/.exec(key);
  const part = hash?.[1] === undefined ? 0 : Number(hash[1]) - 1;
  const head = hash === null ? key : key.slice(0, hash.index);
  const colon = head.lastIndexOf(":");
  return colon < 0
    ? { head, part }
    : { head, part, inboxId: head.slice(0, colon), slot: head.slice(colon + 1) };
}

/** JSON with sorted keys, so that equal content has one form. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}

function hash(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

/** Identifies content (before hooks) to a chat. */
export function fingerprintOf(chat: unknown, content: unknown): string {
  return hash(canonicalJson([chat, content]), 16);
}

/**
 * What a platform may deduplicate or echo: 32 characters `[0-9a-z]` at most, the row's place and a
 * hash, so that a status or an echo finds its row without an index.
 */
export function markerOf(
  actor: string,
  row: { turn: number; pos: number; generation: number },
): string {
  const place = `${row.turn.toString(32)}z${row.pos.toString(32)}`;
  return `${place}z${hash(`${actor}|${place}|${row.generation}`, 8)}`;
}

/** The place that a marker names. The caller compares the whole marker with the row's. */
export function placeOfMarker(marker: string): { turn: number; pos: number } | undefined {
  // Base 32 ends at "v", so "z" can only be a separator.
  const match = /^([0-9a-v]+)z([0-9a-v]+)z([0-9a-f]{8})$/.exec(marker);
  if (match === null) return undefined;
  const turn = Number.parseInt(match[1] ?? "", 32);
  const pos = Number.parseInt(match[2] ?? "", 32);
  return Number.isSafeInteger(turn) && Number.isSafeInteger(pos) ? { turn, pos } : undefined;
}
