/**
 * `ctx.state` and `ctx.user` of one run: reads go through to the journal, writes wait for the settle.
 *
 * @module
 */
import type { Json } from "../channels/content.ts";
import type { StateWrite } from "../journal/SideTables.ts";
import type { LooseState } from "./Context.ts";
import { refuseTooLarge } from "./tooLarge.ts";

/** Reads a committed value as JSON text. */
export type ReadState = (scope: string, key: string) => string | undefined;

/** The state of one run. */
export class TurnState {
  readonly #read: ReadState;
  /** What was written to each key: by the turn itself, and on top of it by steps that may yet fail. */
  readonly #writes = new Map<string, StateWrite[]>();
  /** Collects the writes of the step that is running, so that they are recorded with it. */
  readonly #recorder: () => StateWrite[] | undefined;
  readonly #onPut: ((write: StateWrite, by: 1 | -1) => void) | undefined;

  /** @param onPut told of each write, a recorded step's too, and with -1 of each that is taken back */
  constructor(
    read: ReadState,
    recorder: () => StateWrite[] | undefined,
    onPut?: (write: StateWrite, by: 1 | -1) => void,
  ) {
    this.#read = read;
    this.#recorder = recorder;
    this.#onPut = onPut;
  }

  /** What the settle has to write. */
  writes(): StateWrite[] {
    return [...this.#writes.values()].flatMap((writes) => writes.slice(-1));
  }

  /** Applies a recorded step's writes again. */
  apply(writes: readonly StateWrite[]): void {
    for (const write of writes) this.#put(write);
  }

  /** Takes back what a step wrote that failed: its record will not have it. */
  drop(writes: readonly StateWrite[]): void {
    for (const write of writes) {
      const key = keyOf(write);
      this.#writes.set(key, this.#writes.get(key)?.filter((one) => one !== write) ?? []);
      this.#onPut?.(write, -1);
    }
  }

  /** The view of one scope: empty for the chat, `u:<id>` for a sender. */
  scope(scope: string): LooseState {
    const get = <T>(key: string): T | undefined => {
      const written = this.#writes.get(keyOf({ scope, key }))?.at(-1);
      const text = written === undefined ? this.#read(scope, key) : written.value;
      return text === undefined ? undefined : (JSON.parse(text) as T);
    };
    const set = (key: string, value: unknown): void => {
      const text = JSON.stringify(value) as string | undefined;
      if (text === undefined)
        throw new TypeError(
          `state "${key}" must be JSON, not ${typeof value}; use delete() to remove it`,
        );
      refuseTooLarge(`state "${key}"`, text);
      this.#put({ scope, key, value: text });
    };
    return {
      get: <T = Json>(key: string) => get<T>(key),
      set,
      update: <T = Json>(key: string, change: (value: T | undefined) => T) => {
        const next = change(get<T>(key));
        set(key, next);
        return next;
      },
      delete: (key) => this.#put({ scope, key, value: undefined }),
    };
  }

  #put(write: StateWrite): void {
    const recorder = this.#recorder();
    const key = keyOf(write);
    // Nobody takes back what the turn itself writes.
    this.#writes.set(
      key,
      recorder === undefined ? [write] : [...(this.#writes.get(key) ?? []), write],
    );
    this.#onPut?.(write, 1);
    recorder?.push(write);
  }
}

function keyOf({ scope, key }: Pick<StateWrite, "scope" | "key">): string {
  return `${scope}\n${key}`;
}
