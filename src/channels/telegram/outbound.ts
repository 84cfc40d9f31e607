/**
 * What leaves for Telegram. Telegram has no idempotency key, no history and no echo, so a send whose
 * answer is lost proves nothing either way: the class is blind, and the evidence must be exact.
 *
 * @module
 */
import { truncate } from "../../text/measure.ts";
import type {
  ChannelIo,
  Outbound,
  PartReceipt,
  RenderedPart,
  SendIo,
  SendResult,
} from "../channel.ts";
import type { Json, JsonObject, PlainContent } from "../content.ts";
import { deliveryErrorOf, type ErrorKind, isRetryableKind } from "../errors.ts";
import type { Address } from "../events.ts";
import { GUEST, messageFields, targetFields } from "./address.ts";
import { call, isRecord, type Reply, type Upload } from "./call.ts";
import type { TelegramConfig } from "./config.ts";
import {
  type Failure,
  failureOf,
  hasNoText,
  isGone,
  isLateAnswer,
  isNotModified,
  isSentAndDeleted,
} from "./errors.ts";
import { CAPTION_LIMIT, keyboardOf, render, renderEdit, TEXT_LIMIT } from "./render.ts";
import { plain, readdress, textOf } from "./rework.ts";

type Io = ChannelIo<TelegramConfig>;
type Message = { id: string; address: Address };

/** The most characters of the note that answers a press (Bot API, answerCallbackQuery). */
const PRESS_TEXT_LIMIT = 200;

/**
 * The id in a receipt where Telegram accepted a message and told no id: it was deleted in the same
 * moment, or is scheduled. No message has the id 0.
 */
export const NO_MESSAGE_ID = "0";

/** The outbound half of the channel. */
export const outbound: Outbound<TelegramConfig> = {
  render,
  textOf,
  plain,
  readdress,
  send,
  edit,
  async revise(message, request, io) {
    const target = messageFields(message);
    if (target === undefined) return noSuchMessage(message.id);
    const reply = await call(io, "editMessageText", { ...target, ...textOfPart(request) });
    return settled(reply, message);
  },
  async draft({ id, address, request }, io) {
    // In other threads the method would reach the bot's own chat with the person.
    if (/\D/.test(address.thread ?? ""))
      return refusal("unsupported_content", "a draft is shown in chats with the bot itself only");
    const reply = await call(io, "sendMessageDraft", {
      ...targetFields(address),
      // Any number but 0; the same one keeps the same draft.
      draft_id: Number.parseInt(id.slice(0, 7), 16) + 1,
      ...textOfPart(request),
    });
    return settled(reply, { id, address });
  },
  async selfTest(io) {
    return (await call(io, "getMe", {})).outcome === "ok";
  },
  async delete(message, io) {
    const target = messageFields(message);
    if (target === undefined) return noSuchMessage(message.id);
    const reply = await call(io, "deleteMessage", target);
    if (reply.outcome === "ok" || isGone(reply)) return done(message.id);
    return failureOf(reply, message.address);
  },
  async typing(address, io) {
    if (address.thread === GUEST) return;
    // Shown for five seconds and worth nothing later: a refusal is no news.
    await call(io, "sendChatAction", { ...targetFields(address), action: "typing" });
  },
  async react(message, emoji, io) {
    const target = messageFields(message);
    if (target === undefined) return noSuchMessage(message.id);
    const reply = await call(io, "setMessageReaction", { ...target, reaction: reactionOf(emoji) });
    return settled(reply, message);
  },
  async answerPress(pressId, text, io) {
    const note = text === undefined ? {} : { text: truncate(text, PRESS_TEXT_LIMIT, "codepoints") };
    const reply = await call(io, "answerCallbackQuery", { callback_query_id: pressId, ...note });
    if (reply.outcome !== "ok" && !isLateAnswer(reply)) throw errorOf("answerCallbackQuery", reply);
  },
  async api(method, body, io) {
    if (!/^[a-zA-Z]+$/.test(method)) throw new TypeError("not a method of the Bot API");
    const reply = await call(io, method, body);
    if (reply.outcome === "ok") return reply.result;
    throw errorOf(method, reply);
  },
};

/** One call, started before the first await. */
async function send(request: JsonObject, io: SendIo<TelegramConfig>): Promise<SendResult> {
  const { method, body, upload } = request;
  if (typeof method !== "string" || !isObject(body)) {
    return refusal("invalid_payload", "the recorded request is not one of this channel");
  }
  const reply = await call(
    io,
    method,
    body,
    isObject(upload) ? (upload as Upload & JsonObject) : undefined,
  );
  const kind = method === "sendMessage" ? "text" : "media";
  if (reply.outcome !== "ok") {
    if (isSentAndDeleted(reply)) return done(NO_MESSAGE_ID, kind);
    return failureOf(reply, io.address);
  }
  const receipt = receiptOf(reply.result, kind);
  if (receipt !== undefined) return { ok: true, receipt };
  return {
    ok: false,
    kind: "unknown",
    evidence: "maybe_sent",
    message: `Telegram accepted ${method} but named no message`,
  };
}

