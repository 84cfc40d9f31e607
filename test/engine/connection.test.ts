/** What a connection keeps: deliveries that a chat cannot take, the account's events, the account's rate. */
import { describe, expect, test } from "vitest";
import { connectionActorName } from "../../src/objects/names.ts";
import type { BudgetGrant } from "../../src/objects/RateBudget.ts";
import type { SimUpdate } from "../../src/testing/platforms/telegram.ts";
import { ConnectionLab, SECRET } from "./connectionLab.ts";

const MINUTE = 60_000;

/** Posts an update each `everyMs` until it is taken; resolves to the statuses. */
async function redeliver(
  lab: ConnectionLab,
  update: SimUpdate,
  everyMs: number,
  times: number,
): Promise<number[]> {
  const statuses: number[] = [];
  for (let n = 0; n < times; n += 1) {
    const status = await lab.post(update);
    statuses.push(status);
    if (status === 200) break;
    await lab.pass(everyMs);
  }
  return statuses;
}

describe("a webhook's delivery that its chat cannot take", () => {
  test("is taken over after three failures in ten minutes, and comes to its chat later", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    const update = lab.sim.messageUpdate({ chatId: 12, text: "order" });
    expect(await redeliver(lab, update, 5 * MINUTE, 9)).toEqual([503, 503, 200]);
    expect((await lab.quarantine()).rows).toMatchObject([
      { id: String(update.update_id), chat: lab.actor(12), kind: "message" },
    ]);
    mend();
    await lab.until(() => lab.said(12).length === 1, 20 * MINUTE);
    expect(lab.said(12)).toEqual(["ok order"]);
  });

  test("is not taken over for a short outage, however often it is tried", async () => {
    const lab = new ConnectionLab();
    lab.breakChat(12);
    const update = lab.sim.messageUpdate({ chatId: 12, text: "order" });
    const statuses = await redeliver(lab, update, 10_000, 50);
    expect(statuses.every((status) => status === 503)).toBe(true);
    expect((await lab.quarantine()).rows).toEqual([]);
  });

  test("is asked for more and more seldom, up to each half minute", async () => {
    const lab = new ConnectionLab();
    lab.breakChat(12);
    const update = lab.sim.messageUpdate({ chatId: 12, text: "order" });
    const waits: (string | null)[] = [];
    for (let n = 0; n < 7; n += 1) {
      const request = new Request("https://bot.example/webhooks/telegram", {
        method: "POST",
        headers: { "x-telegram-bot-api-secret-token": SECRET },
        body: JSON.stringify(update),
      });
      waits.push((await lab.fetch(request)).headers.get("retry-after"));
    }
    expect(waits).toEqual(["1", "2", "4", "8", "16", "30", "30"]);
  });

  test("nor for two failures, however far apart", async () => {
    const lab = new ConnectionLab();
    lab.breakChat(12);
    const update = lab.sim.messageUpdate({ chatId: 12, text: "order" });
    expect(await redeliver(lab, update, 15 * MINUTE, 2)).toEqual([503, 503]);
  });

  test("takes what comes behind it along at once, so that the order holds", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    const first = lab.sim.messageUpdate({ chatId: 12, text: "first" });
    await redeliver(lab, first, 5 * MINUTE, 9);
    expect(await lab.post(lab.sim.messageUpdate({ chatId: 12, text: "second" }))).toBe(200);
    mend();
    await lab.until(() => lab.said(12).length === 2, 20 * MINUTE);
    expect(lab.said(12)).toEqual(["ok first", "ok second"]);
  });

  test("is answered once, also where the chat had committed it all along", async () => {
    const lab = new ConnectionLab();
    const { call } = lab.runtime;
    const name = lab.actor(12);
    // The chat commits, and its answer is lost on the way.
    lab.runtime.call = async function (kind, actor, method, payload) {
      const answer = await call.call(this, kind, actor, method, payload);
      if (actor === name && method === "receive") throw new Error("the answer was lost");
      return answer;
    };
    const update = lab.sim.messageUpdate({ chatId: 12, text: "order" });
    expect((await redeliver(lab, update, 5 * MINUTE, 9)).at(-1)).toBe(200);
    lab.runtime.call = call;
    await lab.pass(20 * MINUTE);
    expect(lab.said(12)).toEqual(["ok order"]);
    expect((await lab.quarantine()).rows).toEqual([]);
  });

  test("is not counted where the chat's queue is full: the platform comes again", async () => {
    const lab = new ConnectionLab({
      durability: { inbox: { maxPending: 1 } },
      setup: (bot) => bot.otherwise(() => new Promise(() => {})),
    });
    await lab.post(lab.sim.messageUpdate({ chatId: 12, text: "slow" }));
    const update = lab.sim.messageUpdate({ chatId: 12, text: "next" });
    expect(await redeliver(lab, update, MINUTE, 8)).not.toContain(200);
    expect((await lab.quarantine()).rows).toEqual([]);
  });

  test("while nothing fails, no webhook asks the connection", async () => {
    const lab = new ConnectionLab();
    const asked: string[] = [];
    lab.runtime.onCall = (kind, _name, method) => asked.push(`${kind} ${method}`);
    expect(await lab.post(lab.sim.messageUpdate({ chatId: 12, text: "hi" }))).toBe(200);
    expect(asked).toEqual(["ChatActor receive"]);
  });
});

