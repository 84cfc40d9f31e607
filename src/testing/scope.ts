/**
 * What the bot's code has to itself under test: its own `fetch` goes to the test that runs it, and nowhere
 * else, and simulations that it uses live in the test's time. Code outside a bot under test keeps the real
 * ones.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Clock, wallClock } from "../time/Clock.ts";

/** The surroundings of a bot under test. */
export interface TestScope {
  answer: (request: Request) => Promise<Response>;
  clock: Clock;
}

const scope = new AsyncLocalStorage<TestScope>();
let installed = false;

/** Routes the global `fetch` by scope, once per process. */
function install(): void {
  if (installed) return;
  installed = true;
  const real = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const here = scope.getStore();
    return here === undefined ? real(input, init) : here.answer(new Request(input, init));
  };
}

/** Runs the bot's code in its test. */
export function within<T>(here: TestScope, run: () => T): T {
  install();
  return scope.run(here, run);
}

/** The clock of the test whose bot runs now; the wall clock outside one. */
export function scopedClock(): Clock {
  return scope.getStore()?.clock ?? wallClock;
}

/** What answers where a test gave nothing: an error with the URL. */
export function refuseFetch(request: Request): Promise<Response> {
  return Promise.reject(
    new Error(`unmocked fetch of ${request.method} ${request.url}; give testBot a \`fetch\``),
  );
}
