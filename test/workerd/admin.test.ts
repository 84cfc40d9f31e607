/** The admin API over HTTP in the real runtime, and the cron with its alarms. */
import { createExecutionContext, createScheduledController } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { env, type Listing, TestChat, until } from "./harness.ts";
import { meterOf } from "./meter.ts";
import workerModule from "./worker.ts";

const worker = (exports as unknown as { default: Fetcher }).default;
const TOKEN = "workerd-operator-token";

/** Asks the admin API. */
async function ask<T>(
  path: string,
  body?: object,
  token = TOKEN,
): Promise<{ status: number; json: T }> {
  const response = await worker.fetch(
    new Request(`https://bot.test/admin${path}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    }),
  );
  return { status: response.status, json: (await response.json()) as T };
}

const addressOf = (chat: TestChat) => encodeURIComponent(chat.address);

/** A chat whose last send died. */
async function withDeadSend(): Promise<{ chat: TestChat; end: () => void; key: string }> {
  const chat = new TestChat();
  const end = chat.refuses();
  const id = await chat.say("hello?");
  await until(async () => {
    const { json } = await ask<Listing>(`/outbox?state=dead&chat=${addressOf(chat)}`);
    return json.rows.length === 1 || undefined;
  });
  return { chat, end, key: `${id}:0` };
}

describe.concurrent("the admin API", () => {
  it("refuses whoever has no token", async () => {
    const { status, json } = await ask("/chats", undefined, "wrong");
    expect([status, json]).toEqual([
      401,
      { error: { code: "unauthorized", message: "unauthorized" } },
    ]);
  });

  it("shows a dead send across chats, sends it again, and says so when it is asked twice", async () => {
    const { chat, end, key } = await withDeadSend();
    end();
    const row = await until(async () => {
      let cursor: string | undefined;
      do {
        const page = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
        const { json } = await ask<Listing>(`/outbox?state=dead${page}`);
        const found = json.rows.find((one) => one.key === key);
        if (found !== undefined) return found;
        cursor = json.cursor;
      } while (cursor !== undefined);
      return undefined;
    });
    expect(row).toMatchObject({ address: chat.address, state: "dead" });
    expect((await ask("/retry", { ref: row.ref })).json).toMatchObject({ done: true, id: key });
    await chat.receives(["you said: hello?"]);
    const again = await ask<{ error: { code: string } }>("/retry", { ref: row.ref });
    expect([again.status, again.json.error.code]).toEqual([409, "not_applicable"]);
    await chat.settles();
    expect(chat.replies).toEqual(["you said: hello?"]);
  });

  it("shows a chat, its timeline and a record, by addresses with slashes", async () => {
    const chat = new TestChat();
    const id = await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await chat.settles();
    const summary = await ask(`/chats/${addressOf(chat)}`);
    expect(summary.json).toMatchObject({ address: chat.address, outbox: { dead: 0 } });
    const log = await ask<{ entries: { text: string }[] }>(`/chats/${addressOf(chat)}/log`);
    expect(log.json.entries.map((entry) => entry.text)).toEqual(["hello", "you said: hello"]);
    const record = await ask(`/record?chat=${addressOf(chat)}&id=${id}`);
    expect(record.json).toMatchObject({ id, state: "done" });
    const replayed = await ask("/replay", { chat: chat.address, id });
    expect(replayed.json).toMatchObject({ done: true });
    await chat.settles();
    expect(chat.replies).toEqual(["you said: hello"]);
  });

  it("shows health, metrics and the quarantine of the real objects", async () => {
    expect((await ask("/health")).json).toMatchObject({
      ok: true,
      connections: [{ connection: "telegram", delivery: "blind", quarantined: false }],
    });
    expect((await ask("/quarantine")).json).toEqual({ rows: [] });
    expect((await ask("/metrics")).json).toMatchObject({
      bot: "plain",
      metrics: { outboxDead: expect.any(Number) },
    });
    const prom = await worker.fetch("https://bot.test/admin/metrics.prom", {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(prom.headers.get("content-type")).toContain("version=0.0.4");
    expect(await prom.text()).toMatch(/^holdfast_outbox_dead_total\{bot="plain"\} \d+$/m);
  });
});

describe("the cron", () => {
  it("runs a job of the bot in an object of its own, once for each minute", async () => {
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    const name = "main/production/plain/~cron/hourly";
    const due = new Date(minute);
    due.setUTCMinutes(7, 0, 0);
    for (const late of [0, 60_000]) {
      const controller = createScheduledController({ scheduledTime: due.getTime() + late });
      await workerModule.scheduled(controller, env, createExecutionContext());
    }
    expect(meterOf(name).requests.get("receive")).toBe(2);
    const chat = encodeURIComponent("~cron/~cron/hourly");
    const rows = await until(async () => {
      const { json } = await ask<Listing>(`/inbox?chat=${chat}&state=done`);
      return json.rows.length === 0 ? undefined : json.rows;
    });
    expect(rows.map((row) => row.id)).toEqual([`cron:hourly:${due.toISOString().slice(0, 16)}Z`]);
  });
});
