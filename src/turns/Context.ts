/**
 * The context of a turn: what a handler gets. This file is the contract; `TurnContext.ts` is the
 * mechanics.
 *
 * @module
 */
import type { Content, Json, JsonObject } from "../channels/content.ts";
import type { Address, ChatInfo, InboundEvent, MediaRef, Sender } from "../channels/events.ts";
import type { Flow, StartedRun, StartOptions } from "../flows/types.ts";
import type { Log } from "../host/Host.ts";
import type { StreamOptions, StreamSource } from "../streams/types.ts";
import type { Duration } from "../time/duration.ts";
import type { Client } from "./Client.ts";
import type { History } from "./history.ts";
import type { BatchResult, EnqueueOptions, SendOptions, SendResult } from "./sends.ts";

/** State whose keys have no declared types. */
export interface LooseState {
  get<T = Json>(key: string): T | undefined;
  /** @throws {TypeError} when the value is not JSON */
  set(key: string, value: unknown): void;
  update<T = Json>(key: string, change: (value: T | undefined) => T): T;
  delete(key: string): void;
}

/** State whose keys and values are declared in the bot's `Shape`. */
export interface TypedState<S> {
  get<K extends keyof S & string>(key: K): S[K] | undefined;
  /** @throws {TypeError} when the value is not JSON */
  set<K extends keyof S & string>(key: K, value: S[K]): void;
  update<K extends keyof S & string>(key: K, change: (value: S[K] | undefined) => S[K]): S[K];
  delete(key: keyof S & string): void;
}

/**
 * State of the chat or of a sender in it. Reads and writes are synchronous; writes are committed with
 * the turn, in the same transaction as its "done" mark, and dropped when the handler throws.
 */
export type State<S = unknown> = unknown extends S ? LooseState : TypedState<S>;

/** Types of a bot's state, by where it is kept. */
export interface StateShape {
  /** `ctx.state`: of the chat. */
  state?: unknown;
  /** `ctx.user`: of the sender in this chat. */
  user?: unknown;
}

type ShapeOf<Shape, K extends keyof StateShape> = Shape extends Record<K, infer S> ? S : unknown;

/** A pressed button: its action and data, or that the data is no longer kept. */
export type Press = { action: string; data: unknown } | { expired: true };

/** Another chat, from inside a turn. */
export interface ChatAt {
  readonly address: Address;
  /** @throws {DeliveryError} when the other chat refused it */
  send(content: Content, options?: SendOptions): Promise<SendResult>;
}

/** What a handler gets. */
export interface Context<Env = unknown, Shape = unknown> {
  readonly event: InboundEvent;
  readonly chat: ChatInfo;
  /** This chat's address. */
  readonly address: Address;
  readonly sender: Sender | undefined;
  /** The message's text; empty where there is none. */
  readonly text: string;
  /** What a regular expression matched: `match[1]` is its first group. */
  readonly match: RegExpMatchArray;
  /**
   * What arrived for this turn, one by one: several messages where `concurrency` is "burst" or an album
   * came, else one. `event`, `text` and `media` are all of them together.
   */
  readonly burst: readonly InboundEvent[];
  /** Media of the event, as references; one that cannot be downloaded any more says why. */
  readonly media: readonly MediaRef[];
  /** The record behind this turn. `id` is its inbox id: the same over replays. */
  readonly ref: { readonly id: string };
  /** 1 on the first run; more after a crash or a retry. */
  readonly attempt: number;
  /** Whether this event ran before. */
  readonly replayed: boolean;
  /** Aborts when the turn is timed out or interrupted. */
  readonly signal: AbortSignal;
  readonly env: Env;
  readonly client: Client;
  readonly log: Log;
  /** State of this chat. */
  readonly state: State<ShapeOf<Shape, "state">>;
  /** State of the sender in this chat. */
  readonly user: State<ShapeOf<Shape, "user">>;
  /** The pressed button, where the event is a press. */
  readonly press: Press | undefined;

