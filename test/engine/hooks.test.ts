/** What runs before and after a send. */
import { describe, expect, test } from "vitest";
import type { Bot } from "../../src/index.ts";
import { type Lab, lab } from "./lab.ts";

/** A handler that dies once after its first reply, in its first run. */
const dieOnce = async (l: Lab) => {
  await l.sleep(1);
  l.t.runtime.kill();
  await new Promise(() => {});
};

describe('before("send")', () => {
  test("may change what is said, once: a replay of the turn does not change it again", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", (send) => {
          l().notes.push(send.key);
          send.content = { text: `[${String(send.content)}]` };
        });
        bot.otherwise(async (ctx) => {
          await ctx.reply("hello");
          if (ctx.attempt === 1) await dieOnce(l());
          await ctx.reply("bye");
        });
      },
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["e1:0", "e1:1"]);
    expect(l.screen).toEqual(["[hello]", "[bye]"]);
    expect((await l.metrics()).outboxDiverged).toBe(0);
  });

  test("may stop a send: it is recorded as suppressed, and its caller is told why", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", (send) => {
          if (send.content === "ad") send.cancel("opted out");
        });
        bot.otherwise(async (ctx) => {
          for (const text of ["ad", "news"]) {
            const { status, reason, key } = await ctx.reply(text);
            l().notes.push(`${key} ${status} ${reason ?? ""}`.trim());
          }
          if (ctx.attempt === 1) await dieOnce(l());
        });
      },
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["news"]);
    expect(l.notes).toEqual([
      "e1:0 suppressed opted out",
      "e1:1 sent",
      "e1:0 suppressed opted out",
      "e1:1 sent",
    ]);
    expect(await l.client.outbox.get("e1:0")).toMatchObject({
      state: "suppressed",
      reason: "opted out",
    });
  });

  test("that is slow does not turn the order of sends around", async () => {
    let wait = 100;
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", async () => {
          wait -= 40;
          await l().sleep(Math.max(1, wait));
        });
        bot.otherwise((ctx) => Promise.all(["a", "b", "c"].map((text) => ctx.reply(text))));
      },
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b", "c"]);
  });

  test("that throws fails this send and no other", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", (send) => {
          if (send.content === "bad") throw new Error("no");
        });
        bot.otherwise(async (ctx) => {
          l().notes.push(await ctx.reply("bad").catch((error: unknown) => String(error)));
          await ctx.reply("good");
        });
      },
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["Error: no"]);
    expect(l.screen).toEqual(["good"]);
  });

  test("runs for sends of clients, too, and sees where they go", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", (send) =>
          l().notes.push([send.address.chat, send.origin, send.content]),
        );
      },
    });
    await l.client.enqueue("hello");
    await l.t.idle();
    expect(l.notes).toEqual([["ann", "bot", "hello"]]);
  });

  test("that outlives its turn's time says nothing more", async () => {
    const l = lab({
      durability: { inbox: { turnTimeoutMs: 1_000 } },
      setup: (bot, l) => {
        bot.before("send", () => l().sleep(5_000));
        bot.otherwise((ctx) => ctx.reply("late"));
      },
    });
    await l.ann.say("hi");
    await l.t.advance("1m");
    expect(l.screen).toEqual([]);
    expect(l.sends()).toEqual([]);
  });
});

describe('after("send")', () => {
  const counting = (bot: Bot, l: () => Lab) => {
    bot.after("send", (event) => {
      l().notes.push(`${event.key} ${event.receipt.primaryId}`);
    });
    bot.otherwise((ctx) => ctx.reply("hello"));
  };

  test("runs once for each part, with its receipt", async () => {
    const l = lab({
      capabilities: { text: { limit: 10, unit: "codepoints" } },
      setup: (bot, l) => {
        counting(bot, l);
        bot.when("long", () => {});
      },
    });
    await l.client.enqueue("the first\n\nthe second", { idempotencyKey: "k" });
    await l.t.idle();
    expect(l.notes).toEqual(["k m1", "k#2 m2"]);
  });

  test.each([
    ["before", "listener"],
    ["after", "outbox.markSent"],
    ["after", "listener"],
    ["before", "outbox.announced"],
  ] as const)("runs at least once when the process dies %s %s", async (side, label) => {
    const l = lab({ setup: counting });
    l.t.crash[side](label);
    await l.ann.say("hi");
    await l.t.idle();
    expect(l.screen).toEqual(["hello"]);
    expect(l.notes.length).toBeGreaterThanOrEqual(1);
    expect(new Set(l.notes)).toEqual(new Set(["e1:0 m1"]));
  });

  test("is tried again while it throws, until it does not, and holds nothing", async () => {
    let broken = true;
    const l = lab({
      setup: (bot, l) => {
        bot.after("send", (event) => {
          l().notes.push(event.key);
          if (broken) throw new Error("no");
        });
        bot.otherwise((ctx) => ctx.reply(ctx.text));
      },
    });
    await l.ann.post({ text: "a" });
    await l.ann.post({ text: "b" });
    await l.t.advance("4s");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.notes.filter((key) => key === "e1:0").length).toBeGreaterThan(1);
    broken = false;
    await l.t.idle();
    const calls = l.notes.length;
    await l.t.advance("1d");
    expect(l.notes).toHaveLength(calls);
    expect(l.sends().map((row) => [row.due_at, row.owed])).toEqual([
      [null, 0],
      [null, 0],
    ]);
  });

  test("runs for what a lookup found", async () => {
    const l = lab({ class: "provable", setup: counting });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["e1:0 m1"]);
  });
});
