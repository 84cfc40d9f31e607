import { createExecutionContext, listDurableObjectIds } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { env, gate, post, sim, startsOf, TestChat, until } from "./harness.ts";
import worker from "./worker.ts";

const SECRET = { "x-telegram-bot-api-secret-token": env.TELEGRAM_WEBHOOK_SECRET };
/** Telegram's cap on a webhook's body. */
const CAP = 1_048_576;

/** Every object of chats that has storage. */
async function chatsStored(): Promise<number> {
  const lists = [env.CHAT_ACTOR, env.QUICK_ACTOR, env.CONNECTION].map((one) =>
    listDurableObjectIds(one),
  );
  return (await Promise.all(lists)).flat().length;
}

/** Refused with this status, and nothing on disk says that it came. */
async function refused(answer: Promise<Response>, status: number): Promise<Response> {
  const before = await chatsStored();
  const response = await answer;
  expect(response.status).toBe(status);
  expect(await response.text()).toBe("");
  expect(await chatsStored()).toBe(before);
  return response;
}

describe("a webhook with the right secret", () => {
  it("is answered, and so is the person who wrote", async () => {
    const chat = new TestChat();
    expect((await chat.deliver(chat.update("hello"))).status).toBe(200);
    await chat.receives(["you said: hello"]);
  });

  it("is admitted even where one of its events cannot be read, and that event is listed", async () => {
    const chat = new TestChat();
    const update = { update_id: 900_001, message: { chat: { id: chat.id, type: "private" } } };
    expect((await chat.deliver(update)).status).toBe(200);
    const { rows } = await chat.client<{ rows: { id: string; state: string }[] }>("inbox.list", {
      state: "dead",
    });
    expect(rows).toMatchObject([{ id: "900001", state: "dead" }]);
    await chat.say("still there?");
    await chat.receives(["you said: still there?"]);
  });
});

describe("a webhook that must not get in", () => {
  it("leaves nothing behind with a wrong secret or none", async () => {
    const chat = new TestChat();
    const body = JSON.stringify(chat.update("let me in"));
    await refused(post(chat.path, body, { "x-telegram-bot-api-secret-token": "guess" }), 401);
    await refused(post(chat.path, body), 401);
    await refused(post(chat.path, "{ broken"), 401);
    expect(chat.sent).toEqual([]);
  });

  it("leaves nothing behind for a channel or a connection that the bot does not have", async () => {
    const chat = new TestChat();
    const body = JSON.stringify(chat.update("anybody?"));
    await refused(post("/webhooks/pigeon", body, SECRET), 404);
    await refused(post("/webhooks/telegram/other", body, SECRET), 404);
    await refused(post("/quick/webhooks/pigeon/brief", body, SECRET), 404);
  });

  it("is not read when it says that it is over the cap", async () => {
    const chat = new TestChat();
    let reads = 0;
    const pull = (controller: ReadableStreamDefaultController) => {
      reads += 1;
      controller.enqueue(new Uint8Array(1_024));
    };
    const headers = { ...SECRET, "content-length": String(CAP + 1) };
    const init = { method: "POST", headers, duplex: "half" };
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    const request = new Request(`https://bot.test${chat.path}`, { ...init, body });
    await refused(worker.fetch(request, env, createExecutionContext()), 413);
    expect(reads).toBe(0);
  });

  it("is cut off at the cap when it does not say how long it is", async () => {
    const chat = new TestChat();
    let left = 40;
    const chunk = new TextEncoder().encode(" ".repeat(65_536));
    const body = new ReadableStream({
      pull(controller) {
        if (left-- > 0) controller.enqueue(chunk);
        else controller.close();
      },
    });
    await refused(post(chat.path, body, SECRET), 413);
    await refused(post(chat.path, " ".repeat(CAP + 1), SECRET), 413);
    expect(left).toBeGreaterThan(10);
  });

  it("leaves nothing behind when it is no JSON, or is no update", async () => {
    const chat = new TestChat();
    await refused(post(chat.path, '{"update_id": 1, ', SECRET), 400);
    await refused(post(chat.path, "[]", SECRET), 400);
    await refused(post(chat.path, "", SECRET), 400);
  });
});

describe("a webhook that cannot be admitted now", () => {
  it("comes back later when a secret is not set: never 401, which may disable it", async () => {
    const chat = new TestChat();
    for (const name of ["TELEGRAM_WEBHOOK_SECRET", "TELEGRAM_BOT_TOKEN"] as const) {
      const request = new Request(`https://bot.test${chat.path}`, {
        method: "POST",
        headers: SECRET,
        body: JSON.stringify(chat.update("hello")),
      });
      const { [name]: _unset, ...rest } = env;
      const response = await refused(
        worker.fetch(request, rest as typeof env, createExecutionContext()),
        503,
      );
      expect(response.headers.get("retry-after")).toBe("1");
    }
  });

  it("is handled once when the commit failed and the platform delivers it again", async () => {
    const chat = new TestChat();
    await chat.say("first");
    await chat.receives(["you said: first"]);
    await chat.settles();
    await chat.sabotage(
      `CREATE TRIGGER refuse BEFORE INSERT ON inbox BEGIN SELECT RAISE(ABORT, 'as the test asked'); END`,
    );
    const update = chat.update("second");
    const failed = await chat.deliver(update);
    expect(failed.status).toBe(503);
    expect(Number(failed.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await chat.rows("SELECT seq FROM inbox")).toHaveLength(1);

    await chat.sabotage("DROP TRIGGER refuse");
    expect((await chat.deliver(update)).status).toBe(200);
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.receives(["you said: first", "you said: second"]);
    await chat.settles();
    expect(chat.replies).toEqual(["you said: first", "you said: second"]);
    expect(startsOf(String(update.update_id))).toBe(1);
  });

  it("is handled once when the very first commit of a chat failed", async () => {
    const chat = new TestChat();
    // A view where the table should be: making the tables works, the insert does not.
    await chat.sabotage(`CREATE VIEW inbox AS SELECT 1 AS seq`);
    const update = chat.update("hello");
    expect((await chat.deliver(update)).status).toBe(503);
    await chat.sabotage("DROP VIEW inbox");
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.receives(["you said: hello"]);
    await chat.settles();
    expect(chat.replies).toEqual(["you said: hello"]);
  });

  it("waits at the platform, visibly, while a chat's queue is full", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    const texts: string[] = [];
    for (let n = 1; n < 40; n += 1) {
      await chat.say(`message ${n}`);
      texts.push(`you said: message ${n}`);
    }
    const update = chat.update("one too many");
    const full = await chat.deliver(update);
    expect(full.status).toBe(503);
    expect(full.headers.get("retry-after")).toBe("30");
    slow.open();
    await chat.receives(["slow 1", ...texts]);
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.receives(["slow 1", ...texts, "you said: one too many"]);
  });
});

describe("what does not depend on the platform", () => {
  it("shows at /health what is missing, and no secret", async () => {
    const health = await worker.fetch(
      new Request("https://bot.test/health"),
      { ...env, TELEGRAM_WEBHOOK_SECRET: "" },
      createExecutionContext(),
    );
    expect(health.status).toBe(503);
    const text = await health.text();
    expect(text).toContain("TELEGRAM_WEBHOOK_SECRET");
    expect(text).not.toContain(env.TELEGRAM_BOT_TOKEN);
  });

  it("sends no token anywhere but in the path of the platform's API", async () => {
    await until(() => sim.calls.length > 0 || undefined);
    expect(JSON.stringify(sim.calls)).not.toContain(env.TELEGRAM_BOT_TOKEN);
  });
});
