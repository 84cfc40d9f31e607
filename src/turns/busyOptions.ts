/**
 * What a bot does while a chat is busy, and when its webhooks are answered: options, defaults and their
 * validation.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import { ConfigError } from "../channels/errors.ts";
import { type Duration, parseDuration } from "../time/duration.ts";
import { refuse } from "./options.ts";

/** How messages that arrive while a chat is busy become turns. */
export type ConcurrencyMode = "queue" | "burst" | "interrupt";

/** `concurrency` as a user writes it. */
export type Concurrency =
  | ConcurrencyMode
  | {
      mode: "burst";
      /** Silence that ends a burst. Default `"1s"`. */
      quiet?: Duration | undefined;
      /** The longest that a burst may wait, from its first message. Default `"5s"`. */
      maxWait?: Duration | undefined;
    }
  | { mode: "queue" | "interrupt" };

/** When the webhook is answered. */
export type AckPolicy =
  | "after_receive_record"
  | "after_agent_dispatch"
  | "after_durable_send"
  | "manual";

/** Options about a busy chat. */
export interface BusyOptions {
  /**
   * `queue`: each message is a turn, in order. `burst`: messages of one sender within a quiet time are
   * one turn. `interrupt`: a new message of the same sender stops the running turn. Default `"queue"`.
   */
  concurrency?: Concurrency | undefined;
  /**
   * When the platform is told success: once the event is journaled (default), once its handler has
   * begun, once its first send is recorded, or at `ctx.ack()`. Past the channel's deadline the answer is
   * success in any case, since the event is journaled.
   */
  ack?: AckPolicy | undefined;
  /** Whether messages written by other bots are handled; a list allows those senders. Default false. */
  allowBots?: boolean | readonly string[] | undefined;
  /** Turns for bots' messages in a chat and a minute, before they are paused. Default 20; false: no limit. */
  loopGuard?: number | false | undefined;
}

/** The same, complete. Times in ms. */
export interface BusySettings {
  mode: ConcurrencyMode;
  quietMs: number;
  maxWaitMs: number;
  ack: AckPolicy;
  allowBots: (senderId: string) => boolean;
  /** `Infinity` where there is no limit. */
  loopGuard: number;
}

const MODES: readonly ConcurrencyMode[] = ["queue", "burst", "interrupt"];
const ACKS: readonly AckPolicy[] = [
  "after_receive_record",
  "after_agent_dispatch",
  "after_durable_send",
  "manual",
];

/**
 * Validates and completes the options.
 *
 * @throws {ConfigError} naming the option, its value and what is allowed
 */
export function busySettingsOf(
  options: BusyOptions,
  channels: readonly AnyChannel[],
): BusySettings {
  const settings: BusySettings = {
    ...concurrencyOf(options.concurrency),
    ack: options.ack ?? "after_receive_record",
    allowBots: allowedBots(options.allowBots),
    loopGuard: loopGuardOf(options.loopGuard),
  };
  if (!ACKS.includes(settings.ack))
    refuse("ack", options.ack, `one of ${ACKS.map((one) => `"${one}"`).join(", ")}`);
  const serial = channels.find((channel) => channel.capabilities.redelivery.serial === true);
  if (settings.mode !== "queue" && settings.ack !== "after_receive_record" && serial) {
    // The platform holds the next message back until the last is answered: nothing could burst in.
    throw new ConfigError(
      `ack is "${settings.ack}" and concurrency is "${settings.mode}", but ${serial.name} delivers a chat's next message only after the last was answered; use ack "after_receive_record"`,
    );
  }
  return settings;
}

function concurrencyOf(
  value: Concurrency | undefined,
): Pick<BusySettings, "mode" | "quietMs" | "maxWaitMs"> {
  const allowed = `"queue", "burst", "interrupt" or { mode: "burst", quiet, maxWait }`;
  const given: object = typeof value === "object" && value !== null ? value : { mode: value };
  const { mode = "queue", quiet, maxWait, ...rest } = given as Record<string, unknown>;
  const found = MODES.find((one) => one === mode);
  if (found === undefined) refuse("concurrency", value, allowed);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    throw new ConfigError(
      `concurrency.${unknown} is not an option; known are maxWait, mode, quiet`,
    );
  if (found !== "burst" && (quiet !== undefined || maxWait !== undefined))
    throw new ConfigError(`concurrency.quiet and concurrency.maxWait need mode "burst"`);
  const quietMs = durationOf("concurrency.quiet", quiet, 1_000);
  const maxWaitMs = durationOf("concurrency.maxWait", maxWait, Math.max(5_000, quietMs));
  if (maxWaitMs < quietMs)
    refuse("concurrency.maxWait", maxWait, `at least concurrency.quiet (${quietMs} ms)`);
  return { mode: found, quietMs, maxWaitMs };
}

function durationOf(name: string, value: unknown, fallback: number): number {
  if (value === undefined) return fallback;
  const ms = parseDuration(value as Duration);
  if (ms === undefined || ms <= 0 || ms > 600_000)
    refuse(name, value, `a duration up to "10m", such as "500ms", "2s", or milliseconds`);
  return Math.ceil(ms);
}

function allowedBots(value: BusyOptions["allowBots"]): (senderId: string) => boolean {
  if (value === undefined || typeof value === "boolean") return () => value === true;
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string"))
    refuse("allowBots", value, "true, false or a list of sender ids");
  const ids = new Set<string>(value);
  return (senderId) => ids.has(senderId);
}

function loopGuardOf(value: BusyOptions["loopGuard"]): number {
  if (value === undefined) return 20;
  if (value === false) return Number.POSITIVE_INFINITY;
  if (!Number.isInteger(value) || value < 1)
    refuse("loopGuard", value, "a whole number from 1, or false");
  return value;
}
