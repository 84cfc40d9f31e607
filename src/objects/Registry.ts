/** The Durable Object around one shard of the Registry. @module */
import { DurableObject } from "cloudflare:workers";
import { DurableHost, type Reach } from "./DurableHost.ts";
import { RegistryBook } from "./RegistryBook.ts";

/** Makes the class. */
export function defineRegistry(reach: Reach) {
  return class Registry extends DurableObject<Record<string, unknown>> {
    readonly #book: RegistryBook;

    constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
      super(ctx, env);
      this.#book = new RegistryBook(
        new DurableHost(ctx, env, reach, ctx.id.name ?? ctx.id.toString()),
      );
    }

    async call(method: string, payload: string): Promise<string> {
      return this.#book.call(method, payload);
    }

    override async alarm(): Promise<void> {
      await this.#book.alarm();
    }
  };
}
