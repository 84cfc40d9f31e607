/**
 * The public entry that needs the Workers runtime: `serve(bot)`.
 *
 * @module
 */
import { exports as workerExports } from "cloudflare:workers";
import { actorsFrom } from "./edge/actors.ts";
import { edgeOf } from "./edge/app.ts";
import { sweep } from "./edge/scheduled.ts";
import type { Actors } from "./host/Host.ts";
import { defineChatActor } from "./objects/ChatActor.ts";
import { defineConnection } from "./objects/Connection.ts";
import { consoleLog } from "./objects/DurableHost.ts";
import { defineRegistry } from "./objects/Registry.ts";
import { ActorClient } from "./turns/ActorClient.ts";
import type { Bot } from "./turns/Bot.ts";
import type { Client } from "./turns/Client.ts";

/** Options of {@link serve}. */
export interface ServeOptions<Env> {
  /** Your own routes: asked for every path that is not Holdfast's. */
  fetch?:
    | ((request: Request, env: Env, ctx: ExecutionContext) => Response | Promise<Response>)
    | undefined;
  /** Your own handling of incoming mail. */
  email?:
    | ((message: ForwardableEmailMessage, env: Env, ctx: ExecutionContext) => void | Promise<void>)
    | undefined;
}

/** Paths that belong to Holdfast. */
const OWN_PATHS = /^\/(?:webhooks|health|admin|chat)(?:\/|$)/;

/**
 * Serves a bot on Workers: the handler for `export default`, and the Durable Object classes to export.
 * Does no work until a request comes.
 */
export function serve<Env = Cloudflare.Env, Shape = unknown>(
  bot: Bot<Env, Shape>,
  options: ServeOptions<Env> = {},
) {
  const reach = (env: Record<string, unknown>): Actors =>
    actorsFrom(env, workerExports as unknown as Record<string, unknown>);
  const edge = edgeOf({
    bot,
    actors: reach,
    log: (env) => consoleLog({ bot: bot.id }, env),
    now: () => Date.now(),
  });
  const fetch = async (request: Request, env: Env, ctx: ExecutionContext): Promise<Response> => {
    if (options.fetch !== undefined && !OWN_PATHS.test(new URL(request.url).pathname)) {
      return options.fetch(request, env, ctx);
    }
    return edge.fetch(request, env as Record<string, unknown>, ctx);
  };
  return {
    /** For `export default`. */
    handler: {
      fetch,
      async scheduled(
        _controller: ScheduledController,
        env: Env,
        _ctx: ExecutionContext,
      ): Promise<void> {
        await sweep(bot, reach(env as Record<string, unknown>));
      },
      async email(
        message: ForwardableEmailMessage,
        env: Env,
        ctx: ExecutionContext,
      ): Promise<void> {
        await options.email?.(message, env, ctx);
      },
    },
    /** The same `fetch`, to mount in a Hono app. */
    fetch,
    /** The client, for your own routes. */
    client: (env: Env): Client => new ActorClient(reach(env as Record<string, unknown>), bot),
    /** The Durable Object classes; export a subclass of each from the main module. */
    ChatActor: defineChatActor(bot, reach),
    Connection: defineConnection(reach),
    Registry: defineRegistry(reach),
  };
}