  /**
   * Answers in this chat, quoting nothing, and waits for delivery up to `outbox.inlineMaxMs`.
   * @throws {DeliveryError} when the send died
   * @throws {SendDeferredError} when it is deferred and `outbox.onDeferred` is `"throw"`
   */
  reply(content: Content, options?: SendOptions): Promise<SendResult>;
  /** The same as `reply`. */
  send(content: Content, options?: SendOptions): Promise<SendResult>;
  /** Sends several messages in order; never throws for delivery. */
  sendBatch(contents: readonly Content[], options?: SendOptions): Promise<BatchResult>;
  /**
   * Answers with a text that is still being written, by a model for instance: the chat sees it grow, and once
   * the source is at its end, the whole is delivered as by `reply`. A replay of the turn reads the source anew
   * and goes on with the message that is there; once the answer is recorded, it is not read again.
   *
   * @throws whatever the source threw; what it gave until then becomes the message (`onInterrupt`)
   * @throws {DeliveryError} when the send died
   * @throws {PayloadTooLargeError} for more than `outbox.maxPayloadBytes`
   */
  stream(source: StreamSource, options?: StreamOptions): Promise<SendResult>;
  /** Records a send and goes on; it survives a throw of the handler, unless `when` is `"settled"`. */
  enqueue(content: Content, options?: EnqueueOptions): Promise<SendResult>;
  /**
   * Another chat of this bot. A send there is recorded in this chat first and survives its death; it
   * resolves `deferred` once the other chat has recorded it, and a later death is announced there.
   *
   * @throws {ConfigError} for an address of a connection that the bot does not have
   */
  chatAt(address: Address | string): ChatAt;
  /** Shows that the bot is busy. Best effort. */
  typing(): Promise<void>;
  /** Reacts to the message of this event. Best effort; resolves to whether the platform took it. */
  react(emoji: string): Promise<boolean>;
  /** The message of this event. */
  readonly message: { readonly id: string | undefined; edit(content: Content): Promise<void> };
  /**
   * Runs `fn` once and records its result: a replay gets the record, and the first run what JSON keeps of it,
   * too. State set inside is recorded with the step and applied again on replay; where `fn` throws, it is dropped.
   */
  step<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
  /**
   * Starts a run of a flow for the sender of this event; it begins as a turn of its own, right after this
   * one. Recorded at once: a run that is started here twice by a replay is one.
   *
   * @throws {ConfigError} for a flow that the bot does not have
   */
  start<Input>(
    flow: Flow<Input, unknown>,
    ...input: undefined extends Input
      ? [input?: Input, options?: StartOptions]
      : [input: Input, options?: StartOptions]
  ): Promise<StartedRun>;
  /** The chat's recent events and sends, oldest first. */
  history(options?: { limit?: number }): Promise<History>;
  /**
   * Downloads a file of this event: by its place in `media` or its reference, of at most `maxBytes`
   * (default 20 MiB). `loadMediaOf` is the same without a throw.
   *
   * @throws {MediaUnavailableError} with its `reason`
   * @throws {PayloadTooLargeError} when it is over `maxBytes`, or over what the platform gives bots
   */
  loadMedia(
    media?: MediaRef | number,
    options?: { maxBytes?: number | undefined },
  ): Promise<Uint8Array>;
  /** Calls a method of the platform as it is. Not journaled. */
  api(method: string, body?: JsonObject): Promise<unknown>;
  /** Marks the event as accepted, for ack policies that wait. Idempotent. */
  ack(): void;
  /** Runs this event again after a backoff (or `after`), whatever the handler does next. */
  nack(error?: unknown, options?: { after?: Duration }): void;
  /** Answers a button press, with a short notice where the platform shows one. */
  answer(text?: string): Promise<void>;
}

/** A context as the engine hands it to the bot. */
export interface EngineContext extends Context {
  /** Offers the event to the run of a flow. Resolves to whether it was taken. */
  takeByRun(): Promise<boolean>;
  /** Goes on with the run that this event of kind `timer` names. */
  wakeRun(): Promise<void>;
}

/** Continues with the next middleware or matching handler. */
export type Next = () => Promise<void>;

/** A handler of a turn. Its return value is ignored. */
export type Handler<C = Context> = (ctx: C, next: Next) => unknown;
