/** Chats: which have something unfinished, how one stands, and its timeline. @module */
import type { Hono } from "hono";
import type { ChatClient } from "../../turns/Client.ts";
import { type AdminEnv, AdminError, connectionIn, optional, pageOf } from "./parts.ts";

/** Records of one state are counted up to this. */
const COUNT_CAP = 100;
const MAX_LOG = 500;

const INBOX = ["pending", "processing", "failed", "dead"] as const;
const OUTBOX = ["pending", "sending", "failed", "unknown", "dead"] as const;

/** Adds the routes. */
export function chatRoutes(app: Hono<AdminEnv>): void {
  app.get("/chats", async (c) => {
    const { client, bot } = c.var.tools;
    const query = c.req.query();
    const connection =
      query.connection === undefined ? {} : { connection: connectionIn(bot, query) };
    return c.json(await client.durability.chats({ ...pageOf(query), ...connection }));
  });

  // An address has slashes: percent-encoded it is one segment.
  app.get("/chats/:chat", async (c) => {
    const address = c.req.param("chat");
    return c.json({ address, ...(await summaryOf(c.var.tools.client.chat(address))) });
  });

  app.get("/chats/:chat/log", async (c) => {
    const query = c.req.query();
    const limit = query.limit === undefined ? 100 : Number(query.limit);
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LOG)
      throw new AdminError(400, "bad_request", `limit must be a whole number from 1 to ${MAX_LOG}`);
    const after = optional(query, "after");
    if (after !== undefined && !/^\d+\.-?\d+$/.test(after))
      throw new AdminError(400, "bad_request", "after must be the cursor of an entry");
    const entries = await c.var.tools.client.chat(c.req.param("chat")).log({ after, limit });
    const last = entries.at(-1);
    return c.json({
      entries,
      ...(entries.length === limit && last !== undefined ? { cursor: last.cursor } : {}),
    });
  });
}

/** How many records of each unfinished state a chat has, counted up to {@link COUNT_CAP}. */
async function summaryOf(chat: ChatClient) {
  const page = { limit: COUNT_CAP };
  const [inbox, outbox, metrics] = await Promise.all([
    Promise.all(
      INBOX.map(async (state) => [state, (await chat.inbox.list({ state, ...page })).rows.length]),
    ),
    Promise.all(
      OUTBOX.map(async (state) => [
        state,
        (await chat.outbox.list({ state, ...page })).rows.length,
      ]),
    ),
    chat.metrics(),
  ]);
  return {
    inbox: Object.fromEntries(inbox) as Record<string, number>,
    outbox: Object.fromEntries(outbox) as Record<string, number>,
    countedUpTo: COUNT_CAP,
    /** Since its object woke. */
    metrics,
  };
}
