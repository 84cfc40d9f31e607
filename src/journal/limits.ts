/** Limits of journaled values. @module */

/**
 * The most bytes of UTF-8 a journaled value may have. The runtime refuses rows over 2 MB in production
 * but not locally (durable-objects §1.2), so the limit is enforced in code.
 */
export const MAX_VALUE_LENGTH = 1_900_000;

/** Positions of one intent's parts: room for this many before the next intent of the turn. */
export const PARTS_PER_INTENT = 1_024;

const encoder = new TextEncoder();

/** Whether a text is over the limit. Short texts, which are nearly all, are not measured. */
export function tooLarge(text: string): boolean {
  // A UTF-16 unit has at most three bytes in UTF-8.
  return text.length * 3 > MAX_VALUE_LENGTH && encoder.encode(text).length > MAX_VALUE_LENGTH;
}
