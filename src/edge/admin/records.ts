/**
 * Records: lists of one chat and across chats, one record in full, and what can be done with it. Each
 * may be repeated: what is done already is answered as such.
 *
 * @module
 */
import type { Hono } from "hono";
import type { InboxFilter } from "../../journal/InboxTable.ts";
import type { OutboxState } from "../../journal/records.ts";
import type { Client, InboxRecord, OutboxRecord, RetryDeadOptions } from "../../turns/Client.ts";
import {
  type AdminEnv,
  AdminError,
  bodyOf,
  choice,
  connectionIn,
  optional,
  pageOf,
  required,
} from "./parts.ts";

const INBOX_STATES: readonly InboxFilter[] = ["pending", "processing", "done", "failed", "dead"];
const OUTBOX_STATES: readonly OutboxState[] = [
  "pending",
  "sending",
  "sent",
  "failed",
  "unknown",
  "dead",
  "suppressed",
];

type Action = "replay" | "retry" | "discard";

/** Why an action did nothing, given what the record is. */
const REFUSALS: Record<Action, string> = {
  replay: "only events that are done, failed or dead, and can be read, run again",
  retry: "only sends that are dead, failed or unknown are sent again",
  discard: "what went well, is in the middle of it, or was given up before cannot be given up",
};

/** Adds the routes. */
export function recordRoutes(app: Hono<AdminEnv>): void {
  app.get("/inbox", async (c) => {
    const query = c.req.query();
    const state = choice(query, "state", INBOX_STATES);
    const chat = optional(query, "chat");
    const { client } = c.var.tools;
    if (chat !== undefined)
      return c.json(await client.chat(chat).inbox.list({ ...pageOf(query), state }));
    return c.json(
      await client.durability.inbox.list({ ...pageOf(query), state: needed(state, INBOX_STATES) }),
    );
  });

  app.get("/outbox", async (c) => {
    const query = c.req.query();
    const state = choice(query, "state", OUTBOX_STATES);
    const chat = optional(query, "chat");
    const { client } = c.var.tools;
    if (chat !== undefined)
      return c.json(await client.chat(chat).outbox.list({ ...pageOf(query), state }));
    return c.json(
      await client.durability.outbox.list({
        ...pageOf(query),
        state: needed(state, OUTBOX_STATES),
      }),
    );
  });

  app.get("/record", async (c) => c.json(await recordOf(c.var.tools.client, c.req.query())));

  for (const action of ["replay", "retry", "discard"] as const) {
    app.post(`/${action}`, async (c) => {
      const { client, log } = c.var.tools;
      const record = await recordOf(client, await bodyOf(c));
      const { ref, id, address } = record;
      refuseWrongKind(action, "key" in record);
      if (!(await act(client, action, ref))) {
        throw new AdminError(
          409,
          "not_applicable",
          `the record is ${record.state}: ${REFUSALS[action]}`,
        );
      }
      log.info("an operator acted on a record", { action, chat: address, id });
      return c.json({ done: true, ref, id, address });
    });
  }

  app.post("/retry-dead", async (c) => {
    const { client, bot, log } = c.var.tools;
    const body = await bodyOf(c);
    const connection = connectionIn(bot, body);
    const options: RetryDeadOptions = {
      ...pageOf(body),
      connection,
      ...(body.kinds === undefined
        ? {}
        : { kinds: body.kinds as NonNullable<RetryDeadOptions["kinds"]> }),
    };
    const done = await client.durability.retryDead(options);
    log.info("an operator sent dead records again", {
      connection,
      retried: done.retried,
      skipped: done.skipped,
      failed: done.failed.length,
    });
    return c.json(done);
  });
}

/** Events are replayed, sends are retried. */
function refuseWrongKind(action: Action, isSend: boolean): void {
  if (action === "replay" && isSend)
    throw new AdminError(400, "bad_request", "this is a send: POST /admin/retry sends it again");
  if (action === "retry" && !isSend)
    throw new AdminError(400, "bad_request", "this is an event: POST /admin/replay runs it again");
}

function needed<T extends string>(state: T | undefined, allowed: readonly T[]): T {
  if (state !== undefined) return state;
  throw new AdminError(
    400,
    "bad_request",
    `a list across chats needs state, one of: ${allowed.join(", ")}`,
  );
}

function act(client: Client, action: Action, ref: string): Promise<boolean> {
  const { durability } = client;
  if (action === "replay") return durability.replayInbound(ref);
  return action === "retry" ? durability.retrySend(ref) : durability.discard(ref);
}

/** The record that a request names: by `ref`, or by `chat` and `id` (inbound) or `key` (a send). */
async function recordOf(
  client: Client,
  input: Record<string, unknown>,
): Promise<InboxRecord | OutboxRecord> {
  const ref = optional(input, "ref");
  const found =
    ref === undefined ? await named(client, input) : await client.durability.record(ref);
  if (found === undefined) throw new AdminError(404, "not_found", "there is no such record");
  return found;
}

function named(
  client: Client,
  input: Record<string, unknown>,
): Promise<InboxRecord | OutboxRecord | undefined> {
  const id = optional(input, "id");
  const key = optional(input, "key");
  if ((id === undefined) === (key === undefined))
    throw new AdminError(400, "bad_request", "name the record: ref, or chat with either id or key");
  const chat = client.chat(required(input, "chat"));
  return id === undefined ? chat.outbox.get(key ?? "") : chat.inbox.get(id);
}
