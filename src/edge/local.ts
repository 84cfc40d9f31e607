/**
 * What `npm start` asks of the Worker on the developer's own machine: which connections can be polled,
 * and to start or stop it. Deployed there is no such path: it needs `HOLDFAST_LOCAL=1`, which only the
 * local runtime is given, and the local admin token, so that no page in a browser can ask.
 *
 * @module
 */
import { Hono } from "hono/tiny";
import type { Actors } from "../host/Host.ts";
import { connectionActorName } from "../objects/names.ts";
import type { PollStatus } from "../objects/Polling.ts";
import { sameSecret } from "../safety/compare.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";

/** What the routes are made of. */
export interface LocalParts {
  bot: BotRuntime;
  actors(env: Record<string, unknown>): Actors;
}

/** One connection that can be polled. */
export interface LocalPolling {
  connection: string;
  channel: string;
  /** Whether its variables are set. */
  ready: boolean;
  status: PollStatus;
}

type LocalEnv = { Bindings: Record<string, unknown> };

/** Where the app is mounted. */
export const LOCAL_PATH = "/_local";

/** Makes the app. */
export function localApp({ bot, actors }: LocalParts): Hono<LocalEnv> {
  const app = new Hono<LocalEnv>();
  const ask = async (
    env: Record<string, unknown>,
    connection: string,
    method: string,
    id = bot.scope.bot,
  ) => {
    const name = connectionActorName({ ...bot.scope, bot: id }, connection);
    const answer = await actors(env).call("Connection", name, method, "{}");
    return JSON.parse(answer) as PollStatus;
  };

  app.use("*", async (c, next) => {
    const { HOLDFAST_LOCAL: local, HOLDFAST_ADMIN_TOKEN: token } = c.env;
    const given = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1] ?? "";
    const known =
      local === "1" && typeof token === "string" && token !== "" && sameSecret(given, token);
    if (!known) return c.text("not found\n", 404);
    return next();
  });

  app.get("/polling", async (c) => {
    const connections = bot.channels
      .filter((channel) => channel.polling !== undefined)
      .map(async (channel): Promise<LocalPolling> => {
        const { connection, name } = channel;
        const status = await ask(c.env, connection, "poll.status");
        return { connection, channel: name, ready: channel.configure(c.env).ok, status };
      });
    return c.json({ bot: bot.scope.bot, connections: await Promise.all(connections) });
  });

  app.post("/polling/:connection/:action{start|stop}", async (c) => {
    const { connection, action } = c.req.param();
    if (bot.channel(connection)?.polling === undefined) return c.text("not found\n", 404);
    return c.json(await ask(c.env, connection, `poll.${action}`));
  });

  // A bot that was given another id: its old connection polls on with the same token.
  app.post("/polling/:connection/stop/:bot", async (c) => {
    const { connection, bot: id } = c.req.param();
    if (bot.channel(connection)?.polling === undefined) return c.text("not found\n", 404);
    return c.json(await ask(c.env, connection, "poll.stop", id));
  });

  return app;
}
