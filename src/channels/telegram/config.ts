/**
 * Where a Telegram connection's secrets come from.
 *
 * @module
 */
import type { Configured } from "../channel.ts";

/** Options of `telegram()`. Whatever is left out comes from the environment. */
export interface TelegramOptions {
  /** This bot account's id. Default: `"telegram"`. */
  connection?: string | undefined;
  /** The bot's token. Default: `TELEGRAM_BOT_TOKEN`. */
  token?: string | undefined;
  /** What `setWebhook` was given as `secret_token`. Default: `TELEGRAM_WEBHOOK_SECRET`. */
  webhookSecret?: string | undefined;
  /** Also accepted, while a secret is rotated. Default: `TELEGRAM_WEBHOOK_SECRET_PREVIOUS`. */
  previousWebhookSecret?: string | undefined;
  /** Default: `TELEGRAM_API_BASE`, else `https://api.telegram.org`. */
  apiBase?: string | undefined;
  /** The bot's name, with or without `@`: needed to see that a message mentions it. */
  username?: string | undefined;
}

/** Options as objects, or as a function of the environment. */
export type TelegramSource<E = Record<string, unknown>> =
  | TelegramOptions
  | ((env: E) => Omit<TelegramOptions, "connection">);

/** A configured connection: what the channel's calls need. */
export interface TelegramConfig {
  token: string;
  webhookSecret: string;
  previousWebhookSecret?: string;
  /** Without a slash at its end. */
  apiBase: string;
  /** Without `@`, in lower case. */
  username?: string;
}

/** Telegram's own servers. */
export const DEFAULT_API_BASE = "https://api.telegram.org";

/** Reads a connection's options; names what is missing. */
export function configure<E>(
  source: TelegramSource<E>,
  env: Record<string, unknown>,
): Configured<TelegramConfig> {
  const given = typeof source === "function" ? source(env as E) : source;
  const token = given.token || fromEnv(env, "TELEGRAM_BOT_TOKEN");
  const webhookSecret = given.webhookSecret || fromEnv(env, "TELEGRAM_WEBHOOK_SECRET");
  const apiBase = given.apiBase || fromEnv(env, "TELEGRAM_API_BASE") || DEFAULT_API_BASE;
  if (!token || !webhookSecret || !URL.canParse(apiBase)) {
    const missing: string[] = [];
    if (!token) missing.push("TELEGRAM_BOT_TOKEN");
    if (!webhookSecret) missing.push("TELEGRAM_WEBHOOK_SECRET");
    if (!URL.canParse(apiBase)) missing.push("TELEGRAM_API_BASE (it is set, but is no URL)");
    return { ok: false, missing };
  }
  const options: TelegramConfig = { token, webhookSecret, apiBase: apiBase.replace(/\/+$/, "") };
  const previous = given.previousWebhookSecret || fromEnv(env, "TELEGRAM_WEBHOOK_SECRET_PREVIOUS");
  if (previous) options.previousWebhookSecret = previous;
  if (given.username) options.username = given.username.replace(/^@/, "").toLowerCase();
  return { ok: true, options };
}

/** The bot's user id: the public half of its token. */
export function botIdOf(token: string): string {
  return token.split(":", 1)[0] ?? "";
}

function fromEnv(env: Record<string, unknown>, name: string): string | undefined {
  const value = env[name];
  // A secret that was piped into `wrangler secret put` often ends in a line break.
  return typeof value === "string" ? value.trim() : undefined;
}
