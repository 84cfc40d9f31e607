/** Whether anything still has to happen by itself. @module */
import type { Chat } from "../objects/Chat.ts";
import type { NodeRuntime } from "./node/NodeRuntime.ts";

/** A listener that is called again later than this, in ms, is not waited for. */
const LISTENER_WAIT_MS = 300_000;

/**
 * Whether any chat has work that does not wait for a time the bot chose: a turn running or waiting, a
 * send under way, a crashed run to recover. Scheduled sends do not count.
 */
export function busyUntil(runtime: NodeRuntime): boolean {
  const now = runtime.clock.now();
  for (const name of runtime.names("ChatActor")) {
    const engine = runtime.engine("ChatActor", name) as Chat | undefined;
    if (engine?.live) return true;
    const storage = runtime.storage("ChatActor", name);
    const ready = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'outbox'`, []);
    if (ready.length === 0) continue;
    // A listener that keeps failing is called again ever more seldom: that is rest, too.
    const soon = now + LISTENER_WAIT_MS;
    const events = storage.all(
      `SELECT 1 AS x FROM inbox WHERE open = 1 AND (flags & 1) = 0
         AND (state NOT IN ('done', 'dead') OR coalesce(due_at, 0) <= ?) LIMIT 1`,
      [soon],
    );
    if (events.length > 0) return true;
    const sends = storage.all(
      `SELECT 1 AS x FROM outbox WHERE due_at IS NOT NULL AND (due_at <= ?
         OR (state = 'pending' AND attempts > 0) OR state IN ('sending', 'failed')
         OR (state = 'unknown' AND owed = 0) OR (owed <> 0 AND due_at <= ?)) LIMIT 1`,
      [now, soon],
    );
    if (sends.length > 0) return true;
  }
  return false;
}
