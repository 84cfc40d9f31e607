/**
 * The edge: one Hono app with webhooks, health, the admin API and the web chat. It keeps no state.
 *
 * @module
 */
import { Hono } from "hono/tiny";
import type { Actors, Log } from "../host/Host.ts";
import { errorText } from "../safety/redact.ts";
import { type Clock, wallClock } from "../time/Clock.ts";
import { ActorClient } from "../turns/ActorClient.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { adminApp } from "./admin/app.ts";
import { healthOf } from "./health.ts";
import { handleHook } from "./hooks.ts";
import { LOCAL_PATH, localApp } from "./local.ts";
import { handleWebhook } from "./webhooks.ts";

/** What the edge is built from. */
export interface EdgeParts {
  bot: BotRuntime;
  actors(env: Record<string, unknown>): Actors;
  log(env: Record<string, unknown>): Log;
  now(): number;
  /** Gives the calls of the admin API their deadlines. Default: the wall clock. */
  clock?: Clock | undefined;
}

type EdgeEnv = { Bindings: Record<string, unknown> };

/** Makes the edge of a bot. `mount` adds further routes before the final 404. */
export function edgeOf(
  parts: EdgeParts,
  mount: (app: Hono<EdgeEnv>) => void = () => {},
): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  const webhook = (
    request: Request,
    env: Record<string, unknown>,
    channel: string,
    connection?: string,
  ) =>
    handleWebhook(
      { bot: parts.bot, actors: parts.actors(env), env, log: parts.log(env), now: parts.now },
      request,
      channel,
      connection,
    );
  app.all("/webhooks/:channel", (c) => webhook(c.req.raw, c.env, c.req.param("channel")));
  app.all("/webhooks/:channel/:connection", (c) =>
    webhook(c.req.raw, c.env, c.req.param("channel"), c.req.param("connection")),
  );
  app.all("/hooks/:token", (c) => {
    const client = new ActorClient(
      parts.actors(c.env),
      parts.bot,
      () => crypto.randomUUID(),
      "bot",
      parts.clock ?? wallClock,
      c.env,
    );
    return handleHook(client, c.req.raw, c.req.param("token"));
  });
  app.get("/health", (c) => {
    const health = healthOf(parts.bot, c.env);
    // One connection without its secrets must not take the others off a load balancer.
    return c.json(health, health.connections.some((one) => one.ready) ? 200 : 503);
  });
  app.route("/admin", adminApp({ ...parts, clock: parts.clock ?? wallClock }));
  app.route(LOCAL_PATH, localApp(parts));
  mount(app);
  app.notFound((c) => c.text("not found\n", 404));
  app.onError((error, c) => {
    parts.log(c.env).error("a request failed", {
      path: new URL(c.req.url).pathname,
      error: errorText(error, c.env),
    });
    return c.text("internal error\n", 500);
  });
  return app;
}
