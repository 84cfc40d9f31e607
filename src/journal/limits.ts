/** Limits of journaled values. @module */

/**
 * The most characters a journaled value may have. The runtime refuses rows over 2 MB in production but
 * not locally (durable-objects §1.2), so the limit is enforced in code.
 */
export const MAX_VALUE_LENGTH = 1_900_000;
