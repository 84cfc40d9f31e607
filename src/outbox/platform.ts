/**
 * Calls to the platform on behalf of one row: the send itself, and the questions around it. Nothing here
 * decides or records anything.
 *
 * @module
 */
import type {
  AnyChannel,
  ChannelIo,
  Outbound,
  ReconcileResult,
  SendIo,
  SendResult,
} from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { HoldfastError, UnsupportedContentError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type { StepLabel } from "../journal/labels.ts";
import type { OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { redact } from "../safety/redact.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import { markerOf } from "./keys.ts";

/** Where a row goes. */
export function addressOf(core: Core, row: OutboxRow): Address {
  return row.address === null ? core.address() : (JSON.parse(row.address) as Address);
}

/** What `send` gets. @throws {ConfigError} naming the variables that are not set */
function sendIo(
  core: Core,
  channel: AnyChannel,
  signal: AbortSignal,
  address: Address,
  marker: string,
): SendIo<unknown> {
  return { ...core.channelIo(channel, signal), address, marker };
}

/** One call of a channel's outbound half. */
export type ChannelCall = (
  outbound: Outbound<unknown>,
  io: SendIo<unknown>,
) => Promise<SendResult> | undefined;

/** Sends a rendered part. The only place that calls `channel.send`. */
export function callChannel(
  core: Core,
  address: Address,
  marker: string,
  request: JsonObject,
): Promise<SendResult> {
  return callWithin(core, address, marker, (outbound, io) => outbound.send(request, io));
}

/**
 * One platform call with its deadline. What cannot be shown to be a refusal is `maybe_sent`; starts the call
 * before its first await.
 */
export async function callWithin(
  core: Core,
  address: Address,
  marker: string,
  call: ChannelCall,
): Promise<SendResult> {
  const abort = new AbortController();
  const limit = core.settings.outbox.sendTimeoutMs;
  let accepted = false;
  core.host.probe("channel.send", "before");
  let sending: Promise<SendResult>;
  try {
    const channel = core.channel();
    const io = sendIo(core, channel, abort.signal, address, marker);
    const called = call(channel.outbound, io);
    if (called === undefined) throw new UnsupportedContentError(`${channel.name} cannot do that`);
    sending = called;
  } catch (error) {
    // The connection is not configured, or its code failed before any call.
    return notSent(core, error);
  }
  try {
    const answer = await withDeadline(core.host.clock, limit, sending);
    core.host.probe("channel.send", "after");
    if (answer === TIMED_OUT) {
      return {
        ok: false,
        kind: "unknown",
        evidence: "maybe_sent",
        message: `no answer within ${limit} ms`,
      };
    }
    if (answer.ok && !answer.receipt.id) {
      return {
        ok: false,
        kind: "unknown",
        evidence: "maybe_sent",
        message: "accepted without a message id",
      };
    }
    accepted = answer.ok;
    return answer.ok ? answer : { ...answer, ...wholeWait(answer.retryAfterMs) };
  } catch (error) {
    const message = messageOf(core, error);
    return { ok: false, kind: "unknown", evidence: "maybe_sent", message };
  } finally {
    // An accepted send was read to its end; aborting it would only make an exception for nobody.
    if (!accepted) abort.abort();
  }
}

/** The longest that a platform's wait is believed, in ms (30 days). */
const MAX_WAIT_MS = 30 * 86_400_000;

/** A platform's wait in whole milliseconds, never shortened but to what a journal can hold. */
function wholeWait(ms: number | undefined): { retryAfterMs?: number } {
  if (ms === undefined || !(ms >= 0)) return {};
  return { retryAfterMs: Math.min(Math.ceil(ms), MAX_WAIT_MS) };
}

function notSent(core: Core, error: unknown): Extract<SendResult, { ok: false }> {
  const known = error instanceof HoldfastError ? error : undefined;
  return {
    ok: false,
    kind: known?.kind ?? "transient",
    evidence: "not_sent",
    message: messageOf(core, error),
    ...(known === undefined ? {} : { code: known.code }),
  };
}

/** What went wrong, without secrets and at most 500 characters: it is journaled. */
export function messageOf(core: Core, error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return redact(text, core.host.env).slice(0, 500);
}

/** Tokens and uploads before the call, where the channel needs them. A failure here has sent nothing. */
export async function prepareRequest(
  core: Core,
  row: OutboxRow,
  request: JsonObject,
): Promise<{ ok: true; request: JsonObject } | Extract<SendResult, { ok: false }>> {
  const channel = core.channel();
  if (channel.outbound.prepare === undefined) return { ok: true, request };
  const abort = new AbortController();
  core.host.probe("channel.prepare", "before");
  try {
    const io = sendIo(core, channel, abort.signal, addressOf(core, row), markerOf(core.name, row));
    const limit = core.settings.outbox.sendTimeoutMs;
    const done = await withDeadline(core.host.clock, limit, channel.outbound.prepare(request, io));
    core.host.probe("channel.prepare", "after");
    return done === TIMED_OUT
      ? {
          ok: false,
          kind: "transient",
          evidence: "not_sent",
          message: "preparing the send took too long",
        }
      : done;
  } catch (error) {
    return notSent(core, error);
  } finally {
    abort.abort();
  }
}

/** Looks an unknown send up; `unresolved` where the channel cannot or does not answer. */
export async function lookUp(core: Core, row: OutboxRow): Promise<ReconcileResult> {
  const { reconcile } = core.channel().outbound;
  if (reconcile === undefined || row.first_maybe_at === null) return { result: "unresolved" };
  const query = {
    request: JSON.parse(row.request) as JsonObject,
    marker: row.marker ?? "",
    address: addressOf(core, row),
    firstMaybeAt: row.first_maybe_at,
  };
  const found = await ask(core, "channel.reconcile", (io, channel) =>
    channel.outbound.reconcile?.(query, io),
  );
  return found ?? { result: "unresolved" };
}

/** Whether the platform answers at all. */
export async function selfTest(core: Core): Promise<boolean> {
  if (core.channel().outbound.selfTest === undefined) return true;
  return (
    (await ask(core, "channel.selfTest", (io, channel) => channel.outbound.selfTest?.(io))) === true
  );
}

/** A harmless question to the platform: a throw or no answer in time is `undefined`. */
async function ask<T>(
  core: Core,
  label: StepLabel,
  question: (io: ChannelIo<unknown>, channel: AnyChannel) => Promise<T> | undefined,
): Promise<T | undefined> {
  const channel = core.channel();
  const abort = new AbortController();
  core.host.probe(label, "before");
  try {
    const asked = question(core.channelIo(channel, abort.signal), channel);
    if (asked === undefined) return undefined;
    const answer = await withDeadline(core.host.clock, core.settings.outbox.sendTimeoutMs, asked);
    core.host.probe(label, "after");
    return answer === TIMED_OUT ? undefined : answer;
  } catch (error) {
    core.host.log.debug("a question to the platform failed", {
      label,
      error: messageOf(core, error),
    });
    return undefined;
  } finally {
    abort.abort();
  }
}
