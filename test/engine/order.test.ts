/** The inline budget of a reply, and the order of a chat's sends. */
import { describe, expect, test } from "vitest";
import { type DurabilityOptions, SendDeferredError } from "../../src/index.ts";
import type { Fault } from "../../src/testing/index.ts";
import { type Lab, lab } from "./lab.ts";

const later = (retryAfterMs: number): Fault => ({
  type: "refuse",
  kind: "transient",
  retryAfterMs,
});

/** A handler that replies "a", then "b", and notes how and when each came back. */
function pair(outbox: DurabilityOptions["outbox"] = {}): Lab {
  return lab({
    durability: { outbox },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        const from = l().now;
        for (const text of ["a", "b"]) {
          const said = await ctx.reply(text).catch((error: unknown) => error);
          const what =
            said instanceof SendDeferredError
              ? `deferred error ${said.key}`
              : (said as { status: string }).status;
          l().notes.push(`${text} ${what} ${l().now - from}`);
        }
      }),
  });
}

describe("a reply that the platform is slow to take", () => {
  test("is deferred when its budget is spent; the turn goes on, and it arrives", async () => {
    const l = pair();
    l.platform.latency = () => (l.platform.calls.length === 1 ? 20_000 : 0);
    await l.ann.say("hi");
    expect(l.notes[0]).toBe("a deferred 15000");
    expect([...l.screen].sort()).toEqual(["a", "b"]);
    expect((await l.metrics()).outboxDeferred).toBeGreaterThanOrEqual(1);
  });

  test("is deferred at once when its next try lies beyond the budget", async () => {
    const l = pair();
    l.platform.failNext(later(15_001));
    await l.ann.say("hi");
    expect(l.notes).toEqual(["a deferred 0", "b sent 0"]);
    expect(l.screen).toEqual(["b", "a"]);
  });

  test("is waited for when its next try lies within the budget", async () => {
    const l = pair();
    l.platform.failNext(later(14_000));
    await l.ann.say("hi");
    expect(l.notes).toEqual(["a sent 14000", "b sent 14000"]);
    expect(l.screen).toEqual(["a", "b"]);
  });

  test("is an error with its key where the bot asked for that, and still arrives", async () => {
    const l = pair({ onDeferred: "throw" });
    l.platform.failNext(later(60_000));
    await l.ann.say("hi");
    expect(l.notes).toEqual(["a deferred error e1:0 0", "b sent 0"]);
    expect(l.screen).toEqual(["b", "a"]);
  });

  test("is an error with its key for a client, always", async () => {
    const l = pair();
    l.platform.failNext(later(60_000));
    const sending = l.client
      .send("out of turn", { idempotencyKey: "k" })
      .catch((thrown: unknown) => thrown);
    await l.t.advance("15s");
    expect(await sending).toMatchObject({ code: "send_deferred", key: "k", retryable: false });
    await l.t.idle();
    expect(l.screen).toEqual(["out of turn"]);
    expect(await l.client.outbox.get("k")).toMatchObject({ state: "sent" });
  });

  test("counts its budget from when it was decided, not from when its turn in the lane came", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const from = l().now;
          const both = [ctx.reply("a"), ctx.reply("b")].map(async (said) => {
            l().notes.push(`${(await said).status} ${l().now - from}`);
          });
          await Promise.all(both);
        }),
    });
    l.platform.latency = () => 10_000;
    await l.ann.say("hi");
    expect(l.notes).toEqual(["sent 10000", "deferred 15000"]);
    expect(l.screen).toEqual(["a", "b"]);
  });
});

