import { describe, expect, test } from "vitest";
import { RetryTurn } from "../../src/index.ts";
import { echoing, lab, only } from "./lab.ts";

/** A handler that notes what it got and when, and takes `ms`. */
function slow(ms: number) {
  return lab({
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push(`start ${ctx.text}`);
        await l().sleep(ms);
        l().notes.push(`end ${ctx.text}`);
      }),
  });
}

describe("a message that the platform delivers twice", () => {
  test("is answered once, even if the second comes a day later", async () => {
    const l = lab({ setup: echoing });
    const first = await l.receive([l.message("m1", "pay")]);
    await l.t.idle();
    await l.t.advance("23h");
    const again = await l.receive([l.message("m1", "pay")]);
    await l.t.idle();
    expect([first, again]).toEqual([
      { ok: true, results: ["accepted"] },
      { ok: true, results: ["duplicate"] },
    ]);
    expect(l.screen).toEqual(["ok pay"]);
  });

  test("is answered once while its turn still runs, and in one body", async () => {
    const l = slow(5_000);
    await l.receive([l.message("m1", "pay"), l.message("m1", "pay")]);
    await l.t.advance("1s");
    await l.receive([l.message("m1", "pay")]);
    await l.t.idle();
    expect(l.notes).toEqual(["start pay", "end pay"]);
  });

  test("is answered once where only the semantic key repeats", async () => {
    const l = lab({ setup: echoing });
    await l.receive([l.message("push-1", "hi", { semanticKey: "message:7" })]);
    const again = await l.receive([l.message("push-2", "hi", { semanticKey: "message:7" })]);
    const other = await l.receive([l.message("push-3", "hi", { semanticKey: "message:8" })]);
    await l.t.idle();
    expect([again, other]).toEqual([
      { ok: true, results: ["duplicate"] },
      { ok: true, results: ["accepted"] },
    ]);
    expect(l.screen).toEqual(["ok hi", "ok hi"]);
  });

  test("is answered once after the process died in between", async () => {
    const l = lab({ setup: echoing });
    await l.receive([l.message("m1", "pay", { semanticKey: "s1" })]);
    await l.t.idle();
    l.t.runtime.kill();
    await l.receive([l.message("m1", "pay"), l.message("m2", "pay", { semanticKey: "s1" })]);
    await l.t.idle();
    expect(l.screen).toEqual(["ok pay"]);
  });
});

describe("messages of one chat", () => {
  test("are handled in order of arrival and never two at a time", async () => {
    const l = slow(700);
    for (const text of ["a", "b", "c"]) {
      await l.receive([l.message(text, text)]);
      await l.t.advance(100);
    }
    await l.receive([l.message("d", "d"), l.message("e", "e")]);
    await l.t.idle();
    expect(l.notes).toEqual(["a", "b", "c", "d", "e"].flatMap((x) => [`start ${x}`, `end ${x}`]));
  });

  test("keep their order when the process dies while they wait", async () => {
    const l = slow(10_000);
    await l.receive(["a", "b", "c"].map((text) => l.message(text, text)));
    await l.t.advance("3s");
    await l.t.restart();
    expect(l.notes).toEqual([
      "start a",
      ...["a", "b", "c"].flatMap((x) => [`start ${x}`, `end ${x}`]),
    ]);
  });

  test("do not wait for another chat's", async () => {
    const l = slow(60_000);
    const bob = l.t.user("bob");
    await l.ann.post({ text: "a" });
    await bob.post({ text: "b" });
    await l.t.advance("1s");
    expect(l.notes).toEqual(["start a", "start b"]);
    await l.t.idle();
  });

  test("that all came in the same millisecond lose neither order nor a record", async () => {
    const l = slow(1);
    const names = Array.from({ length: 80 }, (_unused, n) => `m${n}`);
    await l.receive(names.map((name) => l.message(name, name)));
    await l.t.idle();
    expect(l.notes.filter((note) => String(note).startsWith("start"))).toEqual(
      names.map((name) => `start ${name}`),
    );
    expect(l.events().map((row) => row.state)).toEqual(names.map(() => "done"));
  });
});

describe("an event that cannot be handled", () => {
  test("and is malformed is kept as a dead, cut-off record; the rest of its body is answered", async () => {
    const l = lab({ setup: echoing });
    const answer = await l.receive([
      l.message("m1", "one"),
      { type: "bad", id: "m2", chat: l.ann.chat, error: "no sender", sample: "x".repeat(50_000) },
      l.message("m3", "three"),
    ]);
    await l.t.idle();
    expect(answer).toEqual({ ok: true, results: ["accepted", "dead", "accepted"] });
    expect(l.screen).toEqual(["ok one", "ok three"]);
    const dead = only((await l.client.inbox.list({ state: "dead" })).rows);
    expect(dead).toMatchObject({ id: "m2", error: "no sender" });
    expect(l.told("durability:dead")).toEqual([
      expect.objectContaining({ kind: "inbound", id: "m2", error: "no sender" }),
    ]);
    expect(l.events()[1]?.payload.length).toBeLessThan(3_000);
    expect(
      await l.receive([
        { type: "bad", id: "m2", chat: l.ann.chat, error: "no sender", sample: "" },
      ]),
    ).toEqual({
      ok: true,
      results: ["duplicate"],
    });
  });

  test("and is over the journal's limit is kept as a dead record, not refused for ever", async () => {
    const l = lab({ setup: echoing });
    const answer = await l.receive([
      l.message("big", "x".repeat(2_000_000)),
      l.message("m2", "small"),
    ]);
    await l.t.idle();
    expect(answer).toEqual({ ok: true, results: ["dead", "accepted"] });
    expect(l.screen).toEqual(["ok small"]);
    expect(l.told("durability:dead").map((event) => event.id)).toEqual(["big"]);
  });

  test("and is over the limit in bytes, though not in characters, is kept as a dead record too", async () => {
    const l = lab({ setup: echoing });
    // 1.2 million characters, 3.6 MB in UTF-8: SQLITE_TOOBIG in production, on every redelivery.
    const answer = await l.receive([l.message("big", "漢".repeat(1_200_000))]);
    expect(answer).toEqual({ ok: true, results: ["dead"] });
  });

  test("because its row is damaged ends alone, named and announced; the chat goes on", async () => {
    const l = slow(5_000);
    await l.receive([l.message("a", "a"), l.message("b", "b"), l.message("c", "c")]);
    await l.t.advance("1s");
    l.damage("UPDATE inbox SET payload = '{' WHERE id = 'b'");
    await l.t.idle();
    expect(l.notes).toEqual(["start a", "end a", "start c", "end c"]);
    const dead = only((await l.client.inbox.list({ state: "dead" })).rows);
    expect(dead.id).toBe("b");
    expect(dead.error).toMatch(/^unreadable record/);
    expect(l.told("durability:dead").map((event) => event.id)).toEqual(["b"]);
    expect((await l.metrics()).inboundDead).toBe(1);
  });
});

