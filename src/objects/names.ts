/**
 * Names of actors and the string form of addresses. A name carries the whole scope, so that records
 * of two tenants, bots or connections can never meet.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { AnyChannel } from "../channels/channel.ts";
import { ConfigError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";

/** Object names over this many bytes are not available to the object itself (durable-objects §1.5). */
const MAX_NAME_BYTES = 1_024;

/** `tenantId/environmentId/botId`: everything of a scope but its connection. */
export interface BotScope {
  tenant: string;
  environment: string;
  bot: string;
}

/** Percent-encodes one part of a name; `/` separates parts. */
export function encodePart(part: string): string {
  return encodeURIComponent(part);
}

/** The name of a chat's actor. */
export function chatActorName(scope: BotScope, connection: string, chatKey: string): string {
  const prefix = [scope.tenant, scope.environment, scope.bot, connection].map(encodePart).join("/");
  const name = `${prefix}/${encodePart(chatKey)}`;
  // encodeURIComponent leaves ASCII only, so length is bytes.
  if (name.length <= MAX_NAME_BYTES) return name;
  return `${prefix}/~${createHash("sha256").update(chatKey).digest("hex")}`;
}

/** The name of a connection's actor: the scope that its chats' names begin with. */
export function connectionActorName(scope: BotScope, connection: string): string {
  return [scope.tenant, scope.environment, scope.bot, connection].map(encodePart).join("/");
}

/** The scope, `tenant/environment/bot/connection`, of an actor's name. */
export function scopeOf(actorName: string): string {
  return actorName.split("/").slice(0, 4).join("/");
}

/** The connection in an actor's name. */
export function connectionOf(actorName: string): string {
  return decodeURIComponent(actorName.split("/")[3] ?? "");
}

/** The stable string form of an address: `channel/connection/chat[/thread]`, each part percent-encoded. */
export function formatAddress(address: Address): string {
  const parts = [address.channel, address.connection ?? address.channel, address.chat];
  if (address.thread !== undefined) parts.push(address.thread);
  return parts.map(encodePart).join("/");
}

/**
 * Reads {@link formatAddress} back.
 * @throws {ConfigError} when the text is no address
 */
export function parseAddress(text: string): Address {
  const [channel, connection, chat, thread, ...more] = text.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  });
  if (!channel || !connection || !chat || more.length > 0) {
    throw new ConfigError(
      `"${text.slice(0, 80)}" is not an address: expected channel/connection/chat[/thread]`,
    );
  }
  return { channel, connection, chat, ...(thread === undefined ? {} : { thread }) };
}

/** The key of the chat at an address. */
export function chatKeyOf(channel: AnyChannel, address: Pick<Address, "chat" | "thread">): string {
  return channel.chatKey({
    id: address.chat,
    ...(address.thread === undefined ? {} : { thread: address.thread }),
  });
}
