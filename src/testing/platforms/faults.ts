/**
 * Faults of a simulated platform: what a real one does on a bad day, on demand.
 *
 * @module
 */

/** What goes wrong with one call. */
export type FaultEffect =
  /** The platform says no. */
  | {
      type: "refuse";
      status: number;
      description: string;
      parameters?: Record<string, unknown>;
    }
  /** The platform says "later", in seconds. */
  | { type: "rateLimit"; retryAfter: number }
  /** An error of the platform's own; with `accepted` it did its work first. */
  | { type: "5xx"; status?: number; description?: string; accepted?: boolean }
  /** No answer until the caller gives up; with `accepted` the work is done first. */
  | { type: "hang"; accepted?: boolean }
  /** The connection dies before the platform saw the call. */
  | { type: "drop" }
  /** The platform did it, and the connection dies before the answer. */
  | { type: "acceptThenDrop" }
  /** The platform did it, and half of the answer arrives. */
  | { type: "torn" };

/** A fault, and the calls that it hits. */
export type FaultSpec<Call> = FaultEffect & {
  /** Only calls of this method. Default: any. */
  method?: string;
  /** Only calls for which this holds. */
  when?: (call: Call) => boolean;
  /** How many calls it hits. Default 1. */
  times?: number;
};

/** Decides call by call. */
export type FaultPredicate<Call> = (call: Call) => FaultEffect | undefined;

/** The faults that are waiting for calls; the first that fits a call hits it. */
export class FaultQueue<Call extends { method: string }> {
  readonly #waiting = new Set<FaultPredicate<Call>>();

  /** Adds a fault. Returns a function that takes it away again. */
  add(fault: FaultSpec<Call> | FaultPredicate<Call>): () => void {
    const decide = typeof fault === "function" ? fault : this.#counted(fault);
    this.#waiting.add(decide);
    return () => this.#waiting.delete(decide);
  }

  /** Takes every fault away. */
  clear(): void {
    this.#waiting.clear();
  }

  /** The fault that hits this call, if any. */
  next(call: Call): FaultEffect | undefined {
    for (const decide of this.#waiting) {
      const effect = decide(call);
      if (effect !== undefined) return effect;
    }
    return undefined;
  }

  #counted(spec: FaultSpec<Call>): FaultPredicate<Call> {
    let left = spec.times ?? 1;
    const decide: FaultPredicate<Call> = (call) => {
      if (spec.method !== undefined && spec.method !== call.method) return undefined;
      if (spec.when !== undefined && !spec.when(call)) return undefined;
      left -= 1;
      if (left <= 0) this.#waiting.delete(decide);
      return spec;
    };
    return decide;
  }
}

/** A connection that died: what `fetch` throws, and what makes `listen` destroy the socket. */
export class ConnectionDropped extends TypeError {
  override name = "ConnectionDropped";
  constructor() {
    super("fetch failed: the connection was closed by the other side");
  }
}

const torn = new WeakSet<Response>();

/** Whether a response is to break off after its body, though more was announced. */
export function isTorn(response: Response): boolean {
  return torn.has(response);
}

/**
 * Runs a call under a fault.
 *
 * @param accept does the platform's work and answers it
 * @param refuse makes the platform's error answer
 */
export async function underFault(
  effect: FaultEffect | undefined,
  request: Request,
  accept: () => Promise<Response>,
  refuse: (status: number, description: string, parameters?: Record<string, unknown>) => Response,
): Promise<Response> {
  switch (effect?.type) {
    case undefined:
      return accept();
    case "refuse":
      return refuse(effect.status, effect.description, effect.parameters);
    case "rateLimit":
      return refuse(429, `Too Many Requests: retry after ${effect.retryAfter}`, {
        retry_after: effect.retryAfter,
      });
    case "5xx":
      if (effect.accepted) await accept();
      return refuse(effect.status ?? 502, effect.description ?? "Bad Gateway");
    case "hang":
      if (effect.accepted) await accept();
      return hang(request);
    case "drop":
      throw new ConnectionDropped();
    case "acceptThenDrop":
      await accept();
      throw new ConnectionDropped();
    case "torn": {
      const response = await accept();
      const text = await response.text();
      const half = new Response(text.slice(0, Math.floor(text.length / 2)), {
        status: response.status,
        headers: response.headers,
      });
      torn.add(half);
      return half;
    }
  }
}

// A Request that nothing holds may be collected, and its signal then follows the caller's no more.
const hanging = new Set<Request>();

/** Never resolves; rejects when the caller gives up. */
function hang(request: Request): Promise<never> {
  const { signal } = request;
  hanging.add(request);
  return new Promise((_, reject) => {
    const stop = () => {
      hanging.delete(request);
      reject(signal.reason);
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
