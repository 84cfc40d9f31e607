/**
 * Steps and sends of a run that failed before there was a record of them. The function may have caught the
 * error and gone on, so it fails in the same way when it runs again.
 *
 * @module
 */
import { type WireError, wireError } from "../objects/Operations.ts";
import { errorFrom } from "../turns/actorCalls.ts";
import type { RunMemory } from "./records.ts";

/** The failures of one execution. */
export class Failures {
  /** What is kept for the next execution. */
  readonly failed: RunMemory["failed"];
  readonly unsent: RunMemory["unsent"];
  readonly #known: Pick<RunMemory, "failed" | "unsent">;
  /** How often each step was called that has no record, by path. */
  readonly #tries = new Map<string, number>();
  /** What the call that is being made has no record of: a step's path, a send's slot. */
  #path: string | undefined;
  #slot: string | undefined;
  /** All slots of the batch that is being made. */
  #slots: string[] = [];

  readonly #clean: (text: string) => string;

  /** @param clean takes secrets out: errors are kept in rows */
  constructor(known: Pick<RunMemory, "failed" | "unsent">, clean: (text: string) => string) {
    this.#known = known;
    this.#clean = clean;
    this.failed = { ...known.failed };
    this.unsent = { ...known.unsent };
  }

  /** Whether a step that is on record by now failed first: that comes first again. */
  cameFirst(path: string): boolean {
    return (this.#tries.get(path) ?? 0) < (this.#known.failed[path]?.length ?? 0);
  }

  /** A step without a record is called. @throws what it threw at this try before */
  callStep(path: string): void {
    this.#path ??= path;
    const tries = (this.#tries.get(path) ?? 0) + 1;
    this.#tries.set(path, tries);
    const before = this.#known.failed[path]?.[tries - 1];
    if (before !== undefined) throw new Repeated(errorFrom(before));
  }

  /** A send without a record is called. @throws what it threw before */
  callSend(slot: string): void {
    this.#slot ??= slot;
    this.#slots.push(slot);
    const before = this.#known.unsent[slot];
    if (before !== undefined) throw errorFrom(before);
  }

  /** Makes a step; `make` calls {@link callStep} before its first await, if the step has no record. */
  step<T>(make: () => Promise<T>, counts: (error: unknown) => boolean): Promise<T> {
    // A step inside this one is made before this call returns.
    const outer = this.#path;
    this.#path = undefined;
    const work = make();
    const path = this.#path as string | undefined;
    this.#path = outer;
    return work.catch((error: unknown) => {
      if (error instanceof Repeated) throw error.error;
      if (counts(error) && path !== undefined)
        this.failed[path] = [...(this.failed[path] ?? []), this.#wire(error)];
      throw error;
    });
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

  #wire(error: unknown): WireError {
    const wire = wireError(error);
    return { ...wire, message: this.#clean(wire.message) };
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
}

/** An error of an earlier execution, which is no error of this one. */
class Repeated extends Error {
  readonly error: Error;

  constructor(error: Error) {
    super(error.message);
    this.error = error;
  }
}
