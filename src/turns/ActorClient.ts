/**
 * The client over calls to actors: each method is one call, JSON both ways.
 *
 * @module
 */
import type { Content, Json } from "../channels/content.ts";
import {
  ConfigError,
  deliveryErrorOf,
  type ErrorKind,
  HoldfastError,
  SendDeferredError,
} from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type { Actors } from "../host/Host.ts";
import { addMetrics, type MetricValues, noMetrics } from "../objects/Metrics.ts";
import { chatActorName, chatKeyOf, encodePart, parseAddress } from "../objects/names.ts";
import { readRef, type WireError, type WireSend } from "../objects/Operations.ts";
import { registriesOf } from "../objects/Reporter.ts";
import { normalise } from "../outbox/content.ts";
import { parseDuration } from "../time/duration.ts";
import type { BotRuntime } from "./BotRuntime.ts";
import type {
  ChatClient,
  Client,
  DurabilityClient,
  InboxRecord,
  Listing,
  LogEntry,
  MessageRef,
  OutboxRecord,
  Page,
} from "./Client.ts";
import { checkOptions } from "./checkOptions.ts";
import type { EnqueueOptions, Receipt, SendOptions, SendResult, SendStatus } from "./sends.ts";

interface Target {
  actor: string;
  address: Address;
}

/** The client of one bot. */
export class ActorClient implements Client {
  readonly #actors: Actors;
  readonly #bot: BotRuntime;
  readonly #uuid: () => string;
  readonly #origin: "bot" | "runtime";

  /**
   * @param uuid names sends that have no key of their own
   * @param origin `runtime` for listeners: their sends are not announced, or one that fails would go on for ever
   */
  constructor(
    actors: Actors,
    bot: BotRuntime,
    uuid: () => string = () => crypto.randomUUID(),
    origin: "bot" | "runtime" = "bot",
  ) {
    this.#actors = actors;
    this.#bot = bot;
    this.#uuid = uuid;
    this.#origin = origin;
  }

  chat(address: Address | string): ChatClient {
    const target = this.#target(address);
    const call = <T>(method: string, input: unknown) => this.#call<T>(target.actor, method, input);
    return {
      send: (content, options = {}) => this.#send(target, content, options, true),
      enqueue: (content, options = {}) => this.#send(target, content, options, false),
      cancel: (key) => call("cancel", { key }),
      sendEvent: (event) => this.#event(target, event),
      state: {
        get: async <T = Json>(key: string) => {
          const { value } = await call<{ value: string | null }>("readState", { key });
          return value === null ? undefined : (JSON.parse(value) as T);
        },
        set: async (key, value) => {
          const text = JSON.stringify(value) as string | undefined;
          if (text === undefined)
            throw new TypeError(`state "${key}" must be JSON, not ${typeof value}`);
          await call("writeState", { key, value: text, identity: identityOf(target) });
        },
        delete: async (key) => {
          await call("writeState", { key, identity: identityOf(target) });
        },
      },
      inbox: {
        list: (options = {}) => call("listInbox", options),
        get: async (id) => (await call<InboxRecord | null>("getInbox", { id })) ?? undefined,
        replay: (id) => call("replay", { id }),
      },
      outbox: {
        list: (options = {}) => call("listOutbox", options),
        get: async (key) => (await call<OutboxRecord | null>("getOutbox", { key })) ?? undefined,
        retry: (key) => call("retry", { key }),
        discard: (key) => call("discardSend", { key }),
      },
      log: (options = {}) => call<LogEntry[]>("log", options),
      metrics: () => call<MetricValues>("metrics", {}),
    };
  }

