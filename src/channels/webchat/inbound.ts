/**
 * What arrives from the web chat. It comes from the session's room, over the object's own call and not
 * through a webhook, so the webhook half refuses everything.
 *
 * @module
 */
import type { Inbound, InboundItem } from "../channel.ts";
import type { ChatInfo, InboundEvent } from "../events.ts";
import type { WebChatConfig } from "./config.ts";
import type { UserRow } from "./rows.ts";

/** The inbound half of the channel: nothing comes in by webhook. */
export const inbound: Inbound<WebChatConfig> = {
  maxBodyBytes: 0,
  verify: () => false,
  parse: () => [],
  answer: () => new Response(null, { status: 404 }),
};

/** The chat of a session. */
export function chatOf(session: string): ChatInfo {
  return { id: session, kind: "direct" };
}

/**
 * A row of the room's log as an item for the bot. Pure: a repeat after a crash is the same item. The
 * page's own id is the delivery key, so that all repeats on the way are one event.
 */
export function itemOf(row: UserRow, at: { connection: string; session: string }): InboundItem {
  const { cid, body } = row;
  const event: InboundEvent = {
    id: cid,
    kind: "message",
    channel: "webchat",
    connection: at.connection,
    chat: chatOf(at.session),
    sender: { id: at.session },
    at: row.at,
  };
  if ("text" in body) {
    event.text = body.text;
    event.messageId = cid;
  } else {
    event.kind = "action";
    event.messageId = body.mid;
    // No `pressId`: the page shows a press as taken by the room's ack, so there is no spinner to stop.
    event.press = { value: body.value };
  }
  return { type: "event", event };
}
