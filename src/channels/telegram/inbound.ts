/**
 * What arrives from Telegram: one update per webhook request, authenticated by a shared secret in a
 * header, or many by polling.
 *
 * @module
 */
import type { ReactionType } from "@grammyjs/types";
import { sameSecret } from "../../safety/compare.ts";
import { truncate } from "../../text/measure.ts";
import type { Inbound, InboundItem, RawRequest, WebhookOutcome } from "../channel.ts";
import type { JsonObject } from "../content.ts";
import type { ChatInfo, InboundEvent } from "../events.ts";
import { threadOf } from "./address.ts";
import type { TelegramConfig } from "./config.ts";
import {
  boosterOf,
  chatAsSender,
  chatOf,
  type EventBase,
  idOf,
  messageEvent,
  messageOf,
  userOf,
} from "./message.ts";
import { integer, Malformed, object, optionalText, text } from "./shape.ts";

/** An update holds no bytes of media, so this is far above any. */
const MAX_BODY_BYTES = 1_048_576;

/** The most JSON that an event keeps of what Telegram said. */
const MAX_NATIVE_BYTES = 16_384;

/** How much of an update that could not be read is kept, in characters. */
const MAX_SAMPLE = 2_000;

const SECRET_HEADER = "x-telegram-bot-api-secret-token";

/**
 * The chat that is reserved for the account: what belongs to no chat and no person (a poll's new state)
 * is an event of it. No chat of Telegram's has the id 0.
 */
const NO_CHAT: ChatInfo = { id: "0", kind: "broadcast" };

/** What reading an update needs. */
export type Context = { options: TelegramConfig; connection: string; now: number };

/** The inbound half of the channel. */
export const inbound: Inbound<TelegramConfig> = {
  maxBodyBytes: MAX_BODY_BYTES,
  verify,
  parse,
  answer,
};

function verify(request: RawRequest, options: TelegramConfig): boolean {
  const given = request.headers.get(SECRET_HEADER);
  if (given === null || given === "") return false;
  const current = sameSecret(given, options.webhookSecret);
  const previous = options.previousWebhookSecret;
  return previous === undefined ? current : sameSecret(given, previous) || current;
}

function parse(request: RawRequest, context: Context): InboundItem[] {
  const body = decode(request.body);
  const update: unknown = JSON.parse(body);
  if (typeof update !== "object" || update === null || Array.isArray(update)) {
    throw new SyntaxError("a Telegram update is a JSON object");
  }
  return [parseUpdate(update, { text: body, bytes: request.body.byteLength }, context)];
}

/**
 * Reads one update; webhooks and polling share it.
 *
 * @param source the update as it came, for what is kept of one that cannot be read
 */
export function parseUpdate(
  update: object,
  source: { text: string; bytes: number },
  context: Context,
): InboundItem {
  const fields = update as Record<string, unknown>;
  const kind = Object.keys(fields).find((key) => key !== "update_id");
  const id = Number.isSafeInteger(fields.update_id) ? String(fields.update_id) : undefined;
  try {
    if (id === undefined) throw new Malformed("update_id is no integer");
    if (kind === undefined) throw new Malformed("the update is empty");
    const payload = object(fields[kind], kind);
    const base: EventBase = { id, channel: "telegram", connection: context.connection };
    const native = nativeOf(kind, payload, source.bytes);
    if (native !== undefined) base.native = native;
    const event = eventOf(base, kind, payload, context);
    return { type: event.chat.id === NO_CHAT.id ? "account" : "event", event };
  } catch (error) {
    // Refused, the same update would come back for a day and hold its chat up all that time.
    return {
      type: "bad",
      id: id ?? `bad-${fingerprint(source.text)}`,
      chat: chatOfBad(kind === undefined ? undefined : fields[kind]),
      error: error instanceof Error ? error.message : String(error),
      sample: truncate(source.text, MAX_SAMPLE, "codepoints"),
    };
  }
}

function answer(_items: readonly InboundItem[], outcome: WebhookOutcome): Response {
  // Never 410: a day of it removes the webhook.
  if (outcome.committed) return new Response(null, { status: 200 });
  const retryAfter = String(outcome.retryAfterSeconds ?? 1);
  return new Response(null, { status: 503, headers: { "retry-after": retryAfter } });
}

function eventOf(
  base: EventBase,
  kind: string,
  payload: Record<string, unknown>,
  context: Context,
): InboundEvent {
  switch (kind) {
    case "message":
    case "channel_post":
      return messageEvent(base, "message", payload, context.options);
    case "edited_message":
    case "edited_channel_post":
      return messageEvent(base, "edited", payload, context.options);
    case "business_message":
    case "edited_business_message":
    case "guest_message":
      return messageEvent(base, `telegram:${kind}`, payload, context.options);
    case "callback_query":
      return pressEvent(base, payload, context.now);
    case "message_reaction":
      return reactionEvent(base, payload);
    case "my_chat_member":
    case "chat_member":
      return membershipEvent(base, payload, kind === "my_chat_member");
    default:
      return otherEvent(base, kind, payload, context.now);
  }
}