  get durability(): DurabilityClient {
    return {
      inbox: { list: (options) => this.#list("listInbox", options) },
      outbox: { list: (options) => this.#list("listOutbox", options) },
      replayInbound: (ref) => this.#onRecord(ref, { in: "replay" }),
      retrySend: (ref) => this.#onRecord(ref, { out: "retry" }),
      discard: (ref) => this.#onRecord(ref, { in: "discardEvent", out: "discardSend" }),
      metrics: () => this.#metrics(),
    };
  }

  async edit(message: MessageRef, content: Content): Promise<void> {
    const target = this.#target(message.address);
    const input = { id: message.id, content: normalise(content), identity: identityOf(target) };
    await this.#call(target.actor, "edit", input);
  }

  #target(to: Address | string): Target {
    const address = typeof to === "string" ? parseAddress(to) : to;
    const connection = address.connection ?? address.channel;
    const channel = this.#bot.channel(connection);
    if (channel === undefined) {
      const known = this.#bot.channels.map((one) => `"${one.connection}"`).join(", ");
      throw new ConfigError(`the bot has no connection "${connection}"; it has ${known || "none"}`);
    }
    return {
      actor: chatActorName(this.#bot.scope, connection, chatKeyOf(channel, address)),
      address: { ...address, connection },
    };
  }

  async #send(
    target: Target,
    content: Content,
    options: EnqueueOptions,
    wait: boolean,
  ): Promise<SendResult> {
    const sent = await this.#call<WireSend>(target.actor, "send", {
      content: jsonContent(content),
      // Named here, so that a call that a reset cut off can be repeated.
      options: { ...jsonOptions(options), idempotencyKey: options.idempotencyKey ?? this.#uuid() },
      wait,
      origin: this.#origin,
      identity: identityOf(target),
    });
    if (sent.error !== undefined) throw errorFrom(sent.error);
    if (sent.status === "deferred" && wait) {
      throw new SendDeferredError("the send goes on in the background; look its key up later", {
        key: sent.key,
      });
    }
    const receipt = sent.receipt as Receipt | undefined;
    const change = (method: "edit" | "delete", more: object) => {
      if (receipt === undefined)
        throw new ConfigError(`${sent.key} is ${sent.status}: there is no message to change`);
      return this.#call<null>(target.actor, method, { id: receipt.primaryId, ...more });
    };
    return {
      key: sent.key,
      status: sent.status as SendStatus,
      ...(receipt === undefined ? {} : { receipt }),
      ...(sent.reason === undefined ? {} : { reason: sent.reason }),
      edit: async (next) => {
        await change("edit", { content: normalise(next) });
      },
      delete: async () => {
        await change("delete", {});
      },
    };
  }

  async #event(
    target: Target,
    event: { type: string; id: string; data?: unknown },
  ): Promise<{ accepted: boolean }> {
    const { address } = target;
    const chat = {
      id: address.chat,
      kind: "direct" as const,
      ...(address.thread === undefined ? {} : { thread: address.thread }),
    };
    const answer = await this.#actors.call(
      "ChatActor",
      target.actor,
      "receive",
      JSON.stringify({
        connection: address.connection,
        channel: address.channel,
        chat,
        items: [
          {
            type: "event",
            event: {
              id: `event:${event.type}:${event.id}`,
              kind: "event",
              type: event.type,
              channel: address.channel,
              connection: address.connection,
              chat,
              at: 0,
              ...(event.data === undefined ? {} : { data: event.data }),
            },
          },
        ],
      }),
    );
    const parsed = JSON.parse(answer) as {
      ok: boolean;
      results?: string[];
      retryAfterSeconds?: number;
    };
    if (!parsed.ok) {
      throw new HoldfastError(
        "the chat's queue is full",
        { code: "backpressure", kind: "rate_limit" },
        { retryAfterMs: (parsed.retryAfterSeconds ?? 0) * 1_000 },
      );
    }
    return { accepted: parsed.results?.[0] === "accepted" };
  }

  async #list<T extends string>(
    method: "listInbox" | "listOutbox",
    options: Page & { state: T; chat?: Address | string | undefined },
  ): Promise<Listing<never>> {
    const { chat, ...page } = options;
    if (chat !== undefined) return this.#call(this.#target(chat).actor, method, page);
    return this.#listAcross(method, page);
  }

  /** Chats with something unfinished, shard by shard, then their records. One chat's page at a time. */
  async #listAcross(
    method: "listInbox" | "listOutbox",
    page: Page & { state: string },
  ): Promise<Listing<never>> {
    const limit = page.limit ?? 50;
    const shards = registriesOf(this.#prefix());
    const rows: Listing<never>["rows"] = [];
    let at = readAcross(page.cursor);
    while (at.shard < shards.length) {
      const shard = shards[at.shard] ?? "";
      const { chats } = await this.#registry<{ chats: string[] }>(shard, "chats", {
        after: at.chat,
        limit: 20,
      });
      for (const chat of chats) {
        const inner = {
          state: page.state,
          limit: limit - rows.length,
          ...(at.cursor === "" ? {} : { cursor: at.cursor }),
        };
        const found = await this.#call<Listing<never>>(chat, method, inner);
        rows.push(...found.rows);
        if (rows.length >= limit) {
          const next =
            found.cursor === undefined
              ? { ...at, chat, cursor: "" }
              : { ...at, cursor: found.cursor };
          return { rows, cursor: writeAcross(next) };
        }
        at = { ...at, chat, cursor: "" };
      }
      if (chats.length < 20) at = { shard: at.shard + 1, chat: "", cursor: "" };
    }
    return { rows };
  }

  async #onRecord(ref: string, methods: { in?: string; out?: string }): Promise<boolean> {
    const { actor, box, id } = readRef(ref);
    if (!actor.startsWith(`${this.#prefix()}/`))
      throw new ConfigError("this `ref` belongs to another bot");
    const method = methods[box];
    if (method === undefined) {
      throw new ConfigError(
        box === "in"
          ? "this `ref` is of an inbound event; use replayInbound"
          : "this `ref` is of a send; use retrySend",
      );
    }
    return this.#call(actor, method, box === "in" ? { id } : { key: id });
  }

  async #metrics(): Promise<MetricValues> {
    const sum = noMetrics();
    for (const shard of registriesOf(this.#prefix())) {
      addMetrics(sum, await this.#registry<Partial<MetricValues>>(shard, "metrics", {}));
    }
    return sum;
  }

  #prefix(): string {
    const { tenant, environment, bot } = this.#bot.scope;
    return [tenant, environment, bot].map(encodePart).join("/");
  }

  async #registry<T>(shard: string, method: string, input: unknown): Promise<T> {
    return JSON.parse(
      await this.#actors.call("Registry", shard, method, JSON.stringify(input)),
    ) as T;
  }

  async #call<T>(actor: string, method: string, input: unknown): Promise<T> {
    const answer = JSON.parse(
      await this.#actors.call("ChatActor", actor, method, JSON.stringify(input)),
    ) as {
      value?: T;
      error?: WireError;
    };
    if (answer.error !== undefined) throw errorFrom(answer.error);
    return answer.value as T;
  }
}

