/**
 * Long polling: `getUpdates`, for a bot that no public URL leads to. Asking for what lies behind an
 * update confirms it, and Telegram forgets it; so the cursor is the only thing that may lose updates.
 *
 * @module
 */
import type {
  ChannelIo,
  ChannelPolling,
  PolledUpdate,
  PollingAccount,
  PollResult,
} from "../channel.ts";
import { call, isRecord, type Reply } from "./call.ts";
import type { TelegramConfig } from "./config.ts";
import { failureOf } from "./errors.ts";
import { type Context, parseUpdate } from "./inbound.ts";
import { ALL_UPDATES } from "./kinds.ts";

type Failure = Extract<PollResult, { ok: false }>;
type Io = ChannelIo<TelegramConfig>;

/** Telegram gives at most this many at once, and waits at most 50 s. */
const MAX_LIMIT = 100;
const MAX_WAIT_S = 50;

/** The polling of the channel. */
export const polling: ChannelPolling<TelegramConfig> = { account, poll };

async function account(
  io: Io,
): Promise<{ ok: true; account: PollingAccount } | Extract<PollResult, { ok: false }>> {
  const reply = await call(io, "getMe", {});
  if (reply.outcome !== "ok") return failure(reply);
  const { username } = isRecord(reply.result) ? reply.result : {};
  if (typeof username !== "string") {
    return { ok: false, kind: "unknown", message: "getMe named no bot" };
  }
  return { ok: true, account: { name: `@${username}`, url: `https://t.me/${username}` } };
}

async function poll(
  cursor: string | undefined,
  io: Io,
  { connection, waitMs, limit }: { connection: string; waitMs: number; limit: number },
): Promise<PollResult> {
  const reply = await call(io, "getUpdates", {
    ...(cursor === undefined ? {} : { offset: Number(cursor) }),
    limit: Math.max(1, Math.min(MAX_LIMIT, limit)),
    // Never longer than asked: whoever asked gives up then.
    timeout: Math.max(0, Math.min(MAX_WAIT_S, Math.floor(waitMs / 1_000))),
    allowed_updates: [...ALL_UPDATES],
  });
  if (reply.outcome !== "ok") {
    return isWebhookSet(reply) ? webhookFailure(reply, io) : failure(reply);
  }
  if (!Array.isArray(reply.result)) {
    return { ok: false, kind: "unknown", message: "getUpdates answered no list" };
  }
  const context: Context = { options: io.options, connection, now: io.now() };
  return { ok: true, updates: reply.result.flatMap((update) => polled(update, context)) };
}

/** An update and the cursor behind it. Without an id nothing could confirm it, and none has none. */
function polled(update: unknown, context: Context): PolledUpdate[] {
  if (!isRecord(update) || !Number.isSafeInteger(update.update_id)) return [];
  const text = JSON.stringify(update);
  // Only its order of magnitude matters, and no UTF-16 unit has more than three bytes.
  const item = parseUpdate(update, { text, bytes: text.length * 3 }, context);
  return [{ cursor: String(Number(update.update_id) + 1), items: [item] }];
}

function failure(reply: Exclude<Reply, { outcome: "ok" }>): Failure {
  const { kind, retryAfterMs, code, message } = failureOf(reply);
  return {
    ok: false,
    kind,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(code === undefined ? {} : { code }),
    message: explained(kind, message),
  };
}

/** Telegram's words, and what to do about them. */
function explained(kind: string, message: string): string {
  switch (kind) {
    case "auth":
      return `Telegram does not know the token (${message}): copy it from @BotFather again into TELEGRAM_BOT_TOKEN`;
    case "conflict":
      return `something else fetches this bot's updates (${message}): stop the other copy of the bot, or use a token of its own for each`;
    default:
      return message;
  }
}

/** Two things are a conflict: another poller, and a webhook. */
function isWebhookSet(reply: Exclude<Reply, { outcome: "ok" }>): boolean {
  return reply.outcome === "refused" && reply.status === 409 && /webhook/i.test(reply.description);
}

/** Names the host of the webhook; its path may hold a secret. */
async function webhookFailure(reply: Exclude<Reply, { outcome: "ok" }>, io: Io): Promise<Failure> {
  const info = await call(io, "getWebhookInfo", {});
  const url = info.outcome === "ok" && isRecord(info.result) ? String(info.result.url ?? "") : "";
  const host = URL.canParse(url) ? new URL(url).host : "an address that Telegram did not name";
  return {
    ...failure(reply),
    kind: "conflict",
    message: `this bot's updates go to a webhook on ${host}, so they cannot be polled: use another bot here, or, if it is no longer wanted, remove it with \`npx holdfast connect telegram --remove-webhook\``,
  };
}
