/**
 * The options of `new Bot({ durability })`, their defaults (design §10) and their validation: a wrong
 * one is refused when the bot is made, with its name, its value and what is allowed.
 *
 * @module
 */
import { ConfigError } from "../channels/errors.ts";
import type { Backoff } from "../time/backoff.ts";
import { type Duration, parseDuration } from "../time/duration.ts";

/** What to do with a send that may have happened, on a channel that cannot tell. */
export type AmbiguousPolicy = "skip" | "resend-once" | "resend";

/** The two ways to become ambiguous. */
export interface AmbiguousPolicies {
  /** The process died between the call and its record. Default `"skip"`. */
  afterCrash: AmbiguousPolicy;
  /** The process lives, the answer was lost. Default `"resend-once"`. */
  noAnswer: AmbiguousPolicy;
}

/** `onAmbiguous` as a user writes it. */
export type OnAmbiguous = AmbiguousPolicy | Partial<AmbiguousPolicies>;

/** Options of the inbox. */
export interface InboxOptions {
  /** Starts without progress before a record is dead. Default 5. */
  maxAttempts?: number | undefined;
  /** The watchdog that wakes an actor whose process died, in ms. Default 60,000; at least 20. */
  leaseMs?: number | undefined;
  /** The longest a turn may run, in ms. Default 600,000. */
  turnTimeoutMs?: number | undefined;
  /** Between replays. Default 1 s doubling to 60 s. */
  backoff?: Partial<Backoff> | undefined;
  /** Journal references to media, so that a replay can download them. Default true. */
  mediaRefs?: boolean | undefined;
  /** Run a handler that threw again. Default false: its effects may have happened. */
  retryHandlers?: boolean | undefined;
  /** Waiting events per chat before the webhook is answered with backpressure. Default 1,000. */
  maxPending?: number | undefined;
  /** No record dies younger than this, in ms, so that a crash loop of minutes kills nothing. Default 120,000. */
  minAgeMs?: number | undefined;
}

/** Options of the outbox. */
export interface OutboxOptions {
  /** Retries after the first attempt. Default 12. */
  retries?: number | undefined;
  /** Between attempts. Default 1 s doubling to 300 s. */
  backoff?: Partial<Backoff> | undefined;
  /** How long `reply` waits for its delivery before it resolves as `deferred`, in ms. Default 15,000. */
  inlineMaxMs?: number | undefined;
  /** The watchdog of sends outside a turn, in ms. Default 60,000; at least 20. */
  leaseMs?: number | undefined;
  /** How long one platform call may take, in ms. Default 30,000. */
  sendTimeoutMs?: number | undefined;
  /** Content over this is sent without a record, warned and counted. Default 1,048,576. */
  maxPayloadBytes?: number | undefined;
  /** A send older than this is given up, in ms, counted from when it was first due. Default 86,400,000. */
  maxAgeMs?: number | undefined;
  /** What `reply` does once its inline budget is spent. Default `"return"`. */
  onDeferred?: "return" | "throw" | undefined;
  /** What a replay does when it says something else than the first run did. Default `"send"`. */
  onDiverged?: "send" | "skip" | undefined;
  /** `"inline"` keeps order while a send is waited for; `"strict"` always. Default `"inline"`. */
  order?: "inline" | "strict" | undefined;
  /** For channels that can neither repeat nor look up; one value, or one by channel name. */
  onAmbiguous?: OnAmbiguous | Record<string, OnAmbiguous> | undefined;
}

/** Durability options of a bot. */
export interface DurabilityOptions {
  inbox?: InboxOptions | undefined;
  outbox?: OutboxOptions | undefined;
  /** Run a turn even if the journal refuses to record it. Default false. */
  failOpen?: boolean | undefined;
  /** How long finished records are kept. Default `"7d"`. */
  retention?: Duration | undefined;
}

/** All durability settings, validated and complete. Times in ms. */
export interface Settings {
  inbox: {
    maxAttempts: number;
    leaseMs: number;
    turnTimeoutMs: number;
    backoff: Backoff;
    mediaRefs: boolean;
    retryHandlers: boolean;
    maxPending: number;
    minAgeMs: number;
  };
  outbox: {
    retries: number;
    backoff: Backoff;
    inlineMaxMs: number;
    leaseMs: number;
    sendTimeoutMs: number;
    maxPayloadBytes: number;
    maxAgeMs: number;
    onDeferred: "return" | "throw";
    onDiverged: "send" | "skip";
    order: "inline" | "strict";
    onAmbiguous: (channel: string) => AmbiguousPolicies;
  };
  failOpen: boolean;
  retentionMs: number;
}

/** Dead and unknown records stay this long, in ms (30 days). */
export const TROUBLE_RETENTION_MS = 30 * 86_400_000;

const POLICIES: readonly AmbiguousPolicy[] = ["skip", "resend-once", "resend"];

