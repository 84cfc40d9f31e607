/**
 * How fast one chat is written to, so that a platform's limit is kept instead of run into. In memory: a
 * fresh life begins with a clean window, and the platform's 429 is the last word.
 *
 * @module
 */
import type { Pace } from "../channels/channel.ts";

/** How long a pace is kept that counts after a 429 only, in ms. */
const LIMITED_MS = 60_000;

/** The pace of one chat: at most `burst` calls in any `burst × perMs`. */
export class Pacer {
  readonly #pace: Pace;
  /** Times of the last calls, oldest first; at most `burst`. */
  readonly #calls: number[] = [];
  #limitedUntil = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** When the next call may go: epoch milliseconds, not after `now` where it may go at once. */
  nextAt(now: number): number {
    const { burst, perMs, afterLimit } = this.#pace;
    if (afterLimit === true && now >= this.#limitedUntil) return now;
    const oldest = this.#calls.length < burst ? undefined : this.#calls[0];
    return Math.max(now, oldest === undefined ? now : oldest + burst * perMs);
  }

  /** One call goes. */
  take(now: number): void {
    this.#calls.push(now);
    if (this.#calls.length > this.#pace.burst) this.#calls.shift();
  }

  /** The platform said that this chat was written to too fast. */
  limited(now: number): void {
    this.#limitedUntil = now + LIMITED_MS;
  }
}
