/**
 * What a rendered request says, and changes to it: without its formatting, or to another chat. The text stays as it was
 * rendered, so that parts which are out already and those which follow still fit together.
 *
 * @module
 */
import type { JsonObject } from "../content.ts";
import type { Address } from "../events.ts";
import { targetFields } from "./address.ts";

/** Fields that format a message, and that Telegram may refuse by themselves. */
const FORMATTING = new Set(["entities", "caption_entities", "parse_mode"]);
/** Fields that say where a message goes; see `targetFields`. */
const TARGET = new Set([
  "chat_id",
  "message_thread_id",
  "direct_messages_topic_id",
  "business_connection_id",
]);

function without(
  request: JsonObject,
  names: ReadonlySet<string>,
): Record<string, JsonObject[string]> {
  return Object.fromEntries(
    Object.entries((request.body ?? {}) as JsonObject).filter(([name]) => !names.has(name)),
  );
}

/** The same message without formatting: the words go through though Telegram refused their entities. */
export function plain(request: JsonObject): JsonObject {
  return { ...request, body: without(request, FORMATTING) };
}

/** The same message to another chat: a group that became a supergroup has a new id. */
export function readdress(request: JsonObject, address: Address): JsonObject {
  return { ...request, body: { ...without(request, TARGET), ...targetFields(address) } };
}

/**
 * The text or caption that people will read: Telegram trims it. Unknown where a parse mode of the bot's
 * own author changes it.
 */
export function textOf(request: JsonObject): string | undefined {
  const { text, caption, parse_mode } = (request.body ?? {}) as JsonObject;
  const said = text ?? caption;
  return typeof said === "string" && parse_mode === undefined ? said.trim() : undefined;
}
