/**
 * Time, injected. The engine never calls `Date.now` or `setTimeout`: under the Node host the clock
 * is virtual, which is what lets a test play thirty days in a millisecond.
 *
 * @module
 */

/** Cancels a timer; calling it twice or after the timer fired does nothing. */
export type CancelTimer = () => void;

/** A source of time in epoch milliseconds. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Calls `fn` once after `ms` milliseconds (never before), unless cancelled. */
  setTimer(ms: number, fn: () => void): CancelTimer;
}

/** Resolves after `ms` milliseconds of `clock`. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(ms, resolve);
  });
}

/** What {@link withDeadline} resolves to when time ran out first. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

/**
 * Races `work` against `ms` milliseconds. The loser is left alone: a promise that never settles costs
 * nothing once nobody refers to it, and a late result must not be mistaken for one in time.
 */
export function withDeadline<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
): Promise<T | typeof TIMED_OUT> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(ms, () => resolve(TIMED_OUT));
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

/** The wall clock, for the Durable Object host and the command line. */
export const wallClock: Clock = {
  now: () => Date.now(),
  setTimer(ms, fn) {
    const id = setTimeout(fn, Math.max(0, ms));
    return () => clearTimeout(id);
  },
};
