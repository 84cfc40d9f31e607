/**
 * How one execution ends: at a wait, by the function's own end, or by a disk that refuses; and never before all
 * that the function began has come to rest.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";
import { isRefusal } from "../journal/refusal.ts";
import { sleep } from "../time/Clock.ts";
import { CodeChanged } from "./records.ts";
import type { Ending, Waits } from "./Waits.ts";

/** One execution. */
export class Execution {
  /** Ends it, unless it has ended. */
  suspend: (ending: Ending) => void = () => {};
  /** The disk refused a write: whatever the function makes of it, its turn runs again. */
  refusal: { error: unknown } | undefined;
  readonly #host: Host;
  /** Calls of the run that are on their way. */
  readonly #busy = new Set<Promise<unknown>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Waits for a call before the execution ends. */
  track<T>(work: Promise<T>): Promise<T> {
    const tracked = work.catch(() => undefined).finally(() => this.#busy.delete(tracked));
    this.#busy.add(tracked);
    return work;
  }

  /** Whether an error is the function's to see again. A disk that refuses ends this execution, whoever catches it. */
  isOwn(error: unknown): boolean {
    if (isRefusal(error)) {
      this.refusal ??= { error };
      this.suspend({ end: "failed", error });
    }
    return this.refusal === undefined && !(error instanceof CodeChanged);
  }

  /** Executes a function, until nothing that it began is on its way. */
  async run(fn: () => unknown, waits: Waits): Promise<Ending> {
    const suspended = new Promise<Ending>((resolve) => {
      this.suspend = resolve;
    });
    let over: Ending | undefined;
    let ended = false;
    const end = async (): Promise<Ending> => {
      try {
        const result = await fn();
        return waits.tooEarly() ?? { end: "done", result };
      } catch (error) {
        this.#host.rethrowIfHalted(error);
        return { end: "failed", error };
      }
    };
    const running = end().then((ending) => {
      over = ending;
      if (ended) this.#host.log.error("a flow went on without the wait at which it is");
      return ending;
    });
    const ending = await Promise.race([suspended, running]);
    await this.#rest();
    ended = ending.end === "waits";
    // It may have come after the wait at which the run stopped, and been caught.
    if (this.refusal !== undefined) return { end: "failed", ...this.refusal };
    if (ending.end === "changed" || ending.end === "failed") return ending;
    // The run cannot be at a wait from which its function went on without an answer.
    const left = waits.open ? (over as Ending | undefined) : undefined;
    if (left?.end === "failed") return left;
    const error = waits.misuse ?? (left && waits.left());
    return error === undefined ? ending : { end: "failed", error };
  }

  /** Resolves once nothing that the run began is still on its way. */
  async #rest(): Promise<void> {
    do {
      await Promise.allSettled(this.#busy);
      // What follows a call, however many awaits later, may begin the next one, or end the function.
      await sleep(this.#host.clock, 0);
    } while (this.#busy.size > 0);
  }
}
