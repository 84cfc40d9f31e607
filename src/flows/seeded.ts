/**
 * Randomness of a run that is the same each time it is executed: from its secret seed and a counter.
 *
 * @module
 */
import { createHmac } from "node:crypto";

/** Random values of one execution. */
export class Seeded {
  readonly #seed: string;
  /** The step that runs now: what is drawn in one is not drawn again when it is answered from its record. */
  readonly #place: () => string;
  readonly #counts = new Map<string, number>();

  constructor(seed: string, place: () => string) {
    this.#seed = seed;
    this.#place = place;
  }

  /** From 0 (inclusive) to 1. */
  random(): number {
    const bytes = this.#next();
    // 53 bits, as many as a number holds.
    return (bytes.readUInt32BE(0) * 2 ** 21 + (bytes.readUInt32BE(4) >>> 11)) / 2 ** 53;
  }

  /** A random UUID, version 4. */
  uuid(): string {
    const bytes = this.#next().subarray(0, 16);
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    const hex = bytes.toString("hex");
    return [8, 12, 16, 20, 32].map((end, at, ends) => hex.slice(ends[at - 1] ?? 0, end)).join("-");
  }

  #next(): Buffer {
    const place = this.#place();
    const count = (this.#counts.get(place) ?? 0) + 1;
    this.#counts.set(place, count);
    return createHmac("sha256", this.#seed).update(`random ${place} ${count}`).digest();
  }
}
