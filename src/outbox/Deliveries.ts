/**
 * Who waits for which send. A waiter is only memory: the row is the obligation, and a replay waits anew.
 *
 * @module
 */

import { isOpen, type OutboxRow } from "../journal/records.ts";
import type { CancelTimer, Clock } from "../time/Clock.ts";

/** How a whole send (all parts of an intent) stands for those who wait. */
export type Outcome =
  | { status: "sent" | "unknown" | "suppressed" | "dead"; rows: OutboxRow[] }
  | { status: "deferred"; rows: [] };

/** The outcome of an intent's parts; `undefined` while one of them is open. */
export function outcomeOf(rows: OutboxRow[]): Outcome | undefined {
  if (rows.some((row) => row.state === "dead")) return { status: "dead", rows };
  if (rows.some(isOpen)) return undefined;
  if (rows.some((row) => row.state === "unknown")) return { status: "unknown", rows };
  if (rows.every((row) => row.state === "suppressed")) return { status: "suppressed", rows };
  return { status: "sent", rows };
}

interface Waiting {
  promise: Promise<Outcome>;
  resolve: (outcome: Outcome) => void;
  deadline: number;
  cancel: CancelTimer;
}

/** Names an intent in memory. */
export function intentOf(row: Pick<OutboxRow, "turn" | "slot">): string {
  return `${row.turn}/${row.slot}`;
}

/** The inline waiters of one actor. */
export class Deliveries {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Waiting>();
  readonly #onDefer: () => void;

  /** @param onDefer called when a budget ran out: the lane may go on without that row */
  constructor(clock: Clock, onDefer: () => void) {
    this.#clock = clock;
    this.#onDefer = onDefer;
  }

  /** Waits for an intent until `deadline`; joins whoever waits already. */
  wait(intent: string, deadline: number): Promise<Outcome> {
    const joined = this.#waiting.get(intent);
    if (joined !== undefined) return joined.promise;
    let resolve: (outcome: Outcome) => void = () => undefined;
    const promise = new Promise<Outcome>((done) => {
      resolve = done;
    });
    const cancel = this.#clock.setTimer(deadline - this.#clock.now(), () => this.defer(intent));
    this.#waiting.set(intent, { promise, resolve, deadline, cancel });
    return promise;
  }

  /** When the waiter of an intent gives up; `undefined` when nobody waits. */
  deadlineOf(intent: string): number | undefined {
    return this.#waiting.get(intent)?.deadline;
  }

  /** Tells the waiter that the background goes on. */
  defer(intent: string): void {
    this.#end(intent, { status: "deferred", rows: [] });
    this.#onDefer();
  }

  /** Tells the waiter how it ended. */
  settle(intent: string, outcome: Outcome): void {
    this.#end(intent, outcome);
  }

  #end(intent: string, outcome: Outcome): void {
    const waiting = this.#waiting.get(intent);
    if (waiting === undefined) return;
    this.#waiting.delete(intent);
    waiting.cancel();
    waiting.resolve(outcome);
  }
}
