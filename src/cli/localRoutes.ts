/** Asks the routes that a Worker has on a developer's machine only. @module */
import { localVariables } from "./secrets.ts";

/** Asks the Worker; resolves to nothing where it refused. May throw. */
export type Ask = (method: "GET" | "POST", path: string) => Promise<unknown>;

const ANSWER_MS = 5_000;

/**
 * The routes of one running Worker.
 *
 * @param origin such as `http://127.0.0.1:8787`
 * @param secrets the file of the local secrets, read for each question
 */
export function localRoutes(root: string, secrets: string, origin: string): Ask {
  return async (method, path) => {
    const token = localVariables(root, secrets).HOLDFAST_ADMIN_TOKEN ?? "";
    const response = await fetch(`${origin}/_local/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return response.ok ? response.json() : undefined;
  };
}
