/**
 * The contract of flows: what a flow function gets, and what it may wait for. `Run.ts` is the mechanics.
 *
 * @module
 */
import type { Content, Json } from "../channels/content.ts";
import type { Address, InboundEvent, MediaRef } from "../channels/events.ts";
import type { Log } from "../host/Host.ts";
import type { StreamOptions, StreamSource } from "../streams/types.ts";
import type { Duration } from "../time/duration.ts";
import type { Client } from "../turns/Client.ts";
import type { ChatAt, LooseState } from "../turns/Context.ts";
import type { Matcher } from "../turns/matchers.ts";
import type { Action, StandardSchema } from "../turns/Router.ts";
import type { BatchResult, EnqueueOptions, SendOptions, SendResult } from "../turns/sends.ts";

/** What somebody answered. */
export interface Answer {
  text: string;
  media: readonly MediaRef[];
  /** The event itself, as journaled. */
  event: InboundEvent;
}

/** Something to choose from: its button's text, and what the flow gets. */
export interface Choice<V extends Json = Json> {
  text: string;
  value: V;
}

interface AskBase {
  /** How long to wait. Default: for ever. */
  timeout?: Duration | undefined;
  /** How many answers that do not fit are sent back before the question fails. Default 3. */
  retries?: number | undefined;
  /** What is said of an answer that does not fit; `reason` is the schema's own text. */
  invalid?: Content | ((reason: string, answer: Answer) => Content) | undefined;
}

/** Options of a question that is answered by text. */
export type AskText = AskBase;
/** Options of a question with choices: buttons where the channel has them, else numbered text. */
export interface AskChoices<C extends string | Choice> extends AskBase {
  choices: readonly C[];
}
/** Options of a question whose text is checked and converted. */
export interface AskSchema<T> extends AskBase {
  /** Any Standard Schema: zod, valibot, arktype … */
  schema: StandardSchema<T>;
}
/** Options of a question that takes one kind of message, such as `IMAGE`. */
export interface AskAccept extends AskBase {
  accept: Matcher<unknown>;
}

/** What a flow may wait for, by name. */
export type Alternative =
  | Hook
  | Matcher<unknown>
  | Action<never>
  | RegExp
  /** An external event, as `client.chat(a).sendEvent` makes it. */
  | `event:${string}`;

/** What an alternative gives. */
export type AlternativeValue<A> =
  A extends Hook<infer T>
    ? T
    : A extends Action<infer D>
      ? D
      : A extends `event:${string}`
        ? unknown
        : Answer;

/** Which alternative came, and what it brought. */
export type Waited<A extends Record<string, Alternative>> = {
  [K in keyof A & string]: { key: K; value: AlternativeValue<A[K]> };
}[keyof A & string];

/** A way for a third party to continue a run, once. */
export interface Hook<T = unknown> {
  readonly kind: "hook";
  readonly name: string;
  /** For `client.resume(token, payload)`. */
  readonly token: string;
  /** Where a third party posts to: `HOLDFAST_URL` and `/hooks/…`. */
  readonly url: string;
  /** Carries the type; never set. */
  readonly payload?: T;
}

/** Options of a step. */
export interface StepOptions {
  /** Tries after the first, where `fn` throws. Default 0. An error with `retryable: false` ends them. */
  retries?: number | undefined;
  /** Between two tries, at most. Default `"1s"`, doubled each time up to a minute; half of it is random. */
  backoff?: Duration | undefined;
}

/**
 * What a flow function gets. Every call of it is recorded, and answered from the record when the
 * function runs again; what is not a call of it must give the same result each time.
 */
export interface FlowContext<Env = unknown> {
  /** The run's id. */
  readonly id: string;
  /** The flow's name. */
  readonly flow: string;
  readonly env: Env;
  readonly client: Client;
  readonly log: Log;
  /** Aborts when the turn that runs this is stopped: its time is over. */
  readonly signal: AbortSignal;
  /** This chat's address. */
  readonly address: Address;
  /** State of the chat. A key is read once per run; what the run writes is committed once. */
  readonly state: LooseState;

