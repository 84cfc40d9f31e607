/** Connections: how each stands, and what is in its quarantine. @module */
import type { Hono } from "hono";
import type { AnyChannel } from "../../channels/channel.ts";
import { connectionActorName } from "../../objects/names.ts";
import { TIMED_OUT, withDeadline } from "../../time/Clock.ts";
import { healthOf } from "../health.ts";
import {
  type AdminEnv,
  type AdminTools,
  bodyOf,
  connectionIn,
  optional,
  pageOf,
  required,
} from "./parts.ts";

/** How long a connection has to say how it is, in ms: a report of health must not hang itself. */
const STATUS_MS = 5_000;

/** Adds the routes. */
export function connectionRoutes(app: Hono<AdminEnv>): void {
  app.get("/health", async (c) => {
    const { tools } = c.var;
    const { ok, bot, connections } = healthOf(tools.bot, tools.env);
    const details = await Promise.all(tools.bot.channels.map((one) => detailOf(tools, one)));
    return c.json({
      ok,
      bot,
      connections: connections.map((one, at) => ({ ...one, ...details[at] })),
      crons: tools.bot.crons.map(({ name, expression }) => ({ name, expression })),
      chats: await tools.client.durability.counts().catch(() => "unreachable" as const),
    });
  });

  app.get("/quarantine", async (c) => {
    const query = c.req.query();
    const chat = optional(query, "chat");
    const input = { ...pageOf(query), ...(chat === undefined ? {} : { chat }) };
    return c.json(await ask(c.var.tools, connectionIn(c.var.tools.bot, query), "list", input));
  });

  app.post("/quarantine/replay", async (c) => {
    const body = await bodyOf(c);
    const ref = optional(body, "ref");
    const connection = connectionIn(c.var.tools.bot, body);
    return c.json(await ask(c.var.tools, connection, "replay", ref === undefined ? {} : { ref }));
  });

  app.post("/quarantine/discard", async (c) => {
    const body = await bodyOf(c);
    const input = { ref: required(body, "ref") };
    return c.json(await ask(c.var.tools, connectionIn(c.var.tools.bot, body), "discard", input));
  });
}

/** One method of a connection's quarantine. */
async function ask(
  { bot, actors }: AdminTools,
  connection: string,
  method: "list" | "replay" | "discard",
  input: object,
): Promise<object> {
  const actor = connectionActorName(bot.scope, connection);
  return JSON.parse(
    await actors.call("Connection", actor, `quarantine.${method}`, JSON.stringify(input)),
  ) as object;
}

/** What only the connection itself knows. */
async function detailOf(tools: AdminTools, channel: AnyChannel): Promise<object> {
  const { connection, name, capabilities } = channel;
  const hook = connection === name ? name : `${name}/${connection}`;
  const known = { delivery: capabilities.delivery.class, webhook: `/webhooks/${hook}` };
  const actor = connectionActorName(tools.bot.scope, connection);
  const asked = Promise.all([
    tools.actors.call("Connection", actor, "poll.status", "{}"),
    tools.actors.call("Connection", actor, "quarantine.list", JSON.stringify({ limit: 1 })),
  ]);
  try {
    const answer = await withDeadline(tools.clock, STATUS_MS, asked);
    if (answer === TIMED_OUT) return { ...known, unreachable: true };
    const [polling, quarantine] = answer.map((text) => JSON.parse(text) as unknown);
    const { rows } = quarantine as { rows: unknown[] };
    return { ...known, polling, quarantined: rows.length > 0 };
  } catch {
    return { ...known, unreachable: true };
  }
}
