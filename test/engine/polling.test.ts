/** Long polling: no update is lost, doubled or held up by another chat's trouble. */
import { describe, expect, test } from "vitest";
import { CONNECTION_COMMITS } from "../../src/journal/labels.ts";
import type { QuarantinedItem, QuarantinePage } from "../../src/objects/QuarantineDesk.ts";
import type { SimUpdate } from "../../src/testing/platforms/telegram.ts";
import { ConnectionLab } from "./connectionLab.ts";

const CHATS = [11, 12, 13];

/** Every update that the platform may forget is in its chat's inbox, or in the quarantine. */
async function nothingConfirmedIsLost(
  lab: ConnectionLab,
  chats = CHATS,
  discarded = 0,
): Promise<void> {
  const known = new Set([...chats, 0].flatMap((chat) => lab.admitted(chat)));
  for (const row of (await lab.quarantine()).rows) known.add(row.id);
  expect(lab.sim.confirmed.filter((id) => !known.has(String(id)))).toHaveLength(discarded);
}

describe("polling", () => {
  test("brings messages to their chats in order, and answers each once", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    for (const n of [1, 2, 3]) for (const chat of CHATS) lab.write(chat, `m${n}`);
    await lab.until(() => lab.sim.sent.length === 9);
    await lab.pass(60_000);
    for (const chat of CHATS) expect(lab.said(chat)).toEqual(["ok m1", "ok m2", "ok m3"]);
    expect(lab.sim.pending).toEqual([]);
    await nothingConfirmedIsLost(lab);
  });

  test("asks for every kind of update, and says whose token it is", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.until(() => lab.calls("getUpdates") > 0);
    const { params } = lab.sim.calls.find((call) => call.method === "getUpdates") ?? {};
    expect(params?.allowed_updates).toEqual(
      expect.arrayContaining(["message", "message_reaction", "chat_member"]),
    );
    expect(await lab.status()).toMatchObject({
      on: true,
      account: { name: "@sim_bot", url: "https://t.me/sim_bot" },
    });
  });

  test("a message that comes while a poll waits is answered at once", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.pass(70_000);
    const before = lab.runtime.clock.now();
    lab.write(11, "hello");
    await lab.until(() => lab.sim.sent.length === 1);
    expect(lab.runtime.clock.now() - before).toBeLessThan(1_000);
  });

  test("a platform that repeats itself, cursor and all, is asked once a second", async () => {
    const lab = new ConnectionLab();
    const told = ["a", "b"].map((text) => lab.sim.messageUpdate({ chatId: 11, text }));
    let polls = 0;
    lab.answer = (request) => {
      if (!request.url.includes("getUpdates")) return undefined;
      polls += 1;
      if (polls > 1_000) throw new Error("a hot loop");
      return Response.json({ ok: true, result: [told[polls % 2]] });
    };
    await lab.call("poll.start");
    await lab.pass(30_000);
    expect(polls).toBeLessThan(40);
    expect(lab.admitted(11)).toHaveLength(2);
  });

  test("an hour without news costs a poll each 25 s and nothing else", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.pass(3_600_000);
    expect(lab.calls("getUpdates")).toBeLessThan(150);
    expect(lab.calls("getUpdates")).toBeGreaterThan(140);
    expect(lab.runtime.alarmRuns).toBeLessThan(130);
  });

  test("goes on by itself after its process died, from the last committed update", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    lab.write(11, "before");
    await lab.until(() => lab.sim.sent.length === 1);
    lab.runtime.kill();
    lab.write(11, "after");
    await lab.until(() => lab.sim.sent.length === 2);
    expect(lab.said(11)).toEqual(["ok before", "ok after"]);
  });

  test("goes on when the runtime drops its work without a word", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.until(() => lab.calls("getUpdates") > 0);
    // The answer never comes, and no timer of that run either.
    const real = lab.runtime.clock.setTimer.bind(lab.runtime.clock);
    lab.sim.fault({ type: "hang", method: "getUpdates" });
    lab.runtime.clock.setTimer = (ms, fn) => (ms === 35_000 ? () => {} : real(ms, fn));
    await lab.pass(30_000);
    lab.runtime.clock.setTimer = real;
    lab.write(11, "still there?");
    await lab.until(() => lab.sim.sent.length === 1, 180_000);
  });

  test("stops when told to, and leaves with the platform what came after", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.until(() => lab.calls("getUpdates") > 0);
    expect(await lab.call("poll.stop")).toMatchObject({ on: false });
    lab.write(11, "later");
    const polls = lab.calls("getUpdates");
    await lab.pass(600_000);
    expect(lab.calls("getUpdates")).toBe(polls);
    expect(lab.sim.pending).toHaveLength(1);
    await lab.call("poll.start");
    await lab.until(() => lab.sim.sent.length === 1);
  });

  test("a platform that answers nonsense at once is not asked in a hot loop", async () => {
    const lab = new ConnectionLab();
    lab.sim.fault({ type: "refuse", status: 502, description: "Bad Gateway", times: 1_000 });
    await lab.call("poll.start");
    await lab.pass(600_000);
    expect(lab.sim.calls.length).toBeLessThan(60);
    lab.sim.clearFaults();
    lab.write(11, "up again");
    await lab.until(() => lab.sim.sent.length === 1);
    expect((await lab.status()).error).toBeUndefined();
    expect(lab.logged.filter((line) => line.message === "polling does not work")).toHaveLength(1);
    expect(lab.logged.some((line) => line.message === "polling works again")).toBe(true);
  });

  test("a rate limit is kept", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.until(() => lab.calls("getUpdates") > 0);
    lab.sim.fault({ type: "rateLimit", retryAfter: 300, method: "getUpdates" });
    lab.write(11, "a");
    await lab.until(() => lab.sim.sent.length === 1);
    const polls = lab.calls("getUpdates");
    await lab.pass(290_000);
    expect(lab.calls("getUpdates")).toBe(polls);
    lab.write(11, "b");
    await lab.until(() => lab.sim.sent.length === 2);
  });
});

