/**
 * Telegram's chats and threads as Holdfast's addresses. A thread is whatever keeps two conversations
 * with the same chat id apart:
 *
 * - `17`: a forum topic,
 * - `dm-17`: a person's topic in the direct messages of a channel,
 * - `business-<id>`: a customer's chat with a connected business account; Telegram says that it may
 *   share its id with the customer's own chat with the bot,
 * - `guest`: a chat that the bot is only a guest in, of which the same is true.
 *
 * @module
 */
import type { Message } from "@grammyjs/types";
import type { JsonObject } from "../content.ts";
import { DeliveryError, UnsupportedContentError } from "../errors.ts";
import type { Address, ChatInfo } from "../events.ts";
import { integer, text } from "./shape.ts";

/** The thread of a chat that the bot is only a guest in. */
export const GUEST = "guest";

/**
 * The General topic of a forum. A send that names it is refused; it is meant when none is named
 * (tdlib/telegram-bot-api#798).
 */
const GENERAL_TOPIC = 1;

/** Where a message to a chat goes, in a form that may be stored. */
export function telegramAddress(
  chatId: number | string,
  options: { thread?: number | string | undefined; connection?: string | undefined } = {},
): Address {
  const address: Address = { channel: "telegram", chat: String(chatId) };
  if (options.connection !== undefined) address.connection = options.connection;
  if (options.thread !== undefined) address.thread = String(options.thread);
  return address;
}

/** The chat's key: its id, and its thread where there is one. Ids hold no colon. */
export function chatKey(chat: Pick<ChatInfo, "id" | "thread">): string {
  return chat.thread === undefined ? chat.id : `${chat.id}:${chat.thread}`;
}

type ThreadFields = Pick<
  Message,
  | "business_connection_id"
  | "direct_messages_topic"
  | "guest_query_id"
  | "is_topic_message"
  | "message_thread_id"
>;

/** The thread that a message belongs to. */
export function threadOf(message: ThreadFields): string | undefined {
  if (message.business_connection_id)
    return `business-${text(message.business_connection_id, "business_connection_id")}`;
  if (message.guest_query_id) return GUEST;
  if (message.direct_messages_topic)
    return `dm-${integer(message.direct_messages_topic.topic_id, "topic_id")}`;
  // A thread id without the flag is the root of a chain of replies, not a topic, and sends to it fail
  // with "message thread not found" (tdlib/telegram-bot-api#447).
  if (message.is_topic_message && message.message_thread_id !== undefined) {
    const topic = integer(message.message_thread_id, "message_thread_id");
    // Most messages of the General topic name none; the others belong to the same conversation.
    return topic === GENERAL_TOPIC ? undefined : String(topic);
  }
  return undefined;
}

/**
 * The fields that say where a send goes.
 * @throws {UnsupportedContentError} for a chat that the bot is only a guest in
 * @throws {DeliveryError} for a thread that is none
 */
export function targetFields(address: Address): JsonObject {
  const target = { chat_id: chatIdOf(address.chat) };
  const { thread } = address;
  if (thread === undefined || thread === "" || Number(thread) === GENERAL_TOPIC) return target;
  if (thread === GUEST) {
    throw new UnsupportedContentError(
      'a guest chat on Telegram takes no messages: answer with api("answerGuestQuery", …)',
    );
  }
  const { kind, id } = /^(?<kind>dm|business)-(?<id>.+)$/.exec(thread)?.groups ?? {};
  if (kind === "business") return { ...target, business_connection_id: id ?? "" };
  const topic = kind === "dm" ? id : thread;
  // Sent as null, it would go to the wrong place.
  if (!/^\d{1,16}$/.test(topic ?? "")) {
    throw new DeliveryError(`${JSON.stringify(thread)} is not a thread on Telegram`, {
      kind: "invalid_payload",
    });
  }
  return {
    ...target,
    [kind === "dm" ? "direct_messages_topic_id" : "message_thread_id"]: Number(topic),
  };
}

/** The fields that name a message; `undefined` for an id that no message can have. */
export function messageFields(message: { id: string; address: Address }): JsonObject | undefined {
  if (!/^[1-9]\d{0,15}$/.test(message.id)) return undefined;
  const fields: JsonObject = {
    chat_id: chatIdOf(message.address.chat),
    message_id: Number(message.id),
  };
  const business = /^business-(.+)$/.exec(message.address.thread ?? "")?.[1];
  return business === undefined ? fields : { ...fields, business_connection_id: business };
}

/** Ids go out as numbers (they have at most 52 bits), names of channels as text. */
function chatIdOf(chat: string): number | string {
  return /^-?\d{1,16}$/.test(chat) ? Number(chat) : chat;
}
