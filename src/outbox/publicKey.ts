/** The key of a recorded send, as people see it. @module */
import type { Journal } from "../journal/Journal.ts";
import type { OutboxRow } from "../journal/records.ts";
import { keyOf } from "./keys.ts";

/** The key of a row: parts are named after their first one. */
export function publicKeyOf(journal: Journal, row: OutboxRow): string {
  const head = row.part === 0 ? row : (journal.outbox.partsOf(row)[0] ?? row);
  const event = head.key === null ? journal.inbox.get(row.turn)?.id : undefined;
  return keyOf({ ...head, part: row.part }, event);
}
