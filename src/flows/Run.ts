/**
 * One execution of a run. The function runs from the top; what it already did is answered from the record,
 * until it comes to the wait that it is at. There the new event is tried, and it goes on or stops again.
 *
 * @module
 */
import type { Content, Json } from "../channels/content.ts";
import { ConfigError, FlowTimeoutError } from "../channels/errors.ts";
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
import type { Candidate } from "./alternatives.ts";
import { type AskOptions, askFor } from "./ask.ts";
import { Failures } from "./Failures.ts";
import { sealHook } from "./hookToken.ts";
import { RunState } from "./RunState.ts";
import {
  CodeChanged,
  hookName,
  memoryOf,
  type Resolution,
  type RunMemory,
  resolutionName,
  type WaitKind,
  type WaitRecord,
  waitOf,
} from "./records.ts";
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
import { type NumberedHook, type WaitIo, waitForAny } from "./waitFor.ts";

const STEP_BACKOFF_CAP_MS = 60_000;

/** What may end the wait that a run is at. */
export type Arrival =
  | { kind: "event"; candidate: Candidate; at: number }
  | { kind: "timeout"; wait: number; at: number }
  | { kind: "hook"; hook: number; payload: unknown; at: number };

/** How an execution ended. */
export type Ending =
  /** At a wait; `taken`: the arrival was what it waited for. */
  | { end: "waits"; wait: WaitRecord; dueAt: number | undefined; taken: boolean }
  | { end: "done"; result: unknown }
  | { end: "failed"; error: unknown }
  | { end: "changed"; why: string };

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
  readonly #path: string[];
  /** What failed before it was recorded. */
  readonly failures: Failures;
  readonly #judged: RunMemory["judged"];
  /** Waits that ended in this execution, for the commit. */
  readonly ended: { n: number; resolution: Resolution }[] = [];
  readonly #parts: RunParts;
  readonly #known: RunMemory;
  readonly #at: WaitRecord | undefined;
  readonly #seeded: Seeded;
  #arrival: Arrival | undefined;
  #waits = 0;
  /** Hooks whose call ended a wait: it ends no other. */
  readonly #usedHooks = new Set<number>();
  #hooks = 0;
  /** What was done since the last wait. */
  #did: string[] = [];
  #now: number;
  #waiting = false;
  /** Calls of the run that are on their way. */
  readonly #busy = new Set<Promise<unknown>>();
  /** The disk refused a write: whatever the function makes of it, its turn runs again. */
  #refusal: { error: unknown } | undefined;
  /** The function left a wait behind, or began two. */
  #misuse: ConfigError | undefined;
  #suspend: (ending: Ending) => void = () => {};

  constructor(parts: RunParts, arrival: Arrival | undefined) {
    const { row, ctx } = parts;
    this.#parts = parts;
    this.#arrival = arrival;
    this.#known = memoryOf(row);
    this.#path = [...this.#known.path];
    this.failures = new Failures(this.#known.unsent, parts.clean);
    this.#judged = { ...this.#known.judged };
    this.chatState = new RunState(this.#known);
    this.#at = waitOf(row);
    this.#seeded = new Seeded(row.seed, parts.scope);
    this.#now = row.started_at;
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
    return {
      path: this.#path,
      sends,
      judged: this.#judged,
      unsent,
      written,
      read,
    };
  }

  get #inStep(): boolean {
    return this.#parts.scope() !== this.#parts.base;
  }

  /** Notes what the function does; what a step does is the step's, which is answered from its record. */
  #note(what: string): void {
    if (!this.#inStep) this.#did.push(what);
  }

  /** @throws {ConfigError} inside a step */
  #outside(what: string): void {
    if (this.#inStep)
      throw new ConfigError(
        `${what} inside a step: its record would not have it; do it beside the step`,
      );
  }

  /** Whether everything that is done now was done before: nothing new may happen yet. */
  get replaying(): boolean {
    return this.#at !== undefined && this.#waits <= this.#at.n;
  }

  /** A step is not on record: it is new now, or is other code. */
  newStep(path: string): void {
    this.#goOn();
    if (this.replaying)
      throw this.#change(`it does the step "${path}", which it did not do before`);
  }

  /** A send is not on record: it was refused before, is new now, or is other code. */
  newSend(slot: string): void {
    this.#goOn();
    this.failures.callSend(slot);
    if (this.replaying) throw this.#change("it does a send, which it did not do before");
  }

  /** A step failed. */
  failStep(path: string, error: unknown, rest: StepRecord): void {
    if (this.#isOwn(error)) this.failures.step(path, error, rest);
  }

  /** Something new is done: what failed before has failed. @throws the disk's refusal, after which nothing is done */
  #goOn(): void {
    if (this.#refusal !== undefined) throw this.#refusal.error;
    try {
      this.#parts.recordFailures();
    } catch (error) {
      this.#isOwn(error);
      throw error;
    }
  }

  /** Resolves once nothing that the run began is still on its way. */
  async #rest(): Promise<void> {
    do {
      await Promise.allSettled(this.#busy);
      // What follows a call may begin the next one, or end the function.
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    } while (this.#busy.size > 0);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.catch(() => undefined).finally(() => this.#busy.delete(tracked));
    this.#busy.add(tracked);
    return work;
  }

  /** Executes the function, until nothing that it began is on its way. */
  async execute(fn: FlowFunction<unknown, unknown, unknown>, input: unknown): Promise<Ending> {
    const suspended = new Promise<Ending>((resolve) => {
      this.#suspend = resolve;
    });
    let over: Ending | undefined;
    const running = (async (): Promise<Ending> => {
      try {
        const result = await fn(this, input);
        if (this.replaying) {
          const before = this.#at?.n ?? 0;
          return { end: "changed", why: `it ends before wait ${before + 1}, where this run is` };
        }
        return { end: "done", result };
      } catch (error) {
        this.#parts.core.host.rethrowIfHalted(error);
        return { end: "failed", error };
      }
    })().then((ending) => {
      over = ending;
      return ending;
    });
    const ending = await Promise.race([suspended, running]);
    await this.#rest();
    // It may have come after the wait at which the run stopped, and been caught.
    if (this.#refusal !== undefined) return { end: "failed", ...this.#refusal };
    if (ending.end === "changed" || ending.end === "failed") return ending;
    // The run cannot be at a wait from which its function went on without an answer.
    const left = this.#waiting ? (over as Ending | undefined) : undefined;
    if (left?.end === "failed") return left;
    const error = this.#misuse ?? (left && oneWait());
    return error === undefined ? ending : { end: "failed", error };
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
        place: () => this.#waits,
        hasButtons: this.#parts.hasButtons,
        reply: (content) => this.reply(content),
        later: (duration) => this.#later(duration),
        wait: (name, dueAt, accept) => this.#wait("ask", name, dueAt, accept),
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
      wait: (name, dueAt, accept, hooks) => this.#wait("waitFor", name, dueAt, accept, hooks),
    };
    return (await waitForAny(io, alternatives, options.timeout)) as never;
  }

  async sleep(duration: Duration): Promise<void> {
    const { timeout } = await this.#wait(
      "sleep",
      "",
      this.#later(duration),
      () => undefined,
      [],
      true,
    );
    if (timeout !== true) throw new Error("a sleep that did not end by time");
  }

  hook<T = unknown>(name: string): Hook<T> {
    this.#outside("c.hook");
    const n = this.#hooks;
    this.#hooks += 1;
    this.#note(`hook ${name}`);
    const { core } = this.#parts;
    const token = sealHook({ actor: core.name, run: this.id, hook: n }, core.host.env);
    const base = core.host.env.HOLDFAST_URL;
    const url = `${typeof base === "string" ? base.replace(/\/+$/, "") : ""}/hooks/${token}`;
    const hook: NumberedHook = { kind: "hook", name, token, url, number: n };
    return hook as Hook<T>;
  }

  async step<T>(name: string, fn: () => T | Promise<T>, options: StepOptions = {}): Promise<T> {
    this.#note(`step ${name}`);
    const { host } = this.#parts.core;
    const retries = options.retries ?? 0;
    const baseMs = msOf(options.backoff ?? "1s");
    const work = this.#parts.ctx.step(name, async () => {
      for (let tries = 0; ; tries += 1) {
        try {
          return await fn();
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
    return this.#track(work);
  }

  /** Whether an error is the function's to see again. A disk that refuses ends this execution, whoever catches it. */
  #isOwn(error: unknown): boolean {
    if (isRefusal(error)) {
      this.#refusal ??= { error };
      this.#suspend({ end: "failed", error });
    }
    return this.#refusal === undefined && !(error instanceof CodeChanged);
  }

  /** Makes a send. */
  #send(make: () => Promise<SendResult>): Promise<SendResult> {
    const counts = (error: unknown, slot: string) =>
      this.#isOwn(error) && !this.#parts.isRecorded(slot);
    const sent = this.failures.send(make, counts).then((result) => ({
      ...result,
      edit: (content: Content) => this.#once("edit", () => result.edit(content)),
      delete: () => this.#once("delete", () => result.delete()),
    }));
    return this.#track(sent);
  }

  /** A call without a record of its own: the step around it has one, or it becomes a step. */
  #once(name: string, call: () => Promise<void>): Promise<void> {
    return this.#inStep ? call() : this.step(name, call);
  }

  async run<Input, Output>(flow: Flow<Input, Output>, input: Input): Promise<Output> {
    this.#note(`run ${flow.name}`);
    this.#outside("c.run");
    return (await this.#parts.functionOf(flow as Flow)(this, input)) as Output;
  }

  reply(content: Content, options: SendOptions = {}) {
    this.#note("send");
    return this.#send(() => this.#parts.ctx.reply(content, recorded(options)));
  }

  send(content: Content, options: SendOptions = {}) {
    return this.reply(content, options);
  }

  stream(source: StreamSource, options: StreamOptions = {}) {
    this.#note("send");
    return this.#send(() => this.#parts.ctx.stream(source, options));
  }

  sendBatch(contents: readonly Content[], options: SendOptions = {}) {
    for (const _content of contents) this.#note("send");
    const make = async () => {
      const result = await this.#parts.ctx.sendBatch(contents, recorded(options));
      if (isRefusal(result.error)) this.#isOwn(result.error);
      return result;
    };
    return this.#track(this.failures.batch(make, (slot) => !this.#parts.isRecorded(slot)));
  }

  enqueue(content: Content, options: EnqueueOptions = {}) {
    this.#note("send");
    return this.#send(() => this.#parts.ctx.enqueue(content, recorded(options)));
  }

  chatAt(address: Address | string): ChatAt {
    const there = this.#parts.ctx.chatAt(address);
    return {
      address: there.address,
      send: (content, options) => {
        this.#note("send");
        return this.#send(() => there.send(content, recorded(options ?? {})));
      },
    };
  }

  async typing(): Promise<void> {
    // Nobody sees what was shown days ago.
    if (!this.replaying) await this.#parts.ctx.typing();
  }

  loadMedia(media: MediaRef, options: { maxBytes?: number | undefined } = {}) {
    return this.#parts.ctx.loadMedia(media, options);
  }

  now(): number {
    return this.#now;
  }

  random(): number {
    return this.#seeded.random();
  }

  uuid(): string {
    return this.#seeded.uuid();
  }

  #later(duration: Duration): number {
    return this.#now + msOf(duration);
  }

  /**
   * Comes to a wait: answers from the record, tries what arrived, or stops here for now.
   * @throws {FlowTimeoutError} when its time ran out, unless `byTime` is how it ends
   */
  #wait(
    kind: WaitKind,
    name: string,
    dueAt: number | undefined,
    accept: (candidate: Candidate) => Pick<Resolution, "key" | "event"> | undefined,
    hooks: readonly { key: string; n: number }[] = [],
    byTime = false,
  ): Promise<Resolution> {
    if (this.#inStep)
      return Promise.reject(new ConfigError("a wait inside a step: do it beside the step"));
    if (this.#waiting) {
      this.#misuse = oneWait();
      return Promise.reject(this.#misuse);
    }
    const n = this.#waits;
    const changed = this.#compare(n, kind, name);
    if (changed !== undefined) return Promise.reject(changed);
    this.#waits += 1;
    this.#did = [];
    const known = this.#parts.read(resolutionName(n));
    const found =
      known === undefined
        ? this.#try(n, kind, name, accept, hooks)
        : (JSON.parse(known) as Resolution);
    if (found === undefined) {
      this.#waiting = true;
      // Some of what runs beside this may still be on its way; it is waited for by whoever executes.
      this.#suspend({ end: "waits", wait: { n, kind, name }, dueAt, taken: this.ended.length > 0 });
      return new Promise<never>(() => {});
    }
    this.#now = Math.max(this.#now, found.at);
    if (found.hook !== undefined) this.#usedHooks.add(found.hook);
    if (found.timeout === true && !byTime)
      return Promise.reject(new FlowTimeoutError(`no answer came in time (${kind} ${name})`));
    return Promise.resolve(found);
  }

  /** Whether what arrived ends wait `n`. */
  #try(
    n: number,
    kind: WaitKind,
    name: string,
    accept: (candidate: Candidate) => Pick<Resolution, "key" | "event"> | undefined,
    hooks: readonly { key: string; n: number }[],
  ): Resolution | undefined {
    const at = this.#arrival?.at ?? this.#now;
    const resolved = (more: Partial<Resolution>): Resolution => {
      const resolution: Resolution = { k: kind, n: name, at, ...more };
      this.ended.push({ n, resolution });
      return resolution;
    };
    for (const { key, n: hook } of hooks) {
      const called = this.#parts.read(hookName(hook));
      if (called !== undefined && !this.#usedHooks.has(hook))
        return resolved({ key, hook, payload: JSON.parse(called) });
    }
    const arrival = this.#arrival;
    if (arrival === undefined) return undefined;
    if (arrival.kind === "timeout") {
      if (arrival.wait !== n) return undefined;
      this.#arrival = undefined;
      return resolved({ timeout: true });
    }
    if (arrival.kind === "hook") {
      const mine = hooks.find((one) => one.n === arrival.hook);
      if (mine === undefined) return undefined;
      this.#arrival = undefined;
      return resolved({ key: mine.key, hook: mine.n, payload: arrival.payload });
    }
    const taken = accept(arrival.candidate);
    if (taken === undefined) return undefined;
    this.#arrival = undefined;
    return resolved(taken);
  }

  /** Compares what was done up to wait `n` with what the record says was done. */
  #compare(n: number, kind: WaitKind, name: string): CodeChanged | undefined {
    const here = [...this.#did].sort().concat(`${kind} ${name}`).join(" | ");
    const before = this.#known.path[n];
    this.#path[n] = here;
    if (before === undefined || before === here) return undefined;
    return this.#change(`at wait ${n + 1} it did [${here}], and before it did [${before}]`);
  }

  /** Ends the execution: whatever the function makes of the error, this is other code. */
  #change(why: string): CodeChanged {
    this.#suspend({ end: "changed", why });
    return new CodeChanged(why);
  }
}

/** @throws {ConfigError} for what is not a duration */
function msOf(duration: Duration): number {
  const ms = parseDuration(duration);
  if (ms === undefined) throw new ConfigError(notADuration(duration));
  return ms;
}

function oneWait(): ConfigError {
  return new ConfigError(
    "a flow waits for one thing at a time, and awaits it: give `waitFor` several alternatives, or a `timeout`",
  );
}

/** A send of a run needs its record: without one the function could not be told what became of it. */
function recorded<O extends SendOptions>(options: O): O {
  return { ...options, durability: "required" };
}

/** What JSON keeps of a value. */
export function jsonOf(value: unknown): string | null {
  const text = JSON.stringify(value) as string | undefined;
  return text ?? null;
}

/** A value that a flow was started with, or gave. */
export function valueFrom(text: string | null): Json | undefined {
  return text === null ? undefined : (JSON.parse(text) as Json);
}