/** Tells a chat that has never received anything who it is. */
function identityOf({ address }: Target): {
  connection: string;
  channel: string;
  chat: string;
  thread?: string;
} {
  return {
    connection: address.connection ?? address.channel,
    channel: address.channel,
    chat: address.chat,
    ...(address.thread === undefined ? {} : { thread: address.thread }),
  };
}

function readAcross(cursor: string | undefined): { shard: number; chat: string; cursor: string } {
  if (cursor === undefined) return { shard: 0, chat: "", cursor: "" };
  try {
    const [shard, chat, inner] = JSON.parse(atob(cursor)) as [number, string, string];
    if (Number.isInteger(shard) && typeof chat === "string" && typeof inner === "string")
      return { shard, chat, cursor: inner };
  } catch {
    // Falls through to the one message.
  }
  throw new ConfigError("this is not a cursor; take it from the last page as it is");
}

function writeAcross(at: { shard: number; chat: string; cursor: string }): string {
  return btoa(JSON.stringify([at.shard, at.chat, at.cursor]));
}

function jsonContent(content: Content): Content {
  // Bytes become base64 here, since a call carries JSON; `normalise` on the other side keeps it.
  return typeof content === "string" ? content : (normalise(content) as Content);
}

/** @throws {ConfigError} for a date, a delay or a key that is none */
function jsonOptions(options: EnqueueOptions): SendOptions {
  // Checked on this side: JSON would turn a date that is none into one of 1970.
  const { at, notAfter, delay, ...rest } = checkOptions(options);
  return {
    ...rest,
    ...(at === undefined ? {} : { at: Number(at) }),
    ...(delay === undefined ? {} : { delay: parseDuration(delay) }),
    ...(notAfter === undefined ? {} : { notAfter: Number(notAfter) }),
  } as SendOptions;
}

/** An error value as the class it was. */
export function errorFrom(wire: WireError): Error {
  const init = {
    ...(wire.code === undefined ? {} : { code: wire.code }),
    ...(wire.retryable === undefined ? {} : { retryable: wire.retryable }),
    ...(wire.retryAfterMs === undefined ? {} : { retryAfterMs: wire.retryAfterMs }),
    ...(wire.key === undefined ? {} : { key: wire.key }),
  };
  const kind = (wire.kind ?? "unknown") as ErrorKind;
  if (wire.name === "ConfigError") return new ConfigError(wire.message, init);
  if (wire.sentParts !== undefined) {
    return deliveryErrorOf(wire.message, { ...init, kind, sentParts: wire.sentParts });
  }
  if (wire.code === undefined) return new Error(wire.message);
  return new HoldfastError(wire.message, { code: wire.code, kind }, init);
}
