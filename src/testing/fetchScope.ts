/**
 * The bot's own `fetch` under test: what a handler fetches goes to the test that runs it, and nowhere
 * else. Code outside a bot under test keeps the real one.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";

type Answer = (request: Request) => Promise<Response>;

const scope = new AsyncLocalStorage<Answer>();
let installed = false;

/** Routes the global `fetch` by scope, once per process. */
function install(): void {
  if (installed) return;
  installed = true;
  const real = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const answer = scope.getStore();
    return answer === undefined ? real(input, init) : answer(new Request(input, init));
  };
}

/** Runs the bot's code with its `fetch` answered by `answer`. */
export function withFetch<T>(answer: Answer, run: () => T): T {
  install();
  return scope.run(answer, run);
}

/** What answers where a test gave nothing: an error with the URL. */
export function refuseFetch(request: Request): Promise<Response> {
  return Promise.reject(
    new Error(`unmocked fetch of ${request.method} ${request.url}; give testBot a \`fetch\``),
  );
}
