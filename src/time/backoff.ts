/**
 * Exponential backoff, half fixed and half random: the fixed half keeps a promise not to hammer, the
 * random half keeps a thousand chats from coming back in the same second.
 *
 * @module
 */

/** Base and ceiling of a backoff, in milliseconds. */
export interface Backoff {
  baseMs: number;
  capMs: number;
}

/**
 * The wait before retry number `retry` (1 for the first), in milliseconds: between half and all of
 * `min(cap, base · 2^(retry-1))`.
 *
 * @param random uniform in [0, 1)
 */
export function backoffMs(backoff: Backoff, retry: number, random: number): number {
  const full = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(30, Math.max(0, retry - 1)));
  return Math.ceil(full / 2 + (full / 2) * random);
}
