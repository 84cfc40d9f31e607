/**
 * Telegram, through the Bot API's webhooks or, without a public URL, by long polling.
 *
 * ```ts
 * new Bot({ id: "support", channels: [telegram()] });
 * ```
 *
 * `npm start` polls by itself; `npx holdfast connect telegram --deployed` sets the webhook.
 *
 * @module
 */
import type { Capabilities, Channel } from "../channel.ts";
import { ConfigError } from "../errors.ts";
import { chatKey, telegramAddress } from "./address.ts";
import { configure, DEFAULT_API_BASE, type TelegramConfig, type TelegramSource } from "./config.ts";
import { inbound } from "./inbound.ts";
import { telegramMedia } from "./media.ts";
import { outbound } from "./outbound.ts";
import { polling } from "./polling.ts";
import { TEXT_LIMIT } from "./render.ts";

export type { TelegramMediaRef } from "./attachments.ts";
export type { TelegramConfig, TelegramOptions, TelegramSource } from "./config.ts";

const DAY_MS = 86_400_000;

/** What Telegram can do. Facts without another source are from the Bot API's documentation. */
export const telegramCapabilities: Capabilities = {
  text: { limit: TEXT_LIMIT, unit: "codepoints" },
  kinds: ["text", "markdown", "media", "buttons", "silent", "reply", "native"],
  // `callback_data` of InlineKeyboardButton: 1 to 64 bytes.
  buttonDataBytes: 64,
  threads: true,
  edit: true,
  delete: true,
  typing: true,
  reactions: true,
  finalizeInPlace: true,
  // Edits count like messages: one a second in a chat, 20 a minute in a group (see `pacing`). A minute of an
  // answer in a group takes 15 of those and leaves the rest to messages.
  streaming: { everyMs: 1_000, groupEveryMs: 4_000, draft: "direct" },
  redelivery: {
    behaviour:
      "Any answer but 2xx is repeated: at once, then after 2, 4, 8 … s up to about 2 min (or after Retry-After), in order per chat, until the message is 24 h old; a button press for 150 s.",
    windowMs: DAY_MS,
    serial: true,
  },
  // "Avoid sending more than one message per second" in a chat, where bursts pass most of the time, and
  // 20 a minute in a group (core.telegram.org/bots/faq).
  pacing: {
    direct: { burst: 20, perMs: 1_000, afterLimit: true },
    group: { burst: 20, perMs: 3_000 },
    // "About 30 messages per second" over all chats, from the same page.
    perBot: { burst: 30, perMs: 34 },
  },
  // The server drops a silent webhook connection after 60 s; one report saw less than 10 s
  // (openclaw#70146).
  deadlineMs: 8_000,
  journalFailure: { status: 503, retryAfterSeconds: 1 },
  delivery: { class: "blind" },
  dedupe: "update_id",
};

/**
 * Connects a Telegram bot.
 *
 * @param source options, or a function that makes them of the environment; what is left out is read
 * from `TELEGRAM_BOT_TOKEN`, `TELEGRAM_WEBHOOK_SECRET`, `TELEGRAM_WEBHOOK_SECRET_PREVIOUS` and
 * `TELEGRAM_API_BASE`
 * @param at names the connection where `source` is a function: it is needed before there is an
 * environment
 */
export function telegram<E = Record<string, unknown>>(
  source: TelegramSource<E> = {},
  at: { connection?: string | undefined } = {},
): Channel<TelegramConfig> {
  const fixed = typeof source === "function" ? at : source;
  const apiBase = typeof source === "function" ? undefined : source.apiBase;
  const host = hostOf(apiBase ?? DEFAULT_API_BASE);
  if (host === undefined) {
    throw new ConfigError(
      `telegram(): apiBase is ${JSON.stringify(apiBase)}; it must be a URL such as ${DEFAULT_API_BASE}`,
    );
  }
  const hosts = [host];
  return {
    name: "telegram",
    connection: fixed.connection ?? at.connection ?? "telegram",
    capabilities: telegramCapabilities,
    configure(env) {
      const configured = configure(source, env);
      const known = configured.ok ? hostOf(configured.options.apiBase) : undefined;
      if (known !== undefined && !hosts.includes(known)) hosts.push(known);
      return configured;
    },
    chatKey,
    inbound,
    outbound,
    media: telegramMedia(hosts),
    polling,
  };
}

/** The address of a chat: `telegram.address(4711, { thread: 17 })`. */
telegram.address = telegramAddress;

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}