async function edit(message: Message, content: PlainContent, io: Io): Promise<SendResult> {
  const target = messageFields(message);
  if (target === undefined) return noSuchMessage(message.id);
  if (content.media !== undefined || content.template !== undefined) {
    return refusal("unsupported_content", "an edit on Telegram changes text and buttons only");
  }
  const markup = content.buttons === undefined ? {} : { reply_markup: keyboardOf(content.buttons) };
  const fields: Record<string, Json> = { ...content.native, ...target, ...markup };
  // With entities a parse mode would read the text a second time.
  if (content.format === "markdown") delete fields.parse_mode;
  if (content.text === undefined)
    return settled(await call(io, "editMessageReplyMarkup", fields), message);
  const text = renderEdit(content, TEXT_LIMIT);
  if (text === undefined) return tooLong(TEXT_LIMIT);
  const reply = await call(io, "editMessageText", {
    ...fields,
    text: text.text,
    ...entityFields("entities", text.entities),
  });
  if (!hasNoText(reply)) return settled(reply, message);
  // The message is media: what reads like its text is its caption.
  const caption = renderEdit(content, CAPTION_LIMIT);
  if (caption === undefined) return tooLong(CAPTION_LIMIT);
  const captioned = await call(io, "editMessageCaption", {
    ...fields,
    caption: caption.text,
    ...entityFields("caption_entities", caption.entities),
  });
  return settled(captioned, message);
}

/** What an edit, or a draft, takes of a rendered text. */
function textOfPart({ body }: JsonObject): JsonObject {
  const { text = "", entities, reply_markup } = isObject(body) ? body : {};
  return {
    text,
    ...(entities === undefined ? {} : { entities }),
    ...(reply_markup === undefined ? {} : { reply_markup }),
  };
}

/** The result of a change that may be repeated: one that changes nothing was made before. */
function settled(reply: Reply, { id, address }: Message): SendResult {
  return reply.outcome === "ok" || isNotModified(reply) ? done(id) : failureOf(reply, address);
}

function entityFields(name: string, entities: readonly JsonObject[]): JsonObject {
  return entities.length === 0 ? {} : { [name]: entities };
}

function receiptOf(result: unknown, kind: RenderedPart["kind"]): PartReceipt | undefined {
  if (!isRecord(result)) return undefined;
  const { message_id, ephemeral_message_id, message_thread_id, reply_to_message } = result;
  const id =
    messageId(message_id) ??
    ephemeralId(ephemeral_message_id) ??
    // Telegram schedules some sends by itself, such as a video for a big chat, and says 0.
    (message_id === 0 ? NO_MESSAGE_ID : undefined);
  if (id === undefined) return undefined;
  const receipt: PartReceipt = { id, kind };
  if (result.is_topic_message === true && typeof message_thread_id === "number") {
    receipt.threadId = String(message_thread_id);
  }
  const replyToId = isRecord(reply_to_message) ? messageId(reply_to_message.message_id) : undefined;
  if (replyToId !== undefined) receipt.replyToId = replyToId;
  return receipt;
}

function messageId(value: unknown): string | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0
    ? String(value)
    : undefined;
}

function ephemeralId(value: unknown): string | undefined {
  const id = messageId(value);
  return id === undefined ? undefined : `e${id}`;
}

function reactionOf(emoji: string): JsonObject[] {
  if (emoji === "") return [];
  const custom = /^custom:(.+)$/.exec(emoji)?.[1];
  return custom === undefined
    ? [{ type: "emoji", emoji }]
    : [{ type: "custom_emoji", custom_emoji_id: custom }];
}

function done(id: string, kind: RenderedPart["kind"] = "text"): SendResult {
  return { ok: true, receipt: { id, kind } };
}

function refusal(kind: ErrorKind, message: string): Failure {
  return { ok: false, kind, evidence: "not_sent", message };
}

function noSuchMessage(id: string): Failure {
  return refusal("not_found", `${JSON.stringify(id)} is not the id of a message on Telegram`);
}

function tooLong(limit: number): Failure {
  return refusal("payload_too_large", `an edit holds at most ${limit} characters`);
}

function errorOf(method: string, reply: Exclude<Reply, { outcome: "ok" }>): Error {
  const { kind, evidence, message, retryAfterMs } = failureOf(reply);
  const retryable = isRetryableKind(kind, evidence);
  return deliveryErrorOf(`${method}: ${message}`, { kind, retryAfterMs, retryable });
}

function isObject(value: unknown): value is JsonObject {
  return isRecord(value);
}
