/**
 * The parts behind a part. Only the first open part of a message has a wake-up; the next gets its own in
 * the commit that ends the one before, so that none is left where nothing looks.
 *
 * @module
 */
import { isOpen, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { breakAway, leaveBehind } from "./previews.ts";

/**
 * Lets the part behind `row` go, or die with it, and what it leaves to do. Call in the commit that changed
 * `row`; does nothing while `row` is open.
 *
 * @param isHeld whether a live turn delivers the part by itself
 */
export function follow(core: Core, row: OutboxRow, isHeld: (next: OutboxRow) => boolean): void {
  if (isOpen(row)) return;
  leaveBehind(core, row);
  const { outbox } = core.journal;
  const now = core.now();
  for (const next of outbox.partsOf(row)) {
    if (next.part <= row.part || !isOpen(next)) continue;
    if (row.state === "dead") {
      // A part that is being sent this moment ends by its own answer.
      if (next.state === "sending") continue;
      outbox.move(next, "dead", {
        error_kind: row.error_kind,
        error: `part ${row.part + 1} died: ${row.error ?? ""}`,
        finished_at: now,
        due_at: null,
      });
      continue;
    }
    breakAway(core, row, next);
    if (!isHeld(next) && next.due_at === null) {
      outbox.update(next, { due_at: now });
      core.alarm.arm(now);
    }
    return;
  }
}
