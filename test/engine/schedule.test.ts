/** Sends for later: on time, through restarts and long turns, and with the settle. */
import { describe, expect, test } from "vitest";
import { echoing, lab, only } from "./lab.ts";

const sentAt = (l: { platform: { ledger: { at: number; text: string }[] } }, start: number) =>
  Object.fromEntries(l.platform.ledger.map((entry) => [entry.text, entry.at - start]));

describe("a reminder", () => {
  test("goes out at its time, by date, by delay, and from outside a turn", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("by delay", { delay: "90s" });
          await ctx.enqueue("by ms", { delay: 30_000 });
          await ctx.enqueue("by date", { at: new Date(l().now + 60_000) });
          await ctx.enqueue("by epoch", { at: l().now + 61_000 });
          await ctx.enqueue("long ago", { at: l().now - 5_000 });
        }),
    });
    const start = l.now;
    await l.ann.say("hi");
    await l.client.enqueue("from outside", { delay: "2h" });
    await l.t.advance("3h");
    expect(sentAt(l, start)).toEqual({
      "long ago": 0,
      "by ms": 30_000,
      "by date": 60_000,
      "by epoch": 61_000,
      "by delay": 90_000,
      "from outside": 7_200_000,
    });
  });

  test("goes out on time although a turn runs for five minutes", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("reminder", { delay: "2m" });
          await l().sleep(300_000);
          await ctx.reply("done");
        }),
    });
    const start = l.now;
    await l.ann.say("hi");
    expect(sentAt(l, start)).toEqual({ reminder: 120_000, done: 300_000 });
  });

  test("of next month survives restarts, a lost process and the purge of everything else", async () => {
    const l = lab({ setup: echoing });
    const start = l.now;
    await l.client.enqueue("reminder", { delay: "31d" });
    await l.ann.say("hi");
    for (let day = 0; day < 31; day += 1) {
      l.t.runtime.kill();
      await l.t.advance("1d");
    }
    expect(sentAt(l, start)).toMatchObject({ reminder: 31 * 86_400_000 });
    expect(l.events()).toEqual([]);
  });

  test("is due once, though the process dies at every step of its delivery", async () => {
    for (const label of ["alarm.rearm", "outbox.markSending", "outbox.markSent"]) {
      const l = lab({ class: "keyed", setup: echoing });
      await l.client.enqueue("reminder", { delay: "1h" });
      l.t.crash.before(label);
      await l.t.advance("2h");
      expect(l.screen, label).toEqual(["reminder"]);
    }
  });

  test("whose alarm was lost goes out when the chat is next touched", async () => {
    const l = lab({ setup: echoing });
    await l.client.enqueue("reminder", { delay: "1h" });
    l.t.runtime.kill();
    l.t.runtime.loseAlarm("ChatActor", l.actor());
    await l.t.advance("2h");
    expect(l.screen).toEqual([]);
    await l.t.runtime.call("ChatActor", l.actor(), "wake", "{}");
    await l.t.idle();
    expect(l.screen).toEqual(["reminder"]);
  });

  test("survives a throw of the handler that set it", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("reminder", { delay: "1h" });
          throw new Error("boom");
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("2h");
    expect(l.screen).toEqual(["reminder"]);
  });

  test("set again by a replay of its turn goes out once, at the first time", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("reminder", { delay: "1h" });
          if (ctx.attempt === 1) {
            await l().sleep(1_000);
            l().t.runtime.kill();
            await new Promise(() => {});
          }
        }),
    });
    const start = l.now;
    await l.ann.say("hi");
    await l.t.advance("3h");
    expect(l.platform.ledger).toHaveLength(1);
    expect(sentAt(l, start)).toEqual({ reminder: 3_600_000 });
  });

  test("with a delay that cannot be read is refused, not sent at once", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const delay = "in two hours" as unknown as number;
          l().notes.push(await ctx.enqueue("reminder", { delay }).catch((error: unknown) => error));
        }),
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual([]);
    expect(only(l.notes)).toMatchObject({
      code: "config",
      message: expect.stringContaining("in two hours"),
    });
    await expect(
      l.client.enqueue("x", { delay: "in two hours" as unknown as number }),
    ).rejects.toMatchObject({
      code: "config",
    });
  });
});

describe("a send for when the turn settles", () => {
  test("is answered as deferred at once and goes out after what the turn said", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push((await ctx.enqueue("last", { when: "settled" })).status);
          l().notes.push(l().sends().length);
          await ctx.reply("first");
        }),
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["deferred", 0]);
    expect(l.screen).toEqual(["first", "last"]);
  });

  test("is not said when the turn times out", async () => {
    const l = lab({
      durability: { inbox: { turnTimeoutMs: 5_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("thanks", { when: "settled" });
          await l().sleep(60_000);
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("5m");
    expect(l.screen).toEqual([]);
    expect(await l.client.outbox.get("e1:0")).toMatchObject({
      state: "suppressed",
      reason: "turn_failed",
    });
  });

  test("keeps a time of its own", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise((ctx) => ctx.enqueue("later", { when: "settled", delay: "1h" })),
    });
    await l.ann.say("hi");
    await l.t.advance("59m");
    expect(l.screen).toEqual([]);
    await l.t.advance("1m");
    expect(l.screen).toEqual(["later"]);
  });

  test("is said exactly once though the process dies around the settle", async () => {
    for (const side of ["before", "after"] as const) {
      const l = lab({
        class: "keyed",
        setup: (bot) => bot.otherwise((ctx) => ctx.enqueue("thanks", { when: "settled" })),
      });
      l.t.crash[side]("turn.settle");
      await l.ann.say("hi");
      expect(l.screen, side).toEqual(["thanks"]);
    }
  });
});
