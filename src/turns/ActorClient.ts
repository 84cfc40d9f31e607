/**
 * The client over calls to actors: each method is one call, JSON both ways.
 *
 * @module
 */

import type { Content, Json } from "../channels/content.ts";
import { ConfigError, HoldfastError, SendDeferredError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { errorFrom } from "../channels/wireError.ts";
import type { ResumeAnswer } from "../flows/Flows.ts";
import { openHook } from "../flows/hookToken.ts";
import type { Flow, RunRecord, StartedRun, StartOptions } from "../flows/types.ts";
import type { Actors } from "../host/Host.ts";
import type { MetricValues } from "../objects/Metrics.ts";
import { chatActorName, chatKeyOf, parseAddress } from "../objects/names.ts";
import type { WireSend } from "../objects/Operations.ts";
import { normalise } from "../outbox/content.ts";
import type { Clock } from "../time/Clock.ts";
import { parseDuration } from "../time/duration.ts";
import { ActorDurability } from "./ActorDurability.ts";
import { ActorCalls } from "./actorCalls.ts";
import type { BotRuntime } from "./BotRuntime.ts";
import type {
  ChatClient,
  Client,
  DurabilityClient,
  InboxRecord,
  LogEntry,
  MessageRef,
  OutboxRecord,
} from "./Client.ts";
import { checkOptions } from "./checkOptions.ts";
import { CRON_CONNECTION } from "./crons.ts";
import type { EnqueueOptions, Receipt, SendOptions, SendResult, SendStatus } from "./sends.ts";

interface Target {
  actor: string;
  address: Address;
}

/** The client of one bot. */
export class ActorClient implements Client {
  #durability: DurabilityClient | undefined;
  readonly #calls: ActorCalls;
  readonly #bot: BotRuntime;
  readonly #uuid: () => string;
  readonly #origin: "bot" | "runtime";
  readonly #env: Record<string, unknown>;

  /**
   * @param uuid names sends that have no key of their own
   * @param origin `runtime` for listeners: their sends are not announced, or one that fails would go on for ever
   * @param env has `HOLDFAST_SEAL_KEY`, for `resume`
   * @param clock gives lists across chats their deadlines; without one they wait for every chat
   */
  constructor(
    actors: Actors,
    bot: BotRuntime,
    uuid: () => string = () => crypto.randomUUID(),
    origin: "bot" | "runtime" = "bot",
    clock?: Clock,
    env: Record<string, unknown> = {},
  ) {
    this.#env = env;
    this.#calls = new ActorCalls(actors, bot, clock);
    this.#bot = bot;
    this.#uuid = uuid;
    this.#origin = origin;
  }

  /** Made when it is asked for: every live chat has two clients, and few of their bots look. */
  get durability(): DurabilityClient {
    this.#durability ??= new ActorDurability(this.#calls, (to) => this.#target(to).actor);
    return this.#durability;
  }

  chat(address: Address | string): ChatClient {
    const target = this.#target(address);
    const call = <T>(method: string, input: unknown) =>
      this.#calls.chat<T>(target.actor, method, input);
    return {
      send: (content, options = {}) => this.#send(target, content, options, true),
      enqueue: (content, options = {}) => this.#send(target, content, options, false),
      cancel: (key) => call("cancel", { key }),
      sendEvent: (event) => this.#event(target, event),
      start: (flow: Flow, input?: unknown, options: StartOptions = {}) => {
        refuseCron(target);
        return call<StartedRun>("startFlow", {
          flow: flow.name,
          id: options.id ?? this.#uuid(),
          owner: options.sender ?? "",
          input,
          active: options.active,
          identity: identityOf(target),
        });
      },
      flows: {
        list: (options = {}) => call("listFlows", options),
        get: async (id) => (await call<RunRecord | null>("getFlow", { id })) ?? undefined,
        cancel: (id) => call("cancelFlow", { id }),
      },
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

  async resume(token: string, payload?: unknown): Promise<{ accepted: boolean }> {
    const target = openHook(token, this.#env);
    const known = target?.actor.startsWith(`${this.#calls.prefix}/`);
    if (target === undefined || !known) {
      throw new HoldfastError(
        "this is no token of a hook of this bot",
        { code: "hook_invalid", kind: "permission" },
        { retryable: false },
      );
    }
    const input = { run: target.run, hook: target.hook, payload };
    const answer = await this.#calls.chat<ResumeAnswer>(target.actor, "resumeFlow", input);
    if (answer === "gone") {
      throw new HoldfastError(
        "the run that this hook belongs to is over",
        { code: "hook_gone", kind: "not_found" },
        { retryable: false },
      );
    }
    return { accepted: answer === "accepted" };
  }

  async edit(message: MessageRef, content: Content): Promise<void> {
    const target = this.#target(message.address);
    const input = { id: message.id, content: normalise(content), identity: identityOf(target) };
    await this.#calls.chat(target.actor, "edit", input);
  }

  #target(to: Address | string): Target {
    const address = typeof to === "string" ? parseAddress(to) : to;
    const connection = address.connection ?? address.channel;
    const channel = this.#bot.channel(connection);
    // Where a cron job's runs are kept: no channel's chat, but its records are listed all the same.
    if (connection === CRON_CONNECTION) {
      const actor = chatActorName(this.#bot.scope, connection, address.chat);
      return { actor, address: { ...address, connection } };
    }
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
    refuseCron(target);
    const sent = await this.#calls.chat<WireSend>(target.actor, "send", {
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
      return this.#calls.chat<null>(target.actor, method, { id: receipt.primaryId, ...more });
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
    refuseCron(target);
    const { address } = target;
    const chat = {
      id: address.chat,
      kind: "direct" as const,
      ...(address.thread === undefined ? {} : { thread: address.thread }),
    };
    const answer = await this.#calls.receive(target.actor, {
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
    });
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

/** @throws {ConfigError} where nothing can be sent */
function refuseCron({ address }: Target): void {
  if (address.connection === CRON_CONNECTION)
    throw new ConfigError(
      "this is the record of a cron job, not a chat: nothing can be sent there",
    );
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
