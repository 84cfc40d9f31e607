/**
 * What an actor knows of its open records without asking the disk: their numbers, and what each does.
 *
 * @module
 */
import type { InboxRow } from "./records.ts";

/** In a row's `open`: over and told; in the queue, or with somebody still to tell; resting. */
export const OPEN = {
  no: 0,
  yes: 1,
  /** Waits for a time of its own, and others pass it. */
  resting: 2,
  /** Another bot's message that rests while `loopGuard` pauses such turns. */
  guarded: 3,
} as const;

/** How a record is open. `tells`: it is over, and its listeners have still to be told. */
type How = "waits" | "rests" | "tells";

/** Numbers of open records and how many of them wait or rest. */
export class OpenRecords {
  readonly #how = new Map<number, How>();
  /** Events that wait or run. */
  waiting = 0;
  /** Events that rest. */
  resting = 0;

  /** Open records that are not at rest. */
  get active(): number {
    return this.#how.size - this.resting;
  }

  has(seq: number): boolean {
    return this.#how.has(seq);
  }

  /** A record is open, as its row says. */
  set(seq: number, row: Pick<InboxRow, "state" | "open">): void {
    this.delete(seq);
    const how = howOf(row);
    this.#how.set(seq, how);
    if (how === "waits") this.waiting += 1;
    if (how === "rests") this.resting += 1;
  }

  /** A record is open no more. */
  delete(seq: number): void {
    const how = this.#how.get(seq);
    if (how === "waits") this.waiting -= 1;
    if (how === "rests") this.resting -= 1;
    this.#how.delete(seq);
  }
}

function howOf({ state, open }: Pick<InboxRow, "state" | "open">): How {
  if (state !== "pending" && state !== "processing") return "tells";
  return open >= OPEN.resting ? "rests" : "waits";
}
