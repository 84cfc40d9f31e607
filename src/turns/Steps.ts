/**
 * `ctx.step`: a function whose result is recorded once. Sends inside are numbered per step, so that
 * parallel steps do not disturb each other's keys.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { StateWrite } from "../journal/SideTables.ts";
import { encodeKey } from "../outbox/keys.ts";
import type { SettledIntent } from "../outbox/TurnSends.ts";
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
}

interface StepRecord {
  v?: unknown;
  s?: StateWrite[];
  /** Slots of the sends that it made. */
  o?: string[];
  /** Sends that it held back for the settle. */
  e?: SettledIntent[];
}

/** The steps of one run. */
export class Steps {
  readonly #store: StepStore;
  readonly #applyState: (writes: readonly StateWrite[]) => void;
  readonly #adopt: (slots: readonly string[], settled: readonly SettledIntent[]) => void;
  readonly #used = new Map<string, number>();
  readonly #base: string;

  /**
   * @param adopt takes over the sends of a step that is answered from its record
   * @param base the scope of sends outside steps
   */
  constructor(
    store: StepStore,
    applyState: (writes: readonly StateWrite[]) => void,
    adopt: (slots: readonly string[], settled: readonly SettledIntent[]) => void,
    base = "",
  ) {
    this.#base = base;
    this.#store = store;
    this.#applyState = applyState;
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
    const known = this.#read(path, () => used.set(name, count - 1));
    if (known !== undefined) {
      const record = JSON.parse(known) as StepRecord;
      this.#adopt(record.o ?? [], record.e ?? []);
      frame?.slots.push(...(record.o ?? []));
      frame?.settled.push(...(record.e ?? []));
      if (record.s !== undefined) {
        this.#applyState(record.s);
        frame?.writes.push(...record.s);
      }
      return record.v as T;
    }
    const inner: StepFrame = {
      owner: this,
      path,
      writes: [],
      slots: [],
      settled: [],
      used: new Map(),
    };
    let value: T;
    try {
      value = await current.run(inner, async () => fn());
    } catch (error) {
      // Nothing was recorded: the next try has the same name, on a replay, too.
      if (used.get(name) === count) used.set(name, count - 1);
      throw error;
    }
    const text = JSON.stringify({
      ...(value === undefined ? {} : { v: value }),
      ...(inner.writes.length === 0 ? {} : { s: inner.writes }),
      ...(inner.slots.length === 0 ? {} : { o: inner.slots }),
      ...(inner.settled.length === 0 ? {} : { e: inner.settled }),
    } satisfies StepRecord);
    refuseTooLarge(`the result of step "${name}"`, text);
    this.#store.record(path, text);
    // A step around this one records what its inner steps wrote, too.
    frame?.writes.push(...inner.writes);
    frame?.slots.push(...inner.slots);
    frame?.settled.push(...inner.settled);
    return value;
  }

  /** Reads a record; where that is refused, the next try has the same name. */
  #read(path: string, refused: () => void): string | undefined {
    try {
      return this.#store.read(path);
    } catch (error) {
      refused();
      throw error;
    }
  }

  #frame(): StepFrame | undefined {
    const frame = current.getStore();
    return frame?.owner === this ? frame : undefined;
  }
}