function pressEvent(base: EventBase, press: Record<string, unknown>, now: number): InboundEvent {
  const sender = userOf(press.from);
  const data = optionalText(press.data, "data");
  const event: InboundEvent = {
    ...base,
    // A press on a game's button carries no data; it asks for the game's address.
    kind: data === undefined ? "telegram:callback_query" : "action",
    chat: { id: sender.id, kind: "direct" },
    sender,
    // A press has no date of its own.
    at: now,
    press: {
      value: data ?? optionalText(press.game_short_name, "game_short_name") ?? "",
      pressId: text(press.id, "callback_query.id"),
    },
  };
  // Messages sent through inline mode have no chat that the bot could see.
  if (press.message !== undefined) {
    const message = messageOf(press.message);
    event.chat = chatOf(message.chat, threadOf(message));
    event.messageId = idOf(message);
  }
  return event;
}

function reactionEvent(base: EventBase, change: Record<string, unknown>): InboundEvent {
  const before = reactionsOf(change.old_reaction, "old_reaction");
  const after = reactionsOf(change.new_reaction, "new_reaction");
  const event: InboundEvent = {
    ...base,
    kind: "reaction",
    chat: chatOf(change.chat),
    at: integer(change.date, "date") * 1_000,
    messageId: String(integer(change.message_id, "message_id")),
    reaction: {
      added: after.filter((reaction) => !before.includes(reaction)),
      removed: before.filter((reaction) => !after.includes(reaction)),
    },
  };
  if (change.user !== undefined) event.sender = userOf(change.user);
  else if (change.actor_chat !== undefined) event.sender = chatAsSender(change.actor_chat);
  return event;
}

function membershipEvent(
  base: EventBase,
  change: Record<string, unknown>,
  self: boolean,
): InboundEvent {
  const member = object(change.new_chat_member, "new_chat_member");
  return {
    ...base,
    kind: "membership",
    chat: chatOf(change.chat),
    sender: userOf(change.from),
    at: integer(change.date, "date") * 1_000,
    membership: {
      user: userOf(member.user),
      status: text(member.status, "new_chat_member.status"),
      self,
    },
  };
}

/** Everything else, known by its name, its chat and its sender; the rest is in `native`. */
function otherEvent(
  base: EventBase,
  kind: string,
  payload: Record<string, unknown>,
  now: number,
): InboundEvent {
  const person = payload.from ?? payload.user ?? boosterOf(payload);
  const sender = person === undefined ? undefined : userOf(person);
  const speaker = payload.voter_chat ?? payload.actor_chat;
  const event: InboundEvent = {
    ...base,
    kind: `telegram:${kind}`,
    chat: { ...NO_CHAT },
    at: typeof payload.date === "number" ? payload.date * 1_000 : now,
  };
  // The one update that names a topic without the flag that messages have.
  const inTopic = kind === "stopped_message_generation" ? { is_topic_message: true } : {};
  const thread = threadOf({ ...payload, ...inTopic });
  if (payload.chat !== undefined) event.chat = chatOf(payload.chat, thread);
  // A person's private chat with the bot has the person's id.
  else if (sender !== undefined) event.chat = { id: sender.id, kind: "direct" };
  else if (speaker !== undefined) event.chat = chatOf(speaker);
  if (sender !== undefined) event.sender = sender;
  if (payload.message_id !== undefined) {
    event.messageId = String(integer(payload.message_id, "message_id"));
  }
  return event;
}

function reactionsOf(value: unknown, name: string): string[] {
  if (!Array.isArray(value)) throw new Malformed(`${name} is no array`);
  return value.map((item: unknown) => {
    const reaction = object(item, name) as unknown as ReactionType;
    if (reaction.type === "emoji") return text(reaction.emoji, "emoji");
    if (reaction.type === "custom_emoji") {
      return `custom:${text(reaction.custom_emoji_id, "custom_emoji_id")}`;
    }
    return text(reaction.type, "reaction.type");
  });
}

/** The update's payload under its name, unless it is too much to keep. */
function nativeOf(kind: string, payload: object, bodyBytes: number): JsonObject | undefined {
  const native = { [kind]: payload as JsonObject };
  // The body is never shorter than what it holds, so mostly nothing needs to be counted.
  const bytes =
    bodyBytes <= MAX_NATIVE_BYTES
      ? bodyBytes
      : new TextEncoder().encode(JSON.stringify(native)).byteLength;
  return bytes <= MAX_NATIVE_BYTES ? native : undefined;
}

/** The chat of an update that could not be read, as far as it can be told. */
function chatOfBad(payload: unknown): ChatInfo {
  try {
    const fields = object(payload, "payload");
    if (fields.message !== undefined) return chatOf(object(fields.message, "message").chat);
    if (fields.chat !== undefined) return chatOf(fields.chat);
    return { id: userOf(fields.from ?? fields.user).id, kind: "direct" };
  } catch {
    return { ...NO_CHAT };
  }
}

function decode(body: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
  } catch {
    throw new SyntaxError("the body is not UTF-8");
  }
}

/** A short name for a body without an id, the same whenever it comes again (FNV-1a). */
function fingerprint(body: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < body.length; i += 1) {
    hash = Math.imul(hash ^ body.charCodeAt(i), 0x01000193) >>> 0;
  }
  return `${body.length}-${hash.toString(16)}`;
}