describe("what somebody has to mend", () => {
  test.each([
    ["a token that Telegram does not know", { TELEGRAM_BOT_TOKEN: "1:wrong" }, /@BotFather/],
    ["a token that is none", { TELEGRAM_BOT_TOKEN: "nonsense" }, /@BotFather/],
    ["no token", { TELEGRAM_BOT_TOKEN: "" }, /set TELEGRAM_BOT_TOKEN/],
  ])("%s is shown, told once and asked for seldom", async (_what, env, message) => {
    const lab = new ConnectionLab({ env });
    await lab.call("poll.start");
    await lab.pass(600_000);
    expect((await lab.status()).error).toMatchObject({ kind: "auth" });
    expect((await lab.status()).error?.message).toMatch(message);
    expect(lab.logged.filter((line) => line.level === "error")).toHaveLength(1);
    expect(lab.sim.calls.length).toBeLessThan(12);
    expect(JSON.stringify(lab.logged)).not.toContain("1:wrong");
  });

  test("a webhook is named by its host, and never removed", async () => {
    const lab = new ConnectionLab();
    await lab.sim.fetch(
      new Request(`https://x/bot${lab.sim.token}/setWebhook?url=https://shop.example/hidden/path`),
    );
    await lab.call("poll.start");
    await lab.pass(300_000);
    const { error } = await lab.status();
    expect(error).toMatchObject({ kind: "conflict", code: "409" });
    expect(error?.message).toContain("shop.example");
    expect(error?.message).not.toContain("hidden");
    expect(lab.sim.webhook.url).toBe("https://shop.example/hidden/path");
  });

  test("a second copy of the bot is named as the cause", async () => {
    const lab = new ConnectionLab();
    await lab.call("poll.start");
    await lab.until(() => lab.calls("getUpdates") > 0);
    const other = lab.sim.fetch(new Request(`https://x/bot${lab.sim.token}/getUpdates?timeout=50`));
    await lab.until(() => lab.logged.length > 0);
    expect((await lab.status()).error).toMatchObject({ kind: "conflict" });
    expect((await lab.status()).error?.message).toMatch(/stop the other copy/);
    await lab.pass(120_000);
    await other;
  });
});

