/** The events by which runs go on, which no platform sends: records of kind `timer`. @module */
import type { InboundEvent } from "../channels/events.ts";
import type { Core } from "../objects/Core.ts";
import type { Wake } from "./records.ts";

/** Records one. Call inside a commit. */
export function insertWake(
  core: Core,
  seq: number,
  type: string,
  id: string,
  wake: Wake,
  now: number,
): void {
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
}