describe("an operator", () => {
  /** Two chats with two items each in the quarantine. */
  async function filled(): Promise<{ lab: ConnectionLab; mend: () => void }> {
    const lab = new ConnectionLab();
    const mends = [lab.breakChat(12), lab.breakChat(13)];
    await lab.call("poll.start");
    for (const text of ["a", "b"]) for (const chat of [12, 13]) lab.write(chat, text);
    await lab.until(() => lab.sim.pending.length === 0);
    await lab.pass(30 * MINUTE);
    return {
      lab,
      mend: () => {
        for (const mend of mends.reverse()) mend();
      },
    };
  }

  test("pages through the quarantine, oldest first", async () => {
    const { lab } = await filled();
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await lab.call<{ rows: { id: string }[]; cursor?: string }>("quarantine.list", {
        limit: 3,
        ...(cursor === undefined ? {} : { cursor }),
      });
      ids.push(...page.rows.map((row) => row.id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(new Set(ids).size).toBe(4);
    const ofOne = await lab.call<{ rows: { chat: string }[] }>("quarantine.list", {
      chat: lab.actor(13),
    });
    expect(ofOne.rows.map((row) => row.chat)).toEqual([lab.actor(13), lab.actor(13)]);
  });

  test("has a chat tried at once, and the other left alone", async () => {
    const { lab, mend } = await filled();
    mend();
    const [row] = (await lab.quarantine()).rows.filter((one) => one.chat === lab.actor(12));
    expect(await lab.call("quarantine.replay", { ref: row?.ref })).toEqual({ chats: 1 });
    await lab.until(() => lab.said(12).length === 2, 5_000);
    expect(lab.said(12)).toEqual(["ok a", "ok b"]);
    expect(lab.said(13)).toEqual([]);
    expect(await lab.call("quarantine.replay")).toEqual({ chats: 1 });
    await lab.until(() => lab.said(13).length === 2, 5_000);
  });

  test("throws one item away for good; the one behind it goes on", async () => {
    const { lab, mend } = await filled();
    const [row] = (await lab.quarantine()).rows.filter((one) => one.chat === lab.actor(12));
    expect(await lab.call("quarantine.discard", { ref: row?.ref })).toEqual({ discarded: true });
    expect(await lab.call("quarantine.discard", { ref: row?.ref })).toEqual({ discarded: false });
    mend();
    await lab.call("quarantine.replay");
    await lab.until(() => lab.said(12).length === 1, 5_000);
    expect(lab.said(12)).toEqual(["ok b"]);
  });

  test("names an item that never was, and nothing happens", async () => {
    const { lab } = await filled();
    for (const ref of ["", "q", "qzzz", "1", "q1; DROP TABLE stuck"]) {
      expect(await lab.call("quarantine.discard", { ref })).toEqual({ discarded: false });
      expect(await lab.call("quarantine.replay", { ref })).toEqual({ chats: 0 });
    }
    expect((await lab.quarantine()).rows).toHaveLength(4);
  });
});

describe("the sweep", () => {
  test("brings a lost alarm back: what waits is tried again", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    await lab.call("poll.start");
    lab.write(12, "hello");
    await lab.until(() => lab.sim.pending.length === 0);
    await lab.call("poll.stop");
    await lab.pass(MINUTE);
    mend();
    lab.runtime.kill();
    lab.runtime.loseAlarm("Connection", lab.connection);
    await lab.pass(30 * MINUTE);
    expect(lab.said(12)).toEqual([]);
    await lab.call("sweep");
    await lab.until(() => lab.said(12).length === 1, 5_000);
  });
});

describe("a full quarantine", () => {
  test("refuses visibly: polling stops, and goes on once there is room", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    await lab.call("poll.start");
    lab.write(12, "m1");
    await lab.until(() => lab.sim.pending.length === 0);
    lab.runtime.storage("Connection", lab.connection).run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
       INSERT INTO quarantine (chat, id, at, item) SELECT ?, 'x' || i, 0,
         '{"type":"bad","id":"x' || i || '","chat":{"id":"99","kind":"direct"},"error":"","sample":""}' FROM n`,
      [lab.actor(99)],
    );
    lab.write(12, "m2");
    await lab.pass(2 * MINUTE);
    expect((await lab.status()).error?.message).toMatch(/quarantine is full/);
    expect(lab.sim.pending).toHaveLength(1);
    mend();
    await lab.until(() => lab.said(12).length === 2, 30 * MINUTE);
    expect(lab.said(12)).toEqual(["ok m1", "ok m2"]);
  });
});

describe("an event of the account", () => {
  const poll = (id: number, name: string): SimUpdate => ({ update_id: id, poll: { id: name } });

  test("is kept once, and runs nothing where the bot has no handler for it", async () => {
    const handled: string[] = [];
    const lab = new ConnectionLab({
      setup: (bot) =>
        bot.use(async (ctx, next) => {
          handled.push(ctx.event.kind);
          await next();
        }),
    });
    for (let n = 0; n < 3; n += 1) expect(await lab.post(poll(7, "p"))).toBe(200);
    await lab.pass(MINUTE);
    expect(await lab.call("events")).toMatchObject({
      events: [{ id: "7", kind: "telegram:poll" }],
    });
    expect(handled).toEqual([]);
    expect(lab.runtime.names("ChatActor")).toEqual([]);
  });

  test("runs as a turn, once and in order, where the bot handles it", async () => {
    const seen: unknown[] = [];
    const lab = new ConnectionLab({
      setup: (bot) => bot.on("telegram:poll", (ctx) => seen.push(ctx.event.id)),
    });
    for (const id of [7, 8, 7, 9]) expect(await lab.post(poll(id, "p"))).toBe(200);
    await lab.until(() => seen.length === 3);
    await lab.pass(10 * MINUTE);
    expect(seen).toEqual(["7", "8", "9"]);
  });

  test("is handed over later where the way to its turn is broken", async () => {
    const seen: unknown[] = [];
    const lab = new ConnectionLab({
      setup: (bot) => bot.on("telegram:poll", (ctx) => seen.push(ctx.event.id)),
    });
    const mend = lab.breakChat(0);
    expect(await lab.post(poll(7, "p"))).toBe(200);
    await lab.pass(MINUTE);
    lab.runtime.kill();
    mend();
    await lab.until(() => seen.length === 1, 10 * MINUTE);
  });

  test("is not answered with success where the connection cannot keep it", async () => {
    const lab = new ConnectionLab();
    lab.runtime.onCommit = (actor) => {
      if (actor === lab.connection) throw new Error("SQLITE_FULL");
    };
    expect(await lab.post(poll(7, "p"))).toBe(503);
    lab.runtime.onCommit = () => {};
    expect(await lab.post(poll(7, "p"))).toBe(200);
  });
});

describe("the rate budget", () => {
  const ask = (lab: ConnectionLab, want: number, retryAfterMs?: number): Promise<BudgetGrant> =>
    lab.call("budget", { want, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });

  test("spreads what all chats may send to thirty a second, after a limit", async () => {
    const lab = new ConnectionLab();
    const now = lab.runtime.clock.now();
    const times: number[] = [];
    let limit: number | undefined = 5_000;
    for (let chat = 0; chat < 40; chat += 1) {
      const grant = await ask(lab, 3, limit);
      limit = undefined;
      for (let n = 0; n < grant.granted; n += 1) times.push(grant.notBefore + n * grant.everyMs);
    }
    times.sort((a, b) => a - b);
    expect(times).toHaveLength(120);
    expect(times[0]).toBeGreaterThanOrEqual(now + 5_000);
    for (const from of times) {
      const inSecond = times.filter((at) => at >= from && at < from + 1_000).length;
      expect(inSecond).toBeLessThanOrEqual(30);
    }
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan(5_000);
  });

  test("gives no block inside the time that the platform named, also after a restart", async () => {
    const lab = new ConnectionLab();
    const until = lab.runtime.clock.now() + 90_000;
    expect(await ask(lab, 1, 90_000)).toMatchObject({ granted: 0, notBefore: until });
    lab.runtime.kill();
    expect(await ask(lab, 1)).toMatchObject({ granted: 0, notBefore: until });
    await lab.pass(89_000);
    const grant = await ask(lab, 1);
    expect(grant.granted).toBe(1);
    expect(grant.notBefore).toBeGreaterThanOrEqual(until);
  });

  test("news of one limit from many chats costs one row", async () => {
    const lab = new ConnectionLab();
    for (let chat = 0; chat < 50; chat += 1) {
      await ask(lab, 1, 10_000);
      await lab.pass(10);
    }
    expect(lab.runtime.hits.get("budget.wait after")).toBe(1);
  });

  test("never gives more than a small block", async () => {
    const lab = new ConnectionLab();
    expect((await ask(lab, 1_000)).granted).toBeLessThanOrEqual(20);
    expect((await ask(lab, 0)).granted).toBe(1);
  });
});

describe("the routes of a developer's own machine", () => {
  const env = { HOLDFAST_LOCAL: "1", HOLDFAST_ADMIN_TOKEN: "local-token" };
  const ask = async (lab: ConnectionLab, method: string, path: string, token = "local-token") =>
    lab.fetch(
      new Request(`http://localhost/_local/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      }),
    );

  test("start and stop polling, and say how it goes", async () => {
    const lab = new ConnectionLab({ env });
    expect(await (await ask(lab, "GET", "polling")).json()).toMatchObject({
      connections: [{ connection: "telegram", ready: true, status: { on: false } }],
    });
    expect((await ask(lab, "POST", "polling/telegram/start")).status).toBe(200);
    lab.write(11, "hello");
    await lab.until(() => lab.said(11).length === 1);
    expect(await (await ask(lab, "POST", "polling/telegram/stop")).json()).toMatchObject({
      on: false,
    });
    expect((await ask(lab, "POST", "polling/nobody/start")).status).toBe(404);
    expect((await ask(lab, "POST", "polling/telegram/explode")).status).toBe(404);
  });

  test("stop what the bot was called before, which would take its messages", async () => {
    const lab = new ConnectionLab({ env });
    const old = connectionActorName({ ...lab.bot.scope, bot: "old name" }, "telegram");
    const status = async () =>
      JSON.parse(await lab.runtime.call("Connection", old, "poll.status", "{}")) as { on: boolean };
    await lab.runtime.call("Connection", old, "poll.start", "{}");
    expect(await status()).toMatchObject({ on: true });
    expect(await (await ask(lab, "GET", "polling")).json()).toMatchObject({ bot: "tg" });
    expect(await (await ask(lab, "POST", "polling/telegram/stop/old%20name")).json()).toMatchObject(
      {
        on: false,
      },
    );
    expect(await status()).toMatchObject({ on: false });
    expect((await ask(lab, "POST", "polling/nobody/stop/old%20name")).status).toBe(404);
    expect((await ask(lab, "POST", "polling/telegram/start/old%20name")).status).toBe(404);
  });

  test("do not exist where the bot is deployed, nor for anybody without the token", async () => {
    for (const [changed, token] of [
      [{ HOLDFAST_LOCAL: "0" }, "local-token"],
      [{ HOLDFAST_LOCAL: undefined }, "local-token"],
      [{ HOLDFAST_ADMIN_TOKEN: "" }, ""],
      [{}, "guess"],
      [{}, ""],
    ] as const) {
      const lab = new ConnectionLab({ env: { ...env, ...changed } });
      expect((await ask(lab, "GET", "polling", token)).status).toBe(404);
      expect((await ask(lab, "POST", "polling/telegram/start", token)).status).toBe(404);
      expect(await lab.status()).toMatchObject({ on: false });
    }
  });
});
