/**
 * The Durable Object around one chat: thin, so that everything that can be wrong is in the engine,
 * which tests run a thousand times a second without it.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { Chat } from "./Chat.ts";
import { DurableHost, type Reach } from "./DurableHost.ts";

/** What a `ChatActor` class looks like to the namespace that holds it. */
export interface ChatActorMethods {
  receive(payload: string): Promise<string>;
  call(method: string, payload: string): Promise<string>;
}

/** Makes the class for a bot. */
export function defineChatActor(bot: BotRuntime, reach: Reach) {
  return class ChatActor
    extends DurableObject<Record<string, unknown>>
    implements ChatActorMethods
  {
    readonly #host: DurableHost;
    readonly #chat: Chat;

    constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
      super(ctx, env);
      // Names of at most 1,024 bytes are always there, also in alarms; `chatActorName` sees to it.
      const name = ctx.id.name ?? ctx.id.toString();
      this.#host = new DurableHost(ctx, env, reach, name);
      this.#chat = new Chat(this.#host, bot, name);
    }

    async receive(payload: string): Promise<string> {
      return this.#chat.receive(payload);
    }

    async call(method: string, payload: string): Promise<string> {
      if (method === "crash" && this.env.HOLDFAST_LOCAL === "1") {
        this.#host.crash = JSON.parse(payload);
        // Sets the alarm anew: while a crash is ordered, the host keeps it near.
        return this.#chat.call("wake", "{}");
      }
      return this.#chat.call(method, payload);
    }

    override async alarm(): Promise<void> {
      await this.#chat.alarm();
    }
  };
}
