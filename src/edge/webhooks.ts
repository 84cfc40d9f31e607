/**
 * Webhooks in: cap, verify on raw bytes, parse, group by chat, admit each group, and only then answer
 * with success.
 *
 * @module
 */
import type { AnyChannel, InboundItem, RawRequest, WebhookOutcome } from "../channels/channel.ts";
import type { ChatInfo } from "../channels/events.ts";
import type { Actors, Log } from "../host/Host.ts";
import type { ReceiveAnswer, ReceiveRequest } from "../objects/Inbox.ts";
import { chatActorName } from "../objects/names.ts";
import { errorText } from "../safety/redact.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { readBody } from "./body.ts";

/** What the webhook route needs. */
export interface WebhookParts {
  bot: BotRuntime;
  actors: Actors;
  env: Record<string, unknown>;
  log: Log;
  /** Epoch milliseconds. */
  now(): number;
}

function plain(status: number, headers: Record<string, string> = {}): Response {
  return new Response(null, { status, headers });
}

/** Handles `/webhooks/:channel/:connection?`. */
export async function handleWebhook(
  parts: WebhookParts,
  request: Request,
  channelName: string,
  connection: string | undefined,
): Promise<Response> {
  const channel = parts.bot.channel(connection ?? channelName);
  // No detail: whoever does not know the channel learns nothing of the others.
  if (channel === undefined || channel.name !== channelName) return plain(404);
  const configured = channel.configure(parts.env);
  if (!configured.ok) {
    parts.log.error("a webhook came for a connection that is not configured", {
      connection: channel.connection,
      missing: configured.missing.join(", "),
    });
    // Never 401: some platforms disable a webhook that answers so.
    return failure(channel);
  }
  const body = await readBody(request, channel.inbound.maxBodyBytes);
  if (body === undefined) return plain(413);
  const raw: RawRequest = {
    method: request.method,
    url: request.url,
    headers: request.headers,
    body,
  };
  const shaken = await channel.inbound.handshake?.(raw, configured.options);
  if (shaken !== undefined) return shaken;
  if (request.method !== "POST") return plain(405, { allow: "POST" });
  if (!(await channel.inbound.verify(raw, configured.options))) {
    parts.log.warn("a webhook's secret or signature does not match", {
      connection: channel.connection,
    });
    return plain(401);
  }
  let items: InboundItem[];
  try {
    const context = {
      options: configured.options,
      connection: channel.connection,
      now: parts.now(),
    };
    items = channel.inbound.parse(raw, context);
  } catch (error) {
    parts.log.warn("a webhook's body could not be parsed", {
      connection: channel.connection,
      error: errorText(error, parts.env),
    });
    return plain(400);
  }
  const outcome = await admitAll(parts, channel, items);
  return channel.inbound.answer(items, outcome);
}

function failure(channel: AnyChannel): Response {
  const { status, retryAfterSeconds } = channel.capabilities.journalFailure;
  return plain(
    status,
    retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) },
  );
}

/** Admits every item, chat by chat. Success only when every group is committed. */
async function admitAll(
  parts: WebhookParts,
  channel: AnyChannel,
  items: readonly InboundItem[],
): Promise<WebhookOutcome> {
  const groups = new Map<string, { chat: ChatInfo; items: InboundItem[] }>();
  for (const item of items) {
    const chat =
      item.type === "event"
        ? item.event.chat
        : item.type === "status"
          ? item.status.chat
          : item.chat;
    const name = chatActorName(parts.bot.scope, channel.connection, channel.chatKey(chat));
    const group = groups.get(name) ?? { chat, items: [] };
    group.items.push(item);
    groups.set(name, group);
  }
  const answers = await Promise.all(
    [...groups].map(([name, group]) =>
      admit(parts, name, {
        connection: channel.connection,
        channel: channel.name,
        chat: group.chat,
        items: group.items,
      }),
    ),
  );
  const refused = answers.filter((answer) => !answer.ok);
  if (refused.length === 0) return { committed: true };
  const waits = refused
    .map((answer) => (answer.ok ? 0 : answer.retryAfterSeconds))
    .filter((wait) => wait > 0);
  return {
    committed: false,
    ...(waits.length === 0 ? {} : { retryAfterSeconds: Math.max(...waits) }),
  };
}

async function admit(
  parts: WebhookParts,
  name: string,
  request: ReceiveRequest,
): Promise<ReceiveAnswer> {
  try {
    return JSON.parse(
      await parts.actors.call("ChatActor", name, "receive", JSON.stringify(request)),
    ) as ReceiveAnswer;
  } catch (error) {
    parts.log.error("a chat could not admit its events", {
      chat: name,
      error: errorText(error, parts.env),
    });
    return { ok: false, retryAfterSeconds: 0 };
  }
}