describe("a chat that cannot commit", () => {
  test("does not stop the others; its own messages come later, in order", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    await lab.call("poll.start");
    for (const n of [1, 2]) for (const chat of CHATS) lab.write(chat, `m${n}`);
    await lab.until(() => lab.sim.sent.length === 4);
    lab.write(12, "m3");
    lab.write(13, "m3");
    await lab.until(() => lab.said(13).length === 3);
    expect(lab.sim.pending).toEqual([]);
    expect((await lab.quarantine()).rows.map((row) => row.chat)).toEqual(
      Array.from({ length: 3 }, () => lab.actor(12)),
    );
    await nothingConfirmedIsLost(lab);
    mend();
    await lab.until(() => lab.said(12).length === 3, 1_200_000);
    expect(lab.said(12)).toEqual(["ok m1", "ok m2", "ok m3"]);
    expect((await lab.quarantine()).rows).toEqual([]);
  });

  test("and works again does not let a later message overtake", async () => {
    const lab = new ConnectionLab();
    const mend = lab.breakChat(12);
    await lab.call("poll.start");
    lab.write(12, "m1");
    // By now its next try is minutes away.
    await lab.pass(1_200_000);
    mend();
    lab.write(12, "m2");
    await lab.until(() => lab.said(12).length === 2, 1_200_000);
    expect(lab.said(12)).toEqual(["ok m1", "ok m2"]);
  });

  test("and never answers at all holds a batch up for seconds, not for ever", async () => {
    const lab = new ConnectionLab();
    const name = lab.actor(12);
    const { call } = lab.runtime;
    lab.runtime.call = function (kind, actor, method, payload) {
      return actor === name ? new Promise(() => {}) : call.call(this, kind, actor, method, payload);
    };
    await lab.call("poll.start");
    for (const chat of CHATS) lab.write(chat, "m1");
    await lab.until(() => lab.sim.pending.length === 0, 20_000);
    expect(lab.said(11)).toEqual(["ok m1"]);
    expect((await lab.quarantine()).rows).toHaveLength(1);
    lab.runtime.call = call;
    await lab.until(() => lab.said(12).length === 1, 1_200_000);
  });

  test("whose queue is full is asked again after the time that it named", async () => {
    const lab = new ConnectionLab({
      durability: { inbox: { maxPending: 1 } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          if (ctx.text === "slow") await new Promise(() => {});
          await ctx.reply(`ok ${ctx.text}`);
        }),
    });
    await lab.call("poll.start");
    lab.write(12, "slow");
    await lab.until(() => lab.admitted(12).length === 1);
    lab.write(12, "next");
    lab.write(13, "hello");
    await lab.until(() => lab.said(13).length === 1);
    const { rows } = await lab.quarantine();
    expect(rows).toMatchObject([{ chat: lab.actor(12), tries: 0, error: "its queue is full" }]);
    expect((rows[0]?.dueAt ?? 0) - lab.runtime.clock.now()).toBeGreaterThan(20_000);
    await lab.until(() => lab.said(12).includes("ok next"), 3_600_000);
  });
});

