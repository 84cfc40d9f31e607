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
  readonly written: RunMemory["written"];
  readonly read: RunMemory["read"];
  readonly #known: RunMemory["written"];
  readonly #fresh = new Map<string, StateWrite>();
  readonly #counts = new Map<string, number>();

  constructor({ written, read }: Pick<RunMemory, "written" | "read">) {
    this.#known = written;
    this.written = { ...written };
    this.read = { ...read };
  }

  /** What was written for the first time in this execution. */
  get writes(): Iterable<StateWrite> {
    return this.#fresh.values();
  }

  /** A key was written, by the function or by a recorded step. */
  noteWrite(write: StateWrite): void {
    const { key } = write;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    if (count > (this.#known[key] ?? 0)) this.#fresh.set(key, write);
    this.written[key] = Math.max(count, this.#known[key] ?? 0);
  }

  /** A key as the run first saw it. */
  pinned(key: string, now: () => string | undefined): string | undefined {
    const known = this.read[key];
    const value = known === undefined ? (now() ?? null) : known;
    this.read[key] = value;
    return value ?? undefined;
  }
}