  /** Says something and waits for the answer. @throws {FlowTimeoutError} after `timeout` */
  ask(question: Content, options?: AskText): Promise<string>;
  ask<const C extends string | Choice>(
    question: Content,
    options: AskChoices<C>,
  ): Promise<C extends Choice<infer V> ? V : C>;
  ask<T>(question: Content, options: AskSchema<T>): Promise<T>;
  ask(question: Content, options: AskAccept): Promise<Answer>;
  /** Waits for the first of several things. @throws {FlowTimeoutError} after `timeout` */
  waitFor<const A extends Record<string, Alternative>>(
    alternatives: A,
    options?: { timeout?: Duration | undefined },
  ): Promise<Waited<A>>;
  /** A token and an address for a third party; valid once, as long as the run lasts. */
  hook<T = unknown>(name: string): Hook<T>;
  /** Waits. */
  sleep(duration: Duration): Promise<void>;
  /** Runs `fn` once and gives what JSON keeps of its result; where it throws, that is recorded, too. */
  step<T>(name: string, fn: () => T | Promise<T>, options?: StepOptions): Promise<T>;
  /** Runs another flow as a part of this one. */
  run<Input, Output>(flow: Flow<Input, Output>, input: Input): Promise<Output>;

  reply(content: Content, options?: SendOptions): Promise<SendResult>;
  send(content: Content, options?: SendOptions): Promise<SendResult>;
  /**
   * Shows an answer while it is written. Give a function that begins the source: it is called once, and not
   * when the run goes on later.
   */
  stream(source: StreamSource, options?: StreamOptions): Promise<SendResult>;
  sendBatch(contents: readonly Content[], options?: SendOptions): Promise<BatchResult>;
  enqueue(content: Content, options?: EnqueueOptions): Promise<SendResult>;
  chatAt(address: Address | string): ChatAt;
  typing(): Promise<void>;
  /** Downloads a file of an answer. @throws {MediaUnavailableError} with its `reason` */
  loadMedia(media: MediaRef, options?: { maxBytes?: number | undefined }): Promise<Uint8Array>;

  /** When what continued the run arrived: epoch milliseconds, the same each time. */
  now(): number;
  /** From 0 to 1, the same each time. */
  random(): number;
  /** A random UUID, the same each time. */
  uuid(): string;
}

/** A flow function. */
export type FlowFunction<Env, Input, Output> = (
  c: FlowContext<Env>,
  input: Input,
) => Promise<Output> | Output;

/** Options of a flow. */
export interface FlowOptions {
  /** Runs keep the version that they began with: register the old one beside the new. Default 1. */
  version?: number | undefined;
  /** Messages that end a run of it, in any case. Default `["/cancel"]`. */
  cancel?: readonly string[] | undefined;
  /** What is said when a run is cancelled so. Default `"Cancelled."`; `null` says nothing. */
  cancelled?: Content | null | undefined;
  /**
   * Commands of the bot while a run waits: `"pass"` (default) runs their handler and the run goes on
   * waiting; `"cancel"` ends the run first.
   */
  commands?: "pass" | "cancel" | undefined;
  /**
   * When the code no longer does what it did in a run: `"fail"` (default) ends the run, lists it as
   * failed and lets the message go to the handlers; `"restart"` begins it anew.
   */
  onCodeChange?: "fail" | "restart" | undefined;
}

/** A flow, as `bot.flow` returns it. */
export interface Flow<Input = unknown, Output = unknown> {
  readonly name: string;
  readonly version: number;
  /** Carries the types; never set. */
  readonly types?: { input: Input; output: Output };
}

/** How a run is started. */
export interface StartOptions {
  /** Names the run, so that a second start with the same id is the same run. */
  id?: string | undefined;
  /** Whose messages it takes. Default: the sender of this turn; from outside, everybody's in the chat. */
  sender?: string | undefined;
  /** What happens to a run that the sender has already: it is cancelled (default), or stays and this is not started. */
  active?: "replace" | "keep" | undefined;
}

/** A started run. `started` is false where another one stays, or this id is known. */
export interface StartedRun {
  id: string;
  started: boolean;
}

/** How a run stands. */
export type RunState = "active" | "done" | "failed" | "cancelled";

/** A run in a list. */
export interface RunRow {
  id: string;
  flow: string;
  version: number;
  state: RunState;
  /** What it waits for: `ask`, `waitFor` or `sleep`, and its name. */
  waitsFor?: string;
  /** When its wait ends by itself: epoch milliseconds. */
  dueAt?: number;
  startedAt: number;
  finishedAt?: number;
  error?: string;
}

/** A run in full. */
export interface RunRecord extends RunRow {
  input?: unknown;
  result?: unknown;
  /** What it did, in order. */
  history: RunEntry[];
}

/** One thing that a run did. */
export interface RunEntry {
  kind: "step" | "ask" | "waitFor" | "sleep" | "hook" | "send";
  name: string;
  /** Epoch milliseconds. */
  at: number;
  result?: unknown;
  /** How a step failed. */
  error?: string;
}
