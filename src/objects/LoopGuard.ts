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
    if (now < this.#pausedUntil) return { at: this.#pausedUntil, fresh: false };
    while ((this.#begun[0] ?? now) <= now - WINDOW_MS) this.#begun.shift();
    if (this.#begun.length >= this.#limit) {
      this.#pausedUntil = now + WINDOW_MS;
      this.#begun.length = 0;
      return { at: this.#pausedUntil, fresh: true };
    }
    this.#begun.push(now);
    return { at: now, fresh: false };
  }
}
