/** The Durable Object around one connection. @module */
import { DurableObject } from "cloudflare:workers";
import { ConnectionBook } from "./ConnectionBook.ts";
import { DurableHost, type Reach } from "./DurableHost.ts";

/** Makes the class. */
export function defineConnection(reach: Reach) {
  return class Connection extends DurableObject<Record<string, unknown>> {
    readonly #book: ConnectionBook;

    constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
      super(ctx, env);
      this.#book = new ConnectionBook(
        new DurableHost(ctx, env, reach, ctx.id.name ?? ctx.id.toString()),
      );
    }

    async call(method: string, payload: string): Promise<string> {
      return this.#book.call(method, payload);
    }
  };
}
