/**
 * One execution of a run. The function runs from the top; what it already did is answered from the record,
 * until it comes to the wait that it is at. There the new event is tried, and it goes on or stops again.
 *
 * @module
 */
import type { Content } from "../channels/content.ts";
import { ConfigError } from "../channels/errors.ts";
import type { Address, MediaRef } from "../channels/events.ts";
import type { FlowRow } from "../journal/FlowTable.ts";
import { isRefusal } from "../journal/refusal.ts";
import type { Core } from "../objects/Core.ts";
import type { StreamOptions, StreamSource } from "../streams/types.ts";
import { backoffMs } from "../time/backoff.ts";
import { sleep } from "../time/Clock.ts";
import { type Duration, notADuration, parseDuration } from "../time/duration.ts";
import type { ChatAt, Context, LooseState } from "../turns/Context.ts";
import type { StepRecord } from "../turns/Steps.ts";
import type { EnqueueOptions, SendOptions, SendResult } from "../turns/sends.ts";
import { type AskOptions, askFor } from "./ask.ts";
import { Execution } from "./Execution.ts";
import { Failures } from "./Failures.ts";
import { sealHook } from "./hookToken.ts";
import { RunState } from "./RunState.ts";
import { memoryOf, type RunMemory } from "./records.ts";
import { Seeded } from "./seeded.ts";
import type {
  Alternative,
  Answer,
  AskAccept,
  AskChoices,
  AskSchema,
  AskText,
  Choice,
  Flow,
  FlowContext,
  FlowFunction,
  Hook,
  StepOptions,
} from "./types.ts";
import { type Arrival, type Ending, Waits } from "./Waits.ts";
import { type NumberedHook, type WaitIo, waitForAny } from "./waitFor.ts";

const STEP_BACKOFF_CAP_MS = 60_000;

/** What an execution stands on. */
export interface RunParts {
  core: Core;
  row: FlowRow;
  /** Sends, steps and files of the turn that executes it. */
  ctx: Context;
  /** The recorded end of a wait, or what a hook brought, as JSON text. */
  read(name: string): string | undefined;
  hasButtons: boolean;
  /** The scope of sends made now, which names the step that runs. */
  scope(): string;
  /** The scope outside steps. */
  base: string;
  /** An error's text without secrets. */
  clean(text: string): string;
  /** Whether a send of this slot is on record by now. */
  isRecorded(slot: string): boolean;
  /** One try of the step that runs: what it writes to the state is taken back where it fails. */
  attempt<T>(fn: () => T | Promise<T>): Promise<T>;
  /** Writes down which steps failed. */
  recordFailures(): void;
  /** The function of another flow. */
  functionOf(flow: Flow): FlowFunction<unknown, unknown, unknown>;
}

/** One execution. */
export class Run implements FlowContext {
  readonly id: string;
  readonly flow: string;
  readonly env: unknown;
  readonly address: Address;
  readonly state: LooseState;
  /** The chat's state, as this run sees and changes it. */
  readonly chatState: RunState;
  /** What failed before it was recorded. */
  readonly failures: Failures;
  readonly #judged: RunMemory["judged"];
  readonly waits: Waits;
  readonly #parts: RunParts;
  readonly #known: RunMemory;
  readonly #seeded: Seeded;
  #hooks = 0;
  readonly #execution: Execution;

