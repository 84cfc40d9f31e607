/**
 * The chat's state as a run sees it: a key is read once, and what the run writes is committed once, however
 * often its function is executed.
 *
 * @module
 */
import type { StateWrite } from "../journal/SideTables.ts";
import type { RunMemory } from "./records.ts";

/** The state of one execution. */
export class RunState {
  /** What is kept for the next execution. */
  readonly read: RunMemory["read"];
  readonly #known: RunMemory["written"];
  readonly #counts: Record<string, number> = {};

  constructor({ written, read }: Pick<RunMemory, "written" | "read">) {
    this.#known = written;
    this.read = { ...read };
  }

  /** How often each key was written by now, for the next execution. */
  get written(): RunMemory["written"] {
    return { ...this.#known, ...this.#counts };
  }

  /** Of what the function wrote, what it wrote for the first time in this execution. */
  fresh(writes: readonly StateWrite[]): StateWrite[] {
    return writes.filter(({ key }) => (this.#counts[key] ?? 0) > (this.#known[key] ?? 0));
  }

  /** A key was written, by the function or by a recorded step; `by` is -1 for what is taken back. */
  noteWrite({ key }: StateWrite, by: 1 | -1): void {
    this.#counts[key] = (this.#counts[key] ?? 0) + by;
  }

  /** A key as the run first saw it. */
  pinned(key: string, now: () => string | undefined): string | undefined {
    const known = this.read[key];
    const value = known === undefined ? (now() ?? null) : known;
    this.read[key] = value;
    return value ?? undefined;
  }
}