describe("killed at every commit of the connection", () => {
  const junk = 14;
  const flaky = 15;
  const everyChat = [...CHATS, flaky];

  /** Calls until it is answered, as whoever calls does. */
  async function sure<T>(lab: ConnectionLab, method: string, input: object = {}): Promise<T> {
    for (;;) {
      try {
        return await lab.call<T>(method, input);
      } catch {
        await lab.pass(1_000);
      }
    }
  }

  /** The first item of a chat in the quarantine, once it is there. */
  async function quarantinedOf(lab: ConnectionLab, chat: number): Promise<QuarantinedItem> {
    for (;;) {
      const { rows } = await sure<QuarantinePage>(lab, "quarantine.list", {
        chat: lab.actor(chat),
      });
      if (rows[0] !== undefined) return rows[0];
      await lab.pass(1_000);
    }
  }

  /** Delivers by webhook until it is taken, as Telegram does. */
  async function deliver(lab: ConnectionLab, update: SimUpdate): Promise<void> {
    while ((await lab.post(update)) !== 200) await lab.pass(60_000);
  }

  /** The life of a connection: chats break and are mended, the platform fails, operators act. */
  async function life(lab: ConnectionLab): Promise<void> {
    const mendFlaky = lab.breakChat(flaky);
    const mend = lab.breakChat(12);
    lab.breakChat(junk);
    await sure(lab, "poll.start");
    for (const n of [1, 2]) for (const chat of CHATS) lab.write(chat, `m${n}`);
    lab.write(junk, "junk");
    await lab.until(() => lab.said(11).length === 2 && lab.said(13).length === 2, 600_000);
    await nothingConfirmedIsLost(lab);
    const junkRow = await quarantinedOf(lab, junk);
    await sure(lab, "quarantine.discard", { ref: junkRow.ref });
    lab.sim.fault({ type: "5xx", method: "getUpdates", times: 2 });
    for (const chat of CHATS) lab.write(chat, "m3");
    await sure(lab, "budget", { want: 1, retryAfterMs: 1_000 });
    await lab.pass(120_000);
    await sure(lab, "poll.stop");
    const byWebhook = lab.sim.messageUpdate({ chatId: flaky, text: "m1" });
    await deliver(lab, byWebhook);
    await deliver(lab, { update_id: 900_000, poll: { id: "p1" } });
    await sure(lab, "poll.start");
    lab.sim.enqueue({ update_id: 900_001, poll: { id: "p2" } });
    await lab.pass(120_000);
    mend();
    mendFlaky();
    // In a few seconds somebody has to have looked: a broken chat's next try is minutes away.
    await sure(lab, "sweep");
    await lab.until(() => CHATS.every((chat) => lab.said(chat).length === 3), 3_600_000);
    await lab.until(() => lab.said(flaky).length === 1, 3_600_000);
    await lab.pass(120_000);
  }

  const points = CONNECTION_COMMITS.flatMap((label) =>
    (["before", "after"] as const).flatMap((side) =>
      [1, 2, 3].map((nth) => [label, side, nth] as const),
    ),
  );

  test.each(points)("%s, %s, time %i: nothing is lost or doubled", async (label, side, nth) => {
    const polls: unknown[] = [];
    const lab = new ConnectionLab({
      setup: (bot) => {
        bot.on("telegram:poll", (ctx) => polls.push(ctx.event.native?.poll));
        bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
      },
    });
    let left: number = nth;
    lab.runtime.onProbe = (hit) => {
      if (hit.kind !== "Connection" || hit.label !== label || hit.side !== side) return false;
      left -= 1;
      return left === 0;
    };
    await life(lab);
    for (const chat of CHATS) expect(lab.said(chat)).toEqual(["ok m1", "ok m2", "ok m3"]);
    expect(lab.said(flaky)).toEqual(["ok m1"]);
    expect(polls).toEqual([{ id: "p1" }, { id: "p2" }]);
    expect(lab.sim.pending).toEqual([]);
    expect((await lab.quarantine()).rows).toEqual([]);
    await nothingConfirmedIsLost(lab, everyChat, 1);
    // Every label is reached, or this test proves nothing of it.
    if (nth === 1) expect(left).toBeLessThanOrEqual(0);
  });
});