describe("a chat whose queue is full", () => {
  const full = () =>
    lab({
      durability: { inbox: { maxPending: 3 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await l().sleep(10_000);
          await ctx.reply(`ok ${ctx.text}`);
        }),
    });

  test("asks the platform to come back, records nothing of that, and answers all later", async () => {
    const l = full();
    for (const id of ["a", "b", "c"]) await l.receive([l.message(id, id)]);
    expect(await l.receive([l.message("d", "d")])).toEqual({
      ok: false,
      reason: "full",
      retryAfterSeconds: 30,
    });
    expect(l.events().map((row) => row.id)).toEqual(["a", "b", "c"]);
    await l.t.advance("30s");
    expect(await l.receive([l.message("d", "d")])).toEqual({ ok: true, results: ["accepted"] });
    await l.t.idle();
    expect(l.screen).toEqual(["ok a", "ok b", "ok c", "ok d"]);
  });

  test("still knows what it has: a redelivery is a duplicate, not refused", async () => {
    const l = full();
    for (const id of ["a", "b", "c"]) await l.receive([l.message(id, id)]);
    expect(await l.receive([l.message("b", "b")])).toEqual({ ok: true, results: ["duplicate"] });
    const mixed = await l.receive([l.message("b", "b"), l.message("d", "d")]);
    expect(mixed).toMatchObject({ ok: false, reason: "full" });
    await l.t.idle();
  });

  test("is not full of turns that rest for days", async () => {
    const l = lab({
      durability: { inbox: { maxPending: 3 } },
      setup: (bot) =>
        bot.otherwise((ctx) => {
          if (ctx.text === "hello") return ctx.reply("hello");
          throw new RetryTurn({ after: "7d" });
        }),
    });
    for (let n = 0; n < 3; n += 1) {
      await l.receive([l.message(`m${n}`, "in a week")]);
      await l.t.advance(10);
    }
    expect(await l.receive([l.message("h", "hello")])).toMatchObject({ ok: true });
    await l.t.idle();
    expect(l.screen).toEqual(["hello"]);
    // Their number has a bound, too.
    for (let n = 3; n < 6; n += 1) {
      await l.receive([l.message(`m${n}`, "in a week")]);
      await l.t.advance(10);
    }
    expect(await l.receive([l.message("i", "hello")])).toMatchObject({ reason: "full" });
  });

  test("still takes delivery statuses, which do not queue", async () => {
    const l = full();
    for (const id of ["a", "b", "c"]) await l.receive([l.message(id, id)]);
    const status = { platformId: "m1", status: "delivered" as const, at: l.now, chat: l.ann.chat };
    expect(await l.receive([{ type: "status", status }])).toEqual({
      ok: true,
      results: ["status"],
    });
    await l.t.idle();
  });

  test("says so to a client that sends an event", async () => {
    const l = full();
    for (const id of ["a", "b", "c"]) await l.receive([l.message(id, id)]);
    await expect(l.client.sendEvent({ type: "paid", id: "p1" })).rejects.toMatchObject({
      code: "backpressure",
      retryable: true,
      retryAfterMs: 30_000,
    });
    await l.t.idle();
  });
});

test("an external event reaches its handler once, whatever how often it is sent", async () => {
  const l = lab({
    setup: (bot) =>
      bot.on("event:paid", (ctx) => ctx.reply(`paid ${JSON.stringify(ctx.event.data)}`)),
  });
  const first = await l.client.sendEvent({ type: "paid", id: "p1", data: { sum: 5 } });
  const again = await l.client.sendEvent({ type: "paid", id: "p1", data: { sum: 5 } });
  await l.t.idle();
  expect([first.accepted, again.accepted]).toEqual([true, false]);
  expect(l.screen).toEqual(['paid {"sum":5}']);
});

test("dead events whose listener never works do not fill the queue", async () => {
  const l = lab({
    durability: { inbox: { maxPending: 2 } },
    setup: (bot) => {
      bot.on("durability:dead", () => {
        throw new Error("the ops channel is away");
      });
      echoing(bot);
    },
  });
  for (const id of ["a", "b", "c"]) {
    await l.receive([{ type: "bad", id, chat: l.ann.chat, error: "broken", sample: "{" }]);
  }
  expect(await l.receive([l.message("m", "hello")])).toEqual({ ok: true, results: ["accepted"] });
  await l.t.advance(100);
  expect(l.screen).toEqual(["ok hello"]);
});
