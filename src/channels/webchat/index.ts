/**
 * The web chat: a page of the worker itself, over a WebSocket that a Durable Object holds.
 *
 * ```ts
 * new Bot({ id: "support", channels: [telegram(), webchat({ title: "Support" })] });
 * ```
 *
 * Each session is one `WebChat` object (the room) next to one `ChatActor` (the bot's side) of the same
 * name. The room keeps what was said, so a page that comes back is shown all of it, and a page that is
 * away misses nothing. Read `protocol.ts` first, then `WebChatRoom.ts`.
 *
 * @module
 */
import { webchatRoutes } from "../../edge/webchat/routes.ts";
import type { Capabilities, Channel } from "../channel.ts";
import type { Address } from "../events.ts";
import { configOf, type WebChatConfig, type WebChatOptions } from "./config.ts";
import { gate } from "./gate.ts";
import { inbound } from "./inbound.ts";
import { outbound } from "./outbound.ts";
import { BUTTON_DATA_BYTES, TEXT_LIMIT } from "./protocol.ts";
import { WebChatRoom } from "./WebChatRoom.ts";

export type { Identify, WebChatConfig, WebChatOptions } from "./config.ts";

const DAY_MS = 86_400_000;

/** What the web chat can do. */
export const webchatCapabilities: Capabilities = {
  text: { limit: TEXT_LIMIT, unit: "codepoints" },
  kinds: ["text", "markdown", "media", "buttons", "silent", "reply"],
  buttonDataBytes: BUTTON_DATA_BYTES,
  threads: false,
  edit: true,
  delete: true,
  typing: true,
  reactions: false,
  finalizeInPlace: true,
  // Each look is one request to the room; half a second reads as writing.
  streaming: { everyMs: 500, draft: "all" },
  redelivery: {
    behaviour:
      "The page keeps a message until it is acknowledged and sends it again, over reconnects and reloads, for as long as its tab lives; the room also forwards what it has stored by itself, with backoff.",
    windowMs: DAY_MS,
  },
  deadlineMs: 10_000,
  journalFailure: { status: 503, retryAfterSeconds: 1 },
  // No window: the room keeps markers for longer than the outbox keeps records.
  delivery: { class: "keyed" },
  dedupe: "the id that the page gave the message",
};

/** Connects the web chat. */
export function webchat(options: WebChatOptions = {}): Channel<WebChatConfig> {
  const config = configOf(options);
  return {
    name: "webchat",
    connection: options.connection ?? "webchat",
    capabilities: webchatCapabilities,
    configure: () => ({ ok: true, options: config }),
    chatKey: (chat) => chat.id,
    inbound,
    outbound,
    served: {
      path: "/chat",
      routes: (deps) => webchatRoutes((env) => ({ ...deps(env), config })),
      gate,
      makeRoom: (host, name, sockets) => new WebChatRoom(host, name, sockets),
    },
  };
}

/**
 * The address of a session: what `identify` returned, or the id that the chat's events carry
 * (`ctx.chat.id`).
 */
webchat.address = (sessionId: string, at: { connection?: string | undefined } = {}): Address => ({
  channel: "webchat",
  ...(at.connection === undefined ? {} : { connection: at.connection }),
  chat: sessionId,
});