function show(value: unknown): string {
  if (typeof value === "function") return "a function";
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** Refuses an option: its name, its value, and what is allowed. */
export function refuse(name: string, value: unknown, allowed: string): never {
  throw new ConfigError(`${name} is ${show(value)}, but must be ${allowed}`);
}

/** Reads options one by one; what is left over at the end was misspelt. */
class Reader {
  readonly #path: string;
  readonly #values: Record<string, unknown>;
  readonly #known = new Set<string>();

  constructor(path: string, value: unknown) {
    if (
      value !== undefined &&
      (typeof value !== "object" || value === null || Array.isArray(value))
    ) {
      refuse(path, value, "an object");
    }
    this.#path = path;
    this.#values = (value ?? {}) as Record<string, unknown>;
  }

  raw(name: string): unknown {
    this.#known.add(name);
    return this.#values[name];
  }

  number(name: string, fallback: number, min: number, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
      const most = max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`;
      refuse(`${this.#path}.${name}`, value, `a whole number from ${min}${most}`);
    }
    return value;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value !== "boolean") refuse(`${this.#path}.${name}`, value, "true or false");
    return value;
  }

  oneOf<T extends string>(name: string, allowed: readonly T[], fallback: T): T {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    const found = allowed.find((one) => one === value);
    if (found === undefined)
      refuse(
        `${this.#path}.${name}`,
        value,
        `one of ${allowed.map((one) => `"${one}"`).join(", ")}`,
      );
    return found;
  }

  duration(name: string, fallbackMs: number): number {
    const value = this.raw(name);
    if (value === undefined) return fallbackMs;
    const ms = parseDuration(value);
    if (ms === undefined || ms <= 0) {
      refuse(
        `${this.#path}.${name}`,
        value,
        `a duration such as "15s", "10m" or "7d", or milliseconds`,
      );
    }
    return ms;
  }

  backoff(name: string, baseMs: number, capMs: number): Backoff {
    const inner = new Reader(`${this.#path}.${name}`, this.raw(name));
    const backoff = {
      baseMs: inner.number("baseMs", baseMs, 1),
      capMs: inner.number("capMs", capMs, 1),
    };
    inner.end();
    return backoff;
  }

  end(): void {
    for (const name of Object.keys(this.#values)) {
      if (!this.#known.has(name) && this.#values[name] !== undefined) {
        throw new ConfigError(
          `${this.#path}.${name} is not an option; known are ${[...this.#known].sort().join(", ")}`,
        );
      }
    }
  }
}

function policies(path: string, value: unknown): AmbiguousPolicies {
  const one = POLICIES.find((policy) => policy === value);
  if (one !== undefined) return { afterCrash: one, noAnswer: one };
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const reader = new Reader(path, value);
    const both = {
      afterCrash: reader.oneOf("afterCrash", POLICIES, "skip"),
      noAnswer: reader.oneOf("noAnswer", POLICIES, "resend-once"),
    };
    reader.end();
    return both;
  }
  return refuse(path, value, `"skip", "resend-once", "resend", or { afterCrash, noAnswer }`);
}

const DEFAULT_POLICIES: AmbiguousPolicies = { afterCrash: "skip", noAnswer: "resend-once" };

function ambiguous(
  path: string,
  value: unknown,
  channels: readonly string[],
): (channel: string) => AmbiguousPolicies {
  if (value === undefined) return () => DEFAULT_POLICIES;
  const byChannel =
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).some((name) => name !== "afterCrash" && name !== "noAnswer");
  if (!byChannel) {
    const all = policies(path, value);
    return () => all;
  }
  for (const name of Object.keys(value)) {
    if (channels.includes(name)) continue;
    throw new ConfigError(
      `${path}.${name} is not a channel of this bot; it has ${channels.join(", ") || "none"}`,
    );
  }
  const map = new Map(
    Object.entries(value as Record<string, unknown>).map(([name, one]) => [
      name,
      policies(`${path}.${name}`, one),
    ]),
  );
  return (channel) => map.get(channel) ?? DEFAULT_POLICIES;
}

/**
 * Validates and completes durability options.
 *
 * @param channels names of the bot's channels, for options that are by channel
 * @throws {ConfigError} naming the option, its value and what is allowed
 */
export function settingsOf(
  options: DurabilityOptions | undefined,
  channels: readonly string[] = [],
): Settings {
  const root = new Reader("durability", options);
  const inbox = new Reader("durability.inbox", root.raw("inbox"));
  const outbox = new Reader("durability.outbox", root.raw("outbox"));
  const settings: Settings = {
    inbox: {
      maxAttempts: inbox.number("maxAttempts", 5, 1, 1_000),
      leaseMs: inbox.number("leaseMs", 60_000, 20),
      turnTimeoutMs: inbox.number("turnTimeoutMs", 600_000, 1),
      backoff: inbox.backoff("backoff", 1_000, 60_000),
      mediaRefs: inbox.boolean("mediaRefs", true),
      retryHandlers: inbox.boolean("retryHandlers", false),
      maxPending: inbox.number("maxPending", 1_000, 1),
      minAgeMs: inbox.number("minAgeMs", 120_000, 0),
    },
    outbox: {
      retries: outbox.number("retries", 12, 0, 1_000),
      backoff: outbox.backoff("backoff", 1_000, 300_000),
      inlineMaxMs: outbox.number("inlineMaxMs", 15_000, 0),
      leaseMs: outbox.number("leaseMs", 60_000, 20),
      sendTimeoutMs: outbox.number("sendTimeoutMs", 30_000, 1),
      maxPayloadBytes: outbox.number("maxPayloadBytes", 1_048_576, 1, 1_900_000),
      maxAgeMs: outbox.number("maxAgeMs", 86_400_000, 1),
      onDeferred: outbox.oneOf("onDeferred", ["return", "throw"], "return"),
      onDiverged: outbox.oneOf("onDiverged", ["send", "skip"], "send"),
      order: outbox.oneOf("order", ["inline", "strict"], "inline"),
      onAmbiguous: ambiguous("durability.outbox.onAmbiguous", outbox.raw("onAmbiguous"), channels),
    },
    failOpen: root.boolean("failOpen", false),
    retentionMs: root.duration("retention", 7 * 86_400_000),
  };
  inbox.end();
  outbox.end();
  root.end();
  return settings;
}
