/**
 * `ctx.step`: a function whose result is recorded once. Sends inside are numbered per step, so that
 * parallel steps do not disturb each other's keys.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { errorFrom, type WireError } from "../channels/wireError.ts";
import type { StateWrite } from "../journal/SideTables.ts";
import { encodeKey } from "../outbox/keys.ts";
import type { SettledIntent } from "../outbox/TurnSends.ts";
import type { TurnState } from "./TurnState.ts";
import { refuseTooLarge } from "./tooLarge.ts";

/** The step that the current code runs in. */
interface StepFrame {
  owner: Steps;
  /** `a/b` for step b inside step a. */
  path: string;
  writes: StateWrite[];
  slots: string[];
  settled: SettledIntent[];
  /** How often each name was used in this frame. */
  used: Map<string, number>;
}

const current = new AsyncLocalStorage<StepFrame>();

/** Where a run keeps its steps. */
export interface StepStore {
  read(path: string): string | undefined;
  record(path: string, result: string): void;
  /** A step failed: kept where its error is its outcome, and not there where it is tried again. */
  fail?(path: string, error: unknown, rest: Pick<StepRecord, "o" | "e">): void;
}

/** What is kept of a step. */
export interface StepRecord {
  v?: unknown;
  /** How it failed, where that is kept. */
  x?: WireError;
  s?: StateWrite[];
  /** Slots of the sends that it made. */
  o?: string[];
  /** Sends that it held back for the settle. */
  e?: SettledIntent[];
}

/** The steps of one run. */
export class Steps {
  readonly #store: StepStore;
  readonly #state: Pick<TurnState, "apply" | "drop">;
  readonly #adopt: (slots: readonly string[], settled: readonly SettledIntent[]) => void;
  readonly #used = new Map<string, number>();
  readonly #base: string;

  /**
   * @param adopt takes over the sends of a step that is answered from its record
   * @param base the scope of sends outside steps
   */
  constructor(
    store: StepStore,
    state: Pick<TurnState, "apply" | "drop">,
    adopt: (slots: readonly string[], settled: readonly SettledIntent[]) => void,
    base = "",
  ) {
    this.#base = base;
    this.#store = store;
    this.#state = state;
    this.#adopt = adopt;
  }

  /** Notes a send of the step that runs now. */
  noteSend(slot: string): void {
    this.#frame()?.slots.push(slot);
  }

  /** Notes a send that the step which runs now holds back for the settle. */
  noteSettled(intent: SettledIntent): void {
    this.#frame()?.settled.push(intent);
  }

  /** The scope of sends made now: the base outside steps. */
  scope(): string {
    const path = this.#frame()?.path;
    if (path === undefined || this.#base === "") return path ?? this.#base;
    return `${this.#base}/${path}`;
  }

  /** The state writes of the step that runs now. */
  recorder(): StateWrite[] | undefined {
    return this.#frame()?.writes;
  }

  /** Runs `fn` once and records its result, or answers from the record. */
  async run<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const frame = this.#frame();
    const used = frame?.used ?? this.#used;
    const count = (used.get(name) ?? 0) + 1;
    used.set(name, count);
    // A name with an "@" of its own is encoded, so that no name looks like the second of another.
    const base = encodeKey(name).replaceAll("@", "%40");
    const own = count === 1 ? base : `${base}@${count}`;
    const path = frame === undefined ? own : `${frame.path}/${own}`;
    const known = this.#store.read(path);
    if (known !== undefined) {
      const { v, x, s = [], o = [], e = [] } = JSON.parse(known) as StepRecord;
      this.#adopt(o, e);
      frame?.slots.push(...o);
      frame?.settled.push(...e);
      // Into the step around this one, too.
      this.#state.apply(s);
      if (x !== undefined) throw errorFrom(x);
      return v as T;
    }
    const inner: StepFrame = {
      owner: this,
      path,
      writes: [],
      slots: [],
      settled: [],
      used: new Map(),
    };
    const { writes, slots, settled } = inner;
    const said = () => ({
      ...(slots.length === 0 ? {} : { o: slots }),
      ...(settled.length === 0 ? {} : { e: settled }),
    });
    try {
      const v = await current.run(inner, async () => fn());
      const text = JSON.stringify({
        v,
        ...(writes.length === 0 ? {} : { s: writes }),
        ...said(),
      } satisfies StepRecord);
      refuseTooLarge(`the result of step "${name}"`, text);
      this.#store.record(path, text);
      // A step around this one records what its inner steps wrote, too.
      frame?.writes.push(...writes);
      // As its record gives it: a date is a text from the first run on.
      return (JSON.parse(text) as StepRecord).v as T;
    } catch (error) {
      this.#state.drop(writes);
      if (this.#store.fail !== undefined) this.#store.fail(path, error, said());
      // Nothing was recorded: the next try has the same name, on a replay, too.
      else if (used.get(name) === count) used.set(name, count - 1);
      throw error;
    } finally {
      frame?.slots.push(...slots);
      frame?.settled.push(...settled);
    }
  }

  #frame(): StepFrame | undefined {
    const frame = current.getStore();
    return frame?.owner === this ? frame : undefined;
  }
}
