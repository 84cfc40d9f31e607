/**
 * Webhooks in: cap, verify on raw bytes, parse, group by chat, admit each group, and only then answer
 * with success.
 *
 * @module
 */
import type { AnyChannel, InboundItem, RawRequest, WebhookOutcome } from "../channels/channel.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { Actors, Log } from "../host/Host.ts";
import { admit, type ChatGroup, sortItems } from "../objects/admit.ts";
import { connectionActorName } from "../objects/names.ts";
import type { FailedGroup, FailureAnswer } from "../objects/QuarantineFailures.ts";
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

/** What became of one group or of the account's events. `waitSeconds` is what the platform is asked to wait. */
type Admitted = { ok: true } | { ok: false; waitSeconds: number };

/** Admits every item, chat by chat. Success only when every group is committed. */
async function admitAll(
  parts: WebhookParts,
  channel: AnyChannel,
  items: readonly InboundItem[],
): Promise<WebhookOutcome> {
  const { chats, account } = sortItems(parts.bot.scope, channel, items);
  const failed: FailedGroup[] = [];
  const answers = await Promise.all([
    ...chats.map((group) => admitGroup(parts, group, failed)),
    ...(account.length === 0 ? [] : [keep(parts, channel, account)]),
  ]);
  // One request for all that failed, and none where nothing did.
  if (failed.length > 0) answers.push(await spill(parts, channel, failed));
  const waits = answers.flatMap((answer) => (answer.ok ? [] : [answer.waitSeconds]));
  if (waits.length === 0) return { committed: true };
  const longest = Math.max(...waits);
  return { committed: false, ...(longest > 0 ? { retryAfterSeconds: longest } : {}) };
}

/** A group that failed is left to {@link spill}. A full queue is no failure: the platform comes again. */
async function admitGroup(
  parts: WebhookParts,
  group: ChatGroup,
  failed: FailedGroup[],
): Promise<Admitted> {
  try {
    const answer = await admit(parts.actors, group);
    return answer.ok ? answer : { ok: false, waitSeconds: answer.retryAfterSeconds };
  } catch (caught) {
    const error = errorText(caught, parts.env);
    parts.log.error("a chat could not admit its events", { chat: group.name, error });
    failed.push({ ...group, error });
    return { ok: true };
  }
}

/** Has the connection count what failed; it may take over what failed too often. */
async function spill(
  parts: WebhookParts,
  channel: AnyChannel,
  groups: readonly FailedGroup[],
): Promise<Admitted> {
  try {
    const counted = (await callConnection(parts, channel, "failed", { groups })) as FailureAnswer;
    return counted.spilled ? { ok: true } : { ok: false, waitSeconds: counted.retryAfterSeconds };
  } catch (error) {
    parts.log.error("a failure could not be counted", {
      connection: channel.connection,
      error: errorText(error, parts.env),
    });
    return { ok: false, waitSeconds: 0 };
  }
}

/** Hands events that belong to no chat to the connection. */
async function keep(
  parts: WebhookParts,
  channel: AnyChannel,
  events: readonly InboundEvent[],
): Promise<Admitted> {
  try {
    await callConnection(parts, channel, "keep", { events });
    return { ok: true };
  } catch (error) {
    parts.log.error("an event of the account could not be kept", {
      connection: channel.connection,
      error: errorText(error, parts.env),
    });
    return { ok: false, waitSeconds: 0 };
  }
}

async function callConnection(
  parts: WebhookParts,
  channel: AnyChannel,
  method: string,
  input: object,
): Promise<unknown> {
  const name = connectionActorName(parts.bot.scope, channel.connection);
  return JSON.parse(await parts.actors.call("Connection", name, method, JSON.stringify(input)));
}
