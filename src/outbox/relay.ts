/**
 * Sends to another chat: recorded here in the turn's own chat, handed to the other chat's actor under a
 * key that names this row, and delivered from there. A repeat finds the other's record, so a relay is
 * never doubled whatever its platform can prove.
 *
 * @module
 */
import type { Capabilities, RenderedPart, SendResult } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { ConfigError, type ErrorKind } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type { WireError } from "../channels/wireError.ts";
import { type OutboxRow, readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { chatActorName, chatKeyOf } from "../objects/names.ts";
import { errorText } from "../safety/redact.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { NormalContent } from "./content.ts";
import { publicKeyOf } from "./publicKey.ts";

/** What the other chat gets. */
export interface RelayInput {
  /** Names the origin: its actor and the key there. */
  key: string;
  /** The actor that it comes from, for the check that both are of one bot. */
  from: string;
  content: NormalContent;
  /** Epoch milliseconds. */
  notAfter?: number;
}

/** What the other chat answers. */
interface RelayAnswer {
  value?: { key: string };
  error?: WireError;
}

/** Whether a row goes to another chat's actor. */
export function isRelay(row: Pick<OutboxRow, "extra">): boolean {
  return row.extra !== null && readExtra(row).relay === true;
}

/** A relay as one part: the other chat renders it. */
export function relayPart(content: NormalContent): RenderedPart {
  return { kind: "other", request: { relay: content as unknown as JsonObject } };
}

/** The other actor deduplicates by key, for as long as it keeps its record. */
export function relayCapabilities(capabilities: Capabilities): Capabilities {
  return { ...capabilities, delivery: { class: "keyed" } };
}

/**
 * The actor of an address of this bot.
 * @throws {ConfigError} for a connection that the bot does not have
 */
export function actorAt(core: Core, address: Address): string {
  const connection = address.connection ?? address.channel;
  const channel = core.bot.channel(connection);
  if (channel === undefined || channel.name !== address.channel) {
    throw new ConfigError(
      `the bot has no connection "${connection}" of ${address.channel}; a relay goes to chats of the same bot only`,
    );
  }
  return chatActorName(core.bot.scope, connection, chatKeyOf(channel, address));
}

/**
 * Names the chat of an address, however that is spelled; what names none is a name of its own.
 * @param address as a row holds it
 */
export function targetOf(core: Core, address: string | null): string {
  try {
    return actorAt(core, JSON.parse(address ?? "") as Address);
  } catch {
    return String(address);
  }
}

/** Hands a row to the other chat's actor. What cannot be shown to be a refusal is `maybe_sent`. */
export async function callRelay(core: Core, row: OutboxRow): Promise<SendResult> {
  const limit = core.settings.outbox.sendTimeoutMs;
  let answering: Promise<string>;
  try {
    const address = JSON.parse(row.address ?? "null") as Address;
    const request = JSON.parse(row.request) as { relay: NormalContent };
    const own = publicKeyOf(core.journal, row);
    const input: RelayInput = {
      key: `relay:${core.name}:${own}`,
      from: core.name,
      content: request.relay,
      ...(row.not_after === null ? {} : { notAfter: row.not_after }),
    };
    const { channel, connection, chat, thread } = address;
    const identity = {
      channel,
      connection: connection ?? channel,
      chat,
      ...(thread === undefined ? {} : { thread }),
    };
    core.host.probe("relay.call", "before");
    answering = core.host.actors.call(
      "ChatActor",
      actorAt(core, address),
      "relay",
      JSON.stringify({ ...input, identity }),
    );
  } catch (error) {
    core.host.rethrowIfHalted(error);
    const message = errorText(error, core.host.env);
    return { ok: false, kind: "invalid_payload", evidence: "not_sent", message };
  }
  try {
    const answer = await withDeadline(core.host.clock, limit, answering);
    core.host.probe("relay.call", "after");
    if (answer === TIMED_OUT) return lost(`the other chat did not answer within ${limit} ms`);
    const { value, error } = JSON.parse(answer) as RelayAnswer;
    if (value !== undefined) return { ok: true, receipt: { id: value.key, kind: "other" } };
    return {
      ok: false,
      kind: (error?.kind ?? "unknown") as ErrorKind,
      evidence: "not_sent",
      message: error?.message ?? "the other chat refused it",
      ...(error?.code === undefined ? {} : { code: error.code }),
    };
  } catch (error) {
    core.host.rethrowIfHalted(error);
    return lost(errorText(error, core.host.env));
  }
}

function lost(message: string): SendResult {
  return { ok: false, kind: "transient", evidence: "maybe_sent", message };
}
