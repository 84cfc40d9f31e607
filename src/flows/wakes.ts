/** The events by which runs go on, which no platform sends: records of kind `timer`. @module */
import type { InboundEvent } from "../channels/events.ts";
import type { Core } from "../objects/Core.ts";
import type { Wake } from "./records.ts";

/** Records one, as the newest event of the chat, and lets the chat wake for it. Call inside a commit. */
export function insertWake(
  core: Core,
  type: string,
  id: string,
  wake: Wake,
  seq = core.journal.nextSeq(),
): void {
  const now = core.now();
  const { channel, connection, chat, thread, kind = "direct" } = core.identity();
  const event: InboundEvent = {
    id,
    kind: "timer",
    type,
    channel,
    connection,
    chat: { id: chat, kind, ...(thread === undefined ? {} : { thread }) },
    at: now,
    data: wake,
  };
  core.journal.inbox.insert({
    seq,
    id,
    semantic: null,
    kind: "timer",
    payload: JSON.stringify(event),
    receivedAt: now,
    claim: null,
  });
  core.alarm.arm(now + core.watchdogMs);
}
