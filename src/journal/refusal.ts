/** Whether an error is the disk's refusal of a write, which passes, and not a fault of the code. @module */

/** SQLite names its errors; a full Durable Object says so in words. */
const REFUSED = /SQLITE_|database or disk is full/i;

/** Whether the journal refused a write. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSED.test(error.message);
}
