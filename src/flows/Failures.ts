/**
 * Steps and sends of a run that failed. The function may have caught the error and gone on, so it fails in
 * the same way when it runs again.
 *
 * @module
 */
import { errorFrom, type WireError, wireError } from "../channels/wireError.ts";
import type { StepRecord } from "../turns/Steps.ts";
import type { RunMemory } from "./records.ts";

/** The failures of one execution. */
export class Failures {
  /** Records of steps that failed, by path: written before the function does anything else. */
  readonly steps = new Map<string, string>();
  /** Sends without a record, for the next execution. */
  readonly unsent: RunMemory["unsent"];
  readonly #known: RunMemory["unsent"];
  /** The slot of the send that is being made, where it has no record. */
  #slot: string | undefined;
  /** All slots of the batch that is being made. */
  #slots: string[] = [];
  readonly #clean: (text: string) => string;

  /** @param clean takes secrets out: errors are kept in rows */
  constructor(known: RunMemory["unsent"], clean: (text: string) => string) {
    this.#known = known;
    this.#clean = clean;
    this.unsent = { ...known };
  }

  /** A step failed, and its error is the function's to see again. */
  step(path: string, error: unknown, rest: StepRecord): void {
    this.steps.set(path, JSON.stringify({ ...rest, x: this.#wire(error) } satisfies StepRecord));
  }

  /** A send without a record is called. @throws what it threw before */
  callSend(slot: string): void {
    this.#slot ??= slot;
    this.#slots.push(slot);
    const before = this.#known[slot];
    if (before !== undefined) throw errorFrom(before);
  }

  /** Makes a send; `make` calls {@link callSend} before its first await, if the send has no record. */
  send<T>(make: () => Promise<T>, counts: (error: unknown, slot: string) => boolean): Promise<T> {
    const outer = this.#slot;
    this.#slot = undefined;
    const work = make();
    const slot = this.#slot as string | undefined;
    this.#slot = outer;
    if (slot === undefined) return work;
    return work.catch((error: unknown) => {
      if (counts(error, slot)) this.unsent[slot] = this.#wire(error);
      throw error;
    });
  }

  /** Makes a batch, which throws for none of its sends: those without a record were refused. */
  async batch<T>(make: () => Promise<T>, refused: (slot: string) => boolean): Promise<T> {
    this.#slots = [];
    const work = make();
    const slots = this.#slots;
    const result = await work;
    for (const slot of slots.filter(refused))
      this.unsent[slot] = { name: "Error", message: "this part of a batch was refused" };
    return result;
  }

  #wire(error: unknown): WireError {
    const wire = wireError(error);
    return { ...wire, message: this.#clean(wire.message) };
  }
}
