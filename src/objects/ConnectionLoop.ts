/**
 * Work of a connection that goes on by itself, one run at a time. Local workerd drops work that nobody
 * waits for without an error, so a run that has not moved for a while counts as gone.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";

/** A run without a sign of life for this long is gone, in ms. Longer than any wait inside a run. */
const GONE_MS = 60_000;

/** Says that the run is alive, and learns whether it still is the one. */
export type Alive = () => boolean;

/** A loop that can be kicked at any time. */
export class ConnectionLoop {
  readonly #host: Host;
  readonly #run: (alive: Alive) => Promise<void>;
  #current = 0;
  #running = false;
  #movedAt = 0;

  constructor(host: Host, run: (alive: Alive) => Promise<void>) {
    this.#host = host;
    this.#run = run;
  }

  /** Whether a run is under way. */
  get running(): boolean {
    return this.#running && this.#host.clock.now() - this.#movedAt < GONE_MS;
  }

  /** Starts a run unless one is under way. */
  kick(): void {
    if (!this.running) this.#start();
  }

  /** Ends the run that is under way: whatever it still does finds itself replaced. */
  stop(): void {
    this.#current += 1;
    this.#running = false;
  }

  #start(): void {
    this.#current += 1;
    this.#running = true;
    this.#movedAt = this.#host.clock.now();
    const mine = this.#current;
    const alive = () => {
      if (mine !== this.#current) return false;
      this.#movedAt = this.#host.clock.now();
      return true;
    };
    const work = this.#run(alive).finally(() => {
      if (mine === this.#current) this.#running = false;
    });
    this.#host.keepAlive(work);
  }
}