describe("a message behind one that is retried", () => {
  const both = (outbox: DurabilityOptions["outbox"] = {}) =>
    lab({
      durability: { outbox },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const said = ["a", "b", "c"].map(
            async (text) => `${text} ${(await ctx.reply(text)).status} ${l().now - start}`,
          );
          const start = l().now;
          l().notes.push(...(await Promise.all(said)));
        }),
    });

  test("waits for it while it is waited for, so that the user reads them in order", async () => {
    const l = both();
    l.platform.failNext(later(3_000), later(3_000));
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b", "c"]);
  });

  test("by default does not wait for what nobody waits for any more", async () => {
    const l = both();
    l.platform.failNext(later(60_000));
    await l.ann.say("hi");
    expect(l.notes).toEqual(["a deferred 0", "b sent 0", "c sent 0"]);
    expect(l.screen).toEqual(["b", "c", "a"]);
  });

  test("waits always under strict order, and is told at once that it will take longer", async () => {
    const l = both({ order: "strict" });
    l.platform.failNext(later(60_000));
    await l.ann.say("hi");
    expect(l.notes).toEqual(["a deferred 0", "b deferred 0", "c deferred 0"]);
    expect(l.screen).toEqual(["a", "b", "c"]);
  });

  test("of a later turn waits under strict order, too, and after a restart", async () => {
    const l = lab({
      durability: { outbox: { order: "strict" } },
      setup: (bot) => bot.otherwise((ctx) => ctx.reply(ctx.text)),
    });
    l.platform.failNext(later(60_000));
    await l.ann.post({ text: "a" });
    await l.t.advance("1s");
    await l.ann.post({ text: "b" });
    await l.t.advance("1s");
    l.t.runtime.kill();
    await l.ann.post({ text: "c" });
    await l.t.idle();
    expect(l.screen).toEqual(["a", "b", "c"]);
  });

  test("does not wait under strict order for a reminder of tomorrow", async () => {
    const l = lab({
      durability: { outbox: { order: "strict" } },
      setup: (bot) => bot.otherwise((ctx) => ctx.reply(ctx.text)),
    });
    await l.client.enqueue("tomorrow", { delay: "24h" });
    await l.ann.post({ text: "hi" });
    await l.t.advance("1m");
    expect(l.screen).toEqual(["hi"]);
  });

  test("does not overtake it under strict order because there are many", async () => {
    const l = lab({ durability: { outbox: { order: "strict" } }, setup: () => {} });
    l.platform.failNext(later(60_000));
    const texts = Array.from({ length: 40 }, (_u, n) => `m${n}`);
    for (const text of texts) await l.client.enqueue(text);
    await l.t.idle();
    expect(l.screen).toEqual(texts);
  });

  test("of a dead one comes next", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const said = ["a", "b"].map((text) =>
            ctx.reply(text).then(
              () => "sent",
              () => "dead",
            ),
          );
          l().notes.push(...(await Promise.all(said)));
        }),
    });
    l.platform.failNext({ type: "refuse", kind: "invalid_payload" });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["dead", "sent"]);
    expect(l.screen).toEqual(["b"]);
  });
});

test("fifty messages of one turn arrive in the order in which they were decided", async () => {
  const texts = Array.from({ length: 50 }, (_u, n) => `m${n}`);
  const l = lab({
    setup: (bot) =>
      bot.otherwise(async (ctx) => {
        for (const [n, text] of texts.entries())
          void (n % 3 === 0 ? ctx.enqueue(text) : ctx.reply(text));
      }),
  });
  l.platform.latency = () => 100;
  await l.ann.say("hi");
  expect(l.screen).toEqual(texts);
});

test("only one call of a chat is in flight at a time", async () => {
  const l = lab({
    setup: (bot) =>
      bot.otherwise(async (ctx) => {
        await ctx.enqueue("a");
        await Promise.all([
          ctx.reply("b"),
          ctx.sendBatch(["c", "d"]),
          ctx.reply("e", { durability: "disabled" }),
        ]);
      }),
  });
  let now = 0;
  let most = 0;
  const send = l.platform.send.bind(l.platform);
  l.platform.latency = () => 500;
  l.platform.send = async (...call) => {
    now += 1;
    most = Math.max(most, now);
    const result = await send(...call);
    now -= 1;
    return result;
  };
  await l.ann.post({ text: "hi" });
  await l.client.enqueue("from outside");
  await l.t.idle();
  expect(l.screen).toHaveLength(6);
  expect(most).toBe(1);
});
