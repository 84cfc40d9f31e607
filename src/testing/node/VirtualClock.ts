/**
 * Time that moves only when a test moves it. Timers fire in order of time, then of creation.
 *
 * @module
 */
import type { CancelTimer, Clock } from "../../time/Clock.ts";

interface Timer {
  at: number;
  order: number;
  fn: () => void;
}

/** Lets everything that is ready run: promise callbacks to the last, then returns. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A virtual clock. */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  /** A binary heap: thousands of simulated seconds pop millions of timers. */
  readonly #heap: Timer[] = [];
  readonly #cancelled = new Set<Timer>();

  /** @param now where time begins: epoch milliseconds */
  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  setTimer(ms: number, fn: () => void): CancelTimer {
    this.#order += 1;
    const timer = { at: this.#now + Math.max(0, Math.ceil(ms)), order: this.#order, fn };
    this.#push(timer);
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.#cancelled.add(timer);
    };
  }

  /** When the next timer fires; `undefined` when there is none. */
  nextAt(): number | undefined {
    this.#dropCancelled();
    return this.#heap[0]?.at;
  }

  /** Moves to the next timer and fires it. Returns whether there was one by `until`. */
  step(until: number): boolean {
    const at = this.nextAt();
    if (at === undefined || at > until) return false;
    const timer = this.#pop();
    if (timer === undefined) return false;
    this.#now = Math.max(this.#now, timer.at);
    timer.fn();
    return true;
  }

  /** Moves time by `ms`, firing what comes due on the way and letting its effects run. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    while (this.step(until)) await settle();
    this.#now = until;
    await settle();
  }

  #dropCancelled(): void {
    while (this.#heap[0] !== undefined && this.#cancelled.delete(this.#heap[0])) this.#pop();
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !before(timer, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): Timer | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      let timer = last;
      const l = heap[left];
      if (l !== undefined && before(l, timer)) {
        least = left;
        timer = l;
      }
      const r = heap[right];
      if (r !== undefined && before(r, timer)) {
        least = right;
        timer = r;
      }
      heap[at] = timer;
      if (least === at) break;
      at = least;
    }
    heap[at] = last;
    return first;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
