/**
 * The public entry that needs the Workers runtime: `serve(bot)`.
 *
 * @module
 */
import { exports as workerExports } from "cloudflare:workers";
import type { AnyChannel } from "./channels/channel.ts";
import type { ServedDeps } from "./channels/served.ts";
import { actorsFrom, namespaceOf } from "./edge/actors.ts";
import { edgeOf } from "./edge/app.ts";
import { runScheduled } from "./edge/scheduled.ts";
import type { Actors } from "./host/Host.ts";
import { defineChatActor } from "./objects/ChatActor.ts";
import { defineConnection } from "./objects/Connection.ts";
import { consoleLog, DurableHost } from "./objects/DurableHost.ts";
import { chatActorName } from "./objects/names.ts";
import { defineRegistry } from "./objects/Registry.ts";
import { defineWebChat } from "./objects/WebChat.ts";
import { wallClock } from "./time/Clock.ts";
import { ActorClient } from "./turns/ActorClient.ts";
import type { Bot } from "./turns/Bot.ts";
import type { BotRuntime } from "./turns/BotRuntime.ts";
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

/** What the web chat's routes need, for one request's environment. */
function servedDeps(
  bot: BotRuntime,
  channel: AnyChannel,
  env: Record<string, unknown>,
): ServedDeps {
  const exported = workerExports as unknown as Record<string, unknown>;
  const nameOf = (session: string) => chatActorName(bot.scope, channel.connection, session);
  return {
    env,
    local: env.HOLDFAST_LOCAL === "1",
    room: (session) => namespaceOf("WebChat", env, exported).getByName(nameOf(session)),
    crash: (session) =>
      actorsFrom(env, exported).call(
        "ChatActor",
        nameOf(session),
        "crash",
        JSON.stringify({ label: "channel.send", side: "after" }),
      ),
  };
}

/** Paths that belong to Holdfast. */
const OWN_PATHS = /^\/(?:webhooks|hooks|health|admin|_local)(?:\/|$)/;

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
  const logOf = (env: Record<string, unknown>) => consoleLog({ bot: bot.id }, env);
  const edge = edgeOf({
    bot,
    actors: reach,
    log: logOf,
    now: wallClock.now,
  });
  const makeHost = (ctx: DurableObjectState, env: unknown) =>
    new DurableHost(ctx, env as Record<string, unknown>, reach, ctx.id.name ?? ctx.id.toString());
  const webchat = bot.channels.find((channel) => channel.served !== undefined);
  const site = webchat?.served?.routes((env) =>
    servedDeps(bot, webchat, env as Record<string, unknown>),
  );
  const fetch = async (request: Request, env: Env, ctx: ExecutionContext): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (
      site !== undefined &&
      (pathname === webchat?.served?.path || pathname.startsWith(`${webchat?.served?.path}/`))
    ) {
      return site.fetch(request, env);
    }
    if (options.fetch !== undefined && !OWN_PATHS.test(pathname)) {
      return options.fetch(request, env, ctx);
    }
    return edge.fetch(request, env as Record<string, unknown>, ctx);
  };
  return {
    /** For `export default`. */
    handler: {
      fetch,
      async scheduled(
        controller: ScheduledController,
        env: Env,
        _ctx: ExecutionContext,
      ): Promise<void> {
        const own = env as Record<string, unknown>;
        const parts = { bot, actors: reach(own), env: own, log: logOf(own) };
        const { failed } = await runScheduled(parts, controller.scheduledTime);
        // Shown as a failed run; each cause has its log line, and the next minute makes up for it.
        if (failed > 0) throw new Error(`${failed} parts of the scheduled run did not work`);
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
    client: (env: Env): Client =>
      new ActorClient(
        reach(env as Record<string, unknown>),
        bot,
        () => crypto.randomUUID(),
        "bot",
        wallClock,
        env as Record<string, unknown>,
      ),
    /** The Durable Object classes; export a subclass of each from the main module. */
    ChatActor: defineChatActor(bot, reach),
    Connection: defineConnection(bot, reach),
    Registry: defineRegistry(reach),
    /** Only with `webchat()`. */
    WebChat: defineWebChat(makeHost, webchat?.served),
  };
}