  constructor(parts: RunParts, arrival: Arrival | undefined) {
    const { row, ctx } = parts;
    this.#parts = parts;
    this.#execution = new Execution(parts.core.host);
    this.#known = memoryOf(row);
    this.failures = new Failures(this.#known.unsent, parts.clean);
    this.#judged = { ...this.#known.judged };
    this.chatState = new RunState(this.#known);
    this.waits = new Waits(
      {
        read: parts.read,
        inStep: () => this.#inStep,
        suspend: (ending) => this.#execution.suspend(ending),
      },
      row,
      this.#known,
      arrival,
    );
    this.#seeded = new Seeded(row.seed, parts.scope);
    this.id = row.id;
    this.flow = row.flow;
    this.env = ctx.env;
    this.address = ctx.address;
    this.state = ctx.state;
  }

  get client(): Context["client"] {
    return this.#parts.ctx.client;
  }

  get log(): Context["log"] {
    return this.#parts.ctx.log;
  }

  get signal(): AbortSignal {
    return this.#parts.ctx.signal;
  }

  /** What the run remembers from this execution on. */
  get memory(): RunMemory {
    const { written, read } = this.chatState;
    const { sends } = this.#known;
    const { unsent } = this.failures;
    const { path } = this.waits;
    return { path, sends, judged: this.#judged, unsent, written, read };
  }

  get #inStep(): boolean {
    return this.#parts.scope() !== this.#parts.base;
  }

  /** @throws {ConfigError} inside a step */
  #outside(what: string): void {
    if (this.#inStep)
      throw new ConfigError(
        `${what} inside a step: its record would not have it; do it beside the step`,
      );
  }

  /** A step is not on record: it is new now, or is other code. */
  newStep(path: string): void {
    this.#goOn();
    if (this.waits.replaying)
      throw this.waits.changed(`it does the step "${path}", which it did not do before`);
  }

  /** A send is not on record: it was refused before, is new now, or is other code. */
  newSend(slot: string): void {
    this.#goOn();
    this.failures.callSend(slot);
    if (this.waits.replaying)
      throw this.waits.changed("it does a send, which it did not do before");
  }

  /** A step failed. */
  failStep(path: string, error: unknown, rest: StepRecord): void {
    if (this.#execution.isOwn(error)) this.failures.step(path, error, rest);
  }

  /** Something new is done: what failed before has failed. @throws the disk's refusal, after which nothing is done */
  #goOn(): void {
    if (this.#execution.refusal !== undefined) throw this.#execution.refusal.error;
    try {
      this.#parts.recordFailures();
    } catch (error) {
      this.#execution.isOwn(error);
      throw error;
    }
  }

  /** Executes the function, until nothing that it began is on its way. */
  execute(fn: FlowFunction<unknown, unknown, unknown>, input: unknown): Promise<Ending> {
    return this.#execution.run(() => fn(this, input), this.waits);
  }

  ask(question: Content, options?: AskText): Promise<string>;
  ask<const C extends string | Choice>(
    question: Content,
    options: AskChoices<C>,
  ): Promise<C extends Choice<infer V> ? V : C>;
  ask<T>(question: Content, options: AskSchema<T>): Promise<T>;
  ask(question: Content, options: AskAccept): Promise<Answer>;
  ask(question: Content, options: AskOptions = {}): Promise<unknown> {
    return askFor(
      {
        run: this.id,
        place: () => this.waits.count,
        hasButtons: this.#parts.hasButtons,
        reply: (content) => this.reply(content),
        later: (duration) => this.#later(duration),
        wait: (name, dueAt, accept) => this.waits.come({ kind: "ask", name, dueAt, accept }),
        judged: (n) => this.#judged[n],
        judge: (n, judgement) => {
          this.#judged[n] = judgement;
        },
      },
      question,
      options,
    );
  }

  async waitFor(
    alternatives: Record<string, Alternative>,
    options: { timeout?: Duration | undefined } = {},
  ): Promise<never> {
    const io: WaitIo = {
      later: (duration) => this.#later(duration),
      wait: (name, dueAt, accept, hooks) =>
        this.waits.come({ kind: "waitFor", name, dueAt, accept, hooks }),
    };
    return (await waitForAny(io, alternatives, options.timeout)) as never;
  }

  async sleep(duration: Duration): Promise<void> {
    await this.waits.come({ kind: "sleep", name: "", dueAt: this.#later(duration) });
  }

  hook<T = unknown>(name: string): Hook<T> {
    this.#outside("c.hook");
    const n = this.#hooks;
    this.#hooks += 1;
    this.waits.note(`hook ${name}`);
    const { core } = this.#parts;
    const token = sealHook({ actor: core.name, run: this.id, hook: n }, core.host.env);
    const base = core.host.env.HOLDFAST_URL;
    const url = `${typeof base === "string" ? base.replace(/\/+$/, "") : ""}/hooks/${token}`;
    const hook: NumberedHook = { kind: "hook", name, token, url, number: n };
    return hook as Hook<T>;
  }

  async step<T>(name: string, fn: () => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    this.waits.note(`step ${name}`);
    const { host } = this.#parts.core;
    const { retries = 0 } = options;
    if (!(retries >= 0)) throw new ConfigError(`c.step: retries is ${retries}; give 0 or more`);
    const baseMs = msOf(options.backoff ?? "1s");
    const work = this.#parts.ctx.step(name, async () => {
      for (let tries = 0; ; tries += 1) {
        try {
          return await this.#parts.attempt(fn);
        } catch (error) {
          host.rethrowIfHalted(error);
          if (tries >= retries || (error as { retryable?: unknown })?.retryable === false)
            throw error;
          const waitMs = backoffMs(
            { baseMs, capMs: STEP_BACKOFF_CAP_MS },
            tries + 1,
            host.random(),
          );
          await sleep(host.clock, waitMs);
        }
      }
    });
    return this.#execution.track(work);
  }

  /** Makes a send. */
  #send(make: () => Promise<SendResult>): Promise<SendResult> {
    const counts = (error: unknown, slot: string) =>
      this.#execution.isOwn(error) && !this.#parts.isRecorded(slot);
    const sent = this.failures.send(make, counts).then((result) => ({
      ...result,
      edit: (content: Content) => this.#once("edit", () => result.edit(content)),
      delete: () => this.#once("delete", () => result.delete()),
    }));
    return this.#execution.track(sent);
  }

  /** A call without a record of its own: the step around it has one, or it becomes a step. */
  #once(name: string, call: () => Promise<void>): Promise<void> {
    return this.#inStep ? call() : this.step(name, call);
  }

  async run<Input, Output>(flow: Flow<Input, Output>, input: Input): Promise<Output> {
    this.waits.note(`run ${flow.name}`);
    this.#outside("c.run");
    return (await this.#parts.functionOf(flow as Flow)(this, input)) as Output;
  }

  reply(content: Content, options: SendOptions = {}) {
    this.waits.note("send");
    return this.#send(() => this.#parts.ctx.reply(content, recorded(options)));
  }

  send(content: Content, options: SendOptions = {}) {
    return this.reply(content, options);
  }

  stream(source: StreamSource, options: StreamOptions = {}) {
    this.waits.note("send");
    return this.#send(() => this.#parts.ctx.stream(source, options));
  }

  sendBatch(contents: readonly Content[], options: SendOptions = {}) {
    for (const _content of contents) this.waits.note("send");
    const make = async () => {
      const result = await this.#parts.ctx.sendBatch(contents, recorded(options));
      if (isRefusal(result.error)) this.#execution.isOwn(result.error);
      return result;
    };
    return this.#execution.track(
      this.failures.batch(make, (slot) => !this.#parts.isRecorded(slot)),
    );
  }

  enqueue(content: Content, options: EnqueueOptions = {}) {
    this.waits.note("send");
    return this.#send(() => this.#parts.ctx.enqueue(content, recorded(options)));
  }

  chatAt(address: Address | string): ChatAt {
    const there = this.#parts.ctx.chatAt(address);
    return {
      address: there.address,
      send: (content, options) => {
        this.waits.note("send");
        return this.#send(() => there.send(content, recorded(options ?? {})));
      },
    };
  }

  async typing(): Promise<void> {
    // Nobody sees what was shown days ago.
    if (!this.waits.replaying) await this.#parts.ctx.typing();
  }

  loadMedia(media: MediaRef, options: { maxBytes?: number | undefined } = {}) {
    return this.#parts.ctx.loadMedia(media, options);
  }

  now(): number {
    return this.waits.now;
  }

  random(): number {
    return this.#seeded.random();
  }

  uuid(): string {
    return this.#seeded.uuid();
  }

  #later(duration: Duration): number {
    return this.waits.now + msOf(duration);
  }
}

/** @throws {ConfigError} for what is not a duration */
function msOf(duration: Duration): number {
  const ms = parseDuration(duration);
  if (ms === undefined) throw new ConfigError(notADuration(duration));
  return ms;
}

/** A send of a run needs its record: without one the function could not be told what became of it. */
function recorded<O extends SendOptions>(options: O): O {
  return { ...options, durability: "required" };
}
