/**
 * Two bots that answer each other would go on for ever: turns for bots' messages are counted, and past
 * the limit such messages rest while people's go on. Counted in memory: a loop keeps its actor alive.
 *
 * @module
 */
const WINDOW_MS = 60_000;

/** Counts the turns of one chat that other bots caused. */
export class LoopGuard {
  readonly #limit: number;
  readonly #begun: number[] = [];
  #pausedUntil = 0;

  /** @param limit turns a minute */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Asks for one more turn. Returns when it may begin: now, or epoch ms of the pause's end; `fresh`
   * when the pause begins with this very question.
   */
  ask(now: number): { at: number; fresh: boolean } {
    if (this.room(now) > 0) {
      this.#begun.push(now);
      return { at: now, fresh: false };
    }
    const fresh = now >= this.#pausedUntil;
    if (fresh) this.#pausedUntil = now + WINDOW_MS;
    return { at: this.#pausedUntil, fresh };
  }

  /** How many more turns may begin now. */
  room(now: number): number {
    if (now < this.#pausedUntil) return 0;
    while ((this.#begun[0] ?? now) <= now - WINDOW_MS) this.#begun.shift();
    return this.#limit - this.#begun.length;
  }

  /** When the next turn may begin: epoch milliseconds. */
  roomAt(now: number): number {
    if (now < this.#pausedUntil) return this.#pausedUntil;
    return this.room(now) > 0 ? now : (this.#begun[0] ?? now) + WINDOW_MS;
  }
}
