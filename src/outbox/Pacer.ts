/**
 * How fast one chat is written to, so that a platform's limit is kept instead of run into. In memory: a
 * fresh life begins with a clean window, and the platform's 429 is the last word.
 *
 * @module
 */
import type { Pace } from "../channels/channel.ts";

/** The pace of one chat: at most `burst` calls in any `burst × perMs`. */
export class Pacer {
  readonly #pace: Pace;
  /** Times of the last calls, oldest first; at most `burst`. */
  readonly #calls: number[] = [];

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** When the next call may go: epoch milliseconds, not after `now` where it may go at once. */
  nextAt(now: number): number {
    const { burst, perMs } = this.#pace;
    const oldest = this.#calls.length < burst ? undefined : this.#calls[0];
    return Math.max(now, oldest === undefined ? now : oldest + burst * perMs);
  }

  /** One call goes. */
  take(now: number): void {
    this.#calls.push(now);
    if (this.#calls.length > this.#pace.burst) this.#calls.shift();
  }
}
