/**
 * How fast one chat is written to: a token bucket, so that a platform's limit is kept instead of run
 * into. In memory: a fresh life begins with a full bucket, and the platform's 429 is the last word.
 *
 * @module
 */
import type { Pace } from "../channels/channel.ts";

/** The pace of one chat. */
export class Pacer {
  readonly #pace: Pace;
  #tokens: number;
  #at: number;

  constructor(pace: Pace, now: number) {
    this.#pace = pace;
    this.#tokens = pace.burst;
    this.#at = now;
  }

  /** When the next call may go: epoch milliseconds, not after `now` where it may go at once. */
  nextAt(now: number): number {
    this.#fill(now);
    return this.#tokens >= 1 ? now : this.#at + this.#pace.perMs;
  }

  /** One call goes. */
  take(now: number): void {
    this.#fill(now);
    this.#tokens = Math.max(0, this.#tokens - 1);
  }

  #fill(now: number): void {
    const gained = Math.floor((now - this.#at) / this.#pace.perMs);
    if (this.#tokens >= this.#pace.burst || gained < 0) this.#at = now;
    if (gained <= 0) return;
    this.#tokens = Math.min(this.#pace.burst, this.#tokens + gained);
    this.#at = this.#tokens >= this.#pace.burst ? now : this.#at + gained * this.#pace.perMs;
  }
}
