/**
 * Since when a row may be out.
 *
 * @module
 */
import type { OutboxRow } from "../journal/records.ts";

/** When the call of a row in `sending` began, as far as the row tells: its lease counts from there. */
export function markedAt(row: OutboxRow, leaseMs: number): number {
  return row.due_at === null ? row.created_at : row.due_at - leaseMs;
}
