/**
 * A message of Telegram as an event: who, where, what it says and what it carries.
 *
 * @module
 */
import type { Chat, Message, User } from "@grammyjs/types";
import type { ChatInfo, EventKind, InboundEvent, Sender } from "../events.ts";
import { telegramAddress, threadOf } from "./address.ts";
import { mediaOf } from "./attachments.ts";
import { isRecord } from "./call.ts";
import { botIdOf, type TelegramConfig } from "./config.ts";
import { integer, Malformed, object, optionalText } from "./shape.ts";

/** What every event of one update shares. */
export type EventBase = Pick<InboundEvent, "id" | "channel" | "connection" | "native">;

/** What makes a message something that a person said; anything else is a service message. */
const CONTENT = [
  "text",
  "caption",
  "rich_message",
  "animation",
  "audio",
  "document",
  "live_photo",
  "paid_media",
  "photo",
  "sticker",
  "story",
  "video",
  "video_note",
  "voice",
  "contact",
  "dice",
  "game",
  "poll",
  "venue",
  "location",
  "checklist",
  "invoice",
  "giveaway",
] as const satisfies readonly (keyof Message)[];

/** Fields that stand beside content or a service field without being either. */
const ENVELOPE: ReadonlySet<string> = new Set([
  "message_id",
  "message_thread_id",
  "direct_messages_topic",
  "from",
  "sender_chat",
  "sender_boost_count",
  "sender_business_bot",
  "sender_tag",
  "date",
  "edit_date",
  "chat",
  "business_connection_id",
  "guest_query_id",
  "forward_origin",
  "is_topic_message",
  "is_automatic_forward",
  "is_from_offline",
  "is_paid_post",
  "reply_to_message",
  "reply_to_story",
  "reply_to_checklist_task_id",
  "reply_to_poll_option_id",
  "external_reply",
  "quote",
  "via_bot",
  "has_protected_content",
  "has_media_spoiler",
  "author_signature",
  "paid_star_count",
  "effect_id",
  "receiver_user",
  "ephemeral_message_id",
  "reply_markup",
  "suggested_post_info",
]);

/**
 * A message as an event. A service message ("Ann joined") is of kind `telegram:<its field>`, so that
 * it does not reach handlers of messages.
 */
export function messageEvent(
  base: EventBase,
  kind: EventKind,
  value: unknown,
  options: TelegramConfig,
): InboundEvent {
  const message = messageOf(value);
  const service = kind === "message" ? serviceField(message) : undefined;
  const date = integer(message.edit_date ?? message.date, "date");
  const event: InboundEvent = {
    ...base,
    kind: service === undefined ? kind : `telegram:${service}`,
    chat: chatOf(message.chat, threadOf(message)),
    at: date * 1_000,
    messageId: idOf(message),
  };
  const sender = authorOf(message);
  if (sender !== undefined) event.sender = sender;
  const text = textOf(message);
  if (text !== undefined) event.text = text;
  const media = mediaOf(message);
  if (media.length > 0) event.media = media;
  const album = optionalText(message.media_group_id, "media_group_id");
  if (album !== undefined) event.groupId = album;
  const location = locationOf(message);
  if (location !== undefined) event.location = location;
  const replyTo = replyToOf(message);
  if (replyTo !== undefined) event.replyTo = replyTo;
  if (isMentioned(message, options)) event.mentioned = true;
  if (isSelfAuthored(message, options)) event.selfAuthored = true;
  const migration = migrationOf(message);
  if (migration !== undefined) {
    const { to, from } = migration;
    event.migration = migration;
    event.data = {
      ...(to === undefined ? {} : { migratedTo: telegramAddress(to, base) }),
      ...(from === undefined ? {} : { migratedFrom: telegramAddress(from, base) }),
    };
  }
  return event;
}

/** Checks what every message has. */
export function messageOf(value: unknown): Message {
  const message = object(value, "message");
  integer(message.message_id, "message_id");
  object(message.chat, "chat");
  return value as Message;
}

/** A message's id; `e7` for the ephemeral message 7, whose `message_id` is 0. */
export function idOf(message: Pick<Message, "message_id" | "ephemeral_message_id">): string {
  return message.message_id === 0 && message.ephemeral_message_id !== undefined
    ? `e${integer(message.ephemeral_message_id, "ephemeral_message_id")}`
    : String(integer(message.message_id, "message_id"));
}

/** A chat, and the thread in it. */
export function chatOf(value: unknown, thread?: string): ChatInfo {
  const chat = object(value, "chat");
  const info: ChatInfo = {
    id: String(integer(chat.id, "chat.id")),
    kind: chat.type === "private" ? "direct" : chat.type === "channel" ? "broadcast" : "group",
  };
  if (thread !== undefined) info.thread = thread;
  const title = optionalText(chat.title, "chat.title");
  if (title !== undefined) info.title = title;
  return info;
}

/**
 * GroupAnonymousBot and Channel_Bot: users that Telegram makes up for people who act in a group's or a
 * channel's name. They are marked as bots, and what they do would be dropped as bots' doing.
 */
const STAND_INS: ReadonlySet<unknown> = new Set([1_087_968_824, 136_817_688]);

