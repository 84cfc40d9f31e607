/** The Durable Object around one connection. @module */
import { DurableObject } from "cloudflare:workers";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { ConnectionBook } from "./ConnectionBook.ts";
import { DurableHost, type Reach } from "./DurableHost.ts";

/** Makes the class for a bot. */
export function defineConnection(bot: BotRuntime, reach: Reach) {
  return class Connection extends DurableObject<Record<string, unknown>> {
    readonly #book: ConnectionBook;

    constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
      super(ctx, env);
      const name = ctx.id.name ?? ctx.id.toString();
      this.#book = new ConnectionBook(new DurableHost(ctx, env, reach, name), bot, name);
    }

    async call(method: string, payload: string): Promise<string> {
      return this.#book.call(method, payload);
    }

    override async alarm(): Promise<void> {
      await this.#book.alarm();
    }
  };
}