/** A user as a sender. */
export function userOf(value: unknown): Sender {
  const user = object(value, "user") as Partial<User>;
  const sender: Sender = { id: String(integer(user.id, "user.id")) };
  const name = [
    optionalText(user.first_name, "first_name"),
    optionalText(user.last_name, "last_name"),
  ]
    .filter(Boolean)
    .join(" ");
  if (name !== "") sender.name = name;
  const username = optionalText(user.username, "username");
  if (username !== undefined) sender.username = username;
  if (user.is_bot === true && !STAND_INS.has(user.id)) sender.isBot = true;
  return sender;
}

/** A chat that speaks, or reacts, in its own name. */
export function chatAsSender(value: unknown): Sender {
  const chat = object(value, "sender_chat") as Partial<Chat>;
  const sender: Sender = { id: String(integer(chat.id, "sender_chat.id")) };
  const name = optionalText(chat.title, "title");
  if (name !== undefined) sender.name = name;
  const username = optionalText(chat.username, "username");
  if (username !== undefined) sender.username = username;
  return sender;
}

/** Who boosted a chat, where Telegram says it; in the updates about boosts nothing else names a person. */
export function boosterOf(update: Record<string, unknown>): unknown {
  const boost = isRecord(update.boost) ? update.boost : update;
  return isRecord(boost.source) ? boost.source.user : undefined;
}

/**
 * Who wrote it. Behind anonymous admins and channels stands a made-up bot in `from`; taken for the
 * author, it would be dropped with the messages of bots.
 */
function authorOf(message: Message): Sender | undefined {
  if (message.sender_chat !== undefined) return chatAsSender(message.sender_chat);
  return message.from === undefined ? undefined : userOf(message.from);
}

function serviceField(message: Message): string | undefined {
  if (CONTENT.some((field) => message[field] !== undefined)) return undefined;
  return Object.keys(message).find((field) => !ENVELOPE.has(field));
}

function textOf(message: Message): string | undefined {
  const text = optionalText(message.text ?? message.caption, "text");
  if (text !== undefined || message.rich_message === undefined) return text;
  const lines: string[] = [];
  collectText(message.rich_message.blocks, lines, 0);
  return lines.length === 0 ? undefined : lines.join("\n");
}

/**
 * The words of a rich message (Bot API 10.1), without layout: every string under a key that holds
 * words. Blocks nest at most 16 deep.
 */
function collectText(value: unknown, lines: string[], depth: number): void {
  if (depth > 40 || typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    if (key === "text" || key === "expression") {
      const line = inlineText(child, 0);
      if (line !== "") lines.push(line);
    } else if (typeof child === "object") {
      collectText(child, lines, depth + 1);
    }
  }
}

function inlineText(value: unknown, depth: number): string {
  if (typeof value === "string") return value;
  if (depth > 40 || typeof value !== "object" || value === null) return "";
  if (Array.isArray(value)) return value.map((child) => inlineText(child, depth + 1)).join("");
  const { text, alternative_text, expression } = value as Record<string, unknown>;
  return inlineText(text ?? alternative_text ?? expression, depth + 1);
}

function locationOf(message: Message): InboundEvent["location"] {
  if (message.location === undefined) return undefined;
  const { latitude, longitude } = object(message.location, "location");
  if (typeof latitude !== "number" || typeof longitude !== "number") {
    throw new Malformed("location has no coordinates");
  }
  const name = optionalText(message.venue?.title, "venue.title");
  return name === undefined ? { latitude, longitude } : { latitude, longitude, name };
}

function replyToOf(message: Message): string | undefined {
  const target = message.reply_to_message;
  if (target === undefined) return undefined;
  // Every message of a topic "answers" the service message that made the topic.
  if (message.is_topic_message && target.message_id === message.message_thread_id) return undefined;
  return idOf(object(target, "reply_to_message") as unknown as Message);
}

/** Telegram marks mentions, but names the bot only by what the text says. */
function isMentioned(message: Message, options: TelegramConfig): boolean {
  const text = message.text ?? message.caption ?? "";
  const entities = message.entities ?? message.caption_entities ?? [];
  if (!Array.isArray(entities)) throw new Malformed("entities is no array");
  return entities.some((entity) => {
    if (entity.type === "text_mention") return String(entity.user?.id) === botIdOf(options.token);
    if (options.username === undefined) return false;
    const said = text.slice(entity.offset, entity.offset + entity.length).toLowerCase();
    if (entity.type === "mention") return said === `@${options.username}`;
    return entity.type === "bot_command" && said.endsWith(`@${options.username}`);
  });
}

/** Only business chats bring the bot its own messages back. */
function isSelfAuthored(message: Message, options: TelegramConfig): boolean {
  const bot = botIdOf(options.token);
  return String(message.sender_business_bot?.id ?? message.from?.id) === bot;
}

/** A group that became a supergroup has a new id; both chats are told. */
function migrationOf(message: Message): InboundEvent["migration"] {
  const { migrate_to_chat_id: to, migrate_from_chat_id: from } = message;
  if (to === undefined && from === undefined) return undefined;
  return {
    ...(to === undefined ? {} : { to: String(integer(to, "migrate_to_chat_id")) }),
    ...(from === undefined ? {} : { from: String(integer(from, "migrate_from_chat_id")) }),
  };
}
