/** Cases that an attack from outside has found: each lost, doubled or looped something. */
import { afterEach, describe, expect, test } from "vitest";
import { Bot, type DurabilityOptions, RetryTurn } from "../../src/index.ts";
import { MockPlatform } from "../../src/testing/MockPlatform.ts";
import { mockProvider } from "../../src/testing/MockProvider.ts";
import { type TestBot, testBot } from "../../src/testing/TestBot.ts";
import { wallClock } from "../../src/time/Clock.ts";
import { parseDuration } from "../../src/time/duration.ts";

let t: TestBot;
afterEach(() => t?.close());

function blind(durability: DurabilityOptions = {}): Bot {
  const platform = new MockPlatform(wallClock, "blind");
  return new Bot({ id: "hard", channels: [mockProvider({ platform })], durability });
}

describe("a step that is answered from its record", () => {
  test("says what it had not yet got out, when its turn runs again", async () => {
    const bot = blind();
    bot.otherwise(async (ctx) => {
      await ctx.step("tell", async () => {
        await ctx.reply("first");
        await ctx.reply("second");
        await ctx.enqueue("at the end", { when: "settled" });
      });
      if (ctx.attempt === 1) throw new RetryTurn({ after: "1s" });
    });
    t = testBot(bot);
    t.platform().failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 60_000 });
    await t.user("ann").say("hi");
    await t.advance("5m");
    expect(t.user("ann").screen.sort()).toEqual(["at the end", "first", "second"]);
  });

  test("after a try that threw does its work once, also when the turn runs again", async () => {
    const bot = blind();
    let charges = 0;
    bot.otherwise(async (ctx) => {
      for (let tries = 0; tries < 2; tries += 1) {
        try {
          await ctx.step("pay", () => {
            if (tries === 0 && ctx.attempt === 1) throw new Error("the till is closed");
            charges += 1;
          });
          break;
        } catch {
          // Tried once more.
        }
      }
      if (ctx.attempt === 1) throw new RetryTurn({ after: "1s" });
    });
    t = testBot(bot);
    await t.user("ann").say("hi");
    expect(charges).toBe(1);
  });
});

test("a listener whose notice cannot be delivered is not told of that, and again, for ever", async () => {
  const bot = blind();
  let told = 0;
  bot.on("durability:dead", async (_event, { client }) => {
    told += 1;
    await client.chat({ channel: "mock", chat: "ops" }).send("something died");
  });
  bot.otherwise((ctx) => ctx.reply("hello"));
  t = testBot(bot);
  t.platform().fault = () => ({ type: "refuse", kind: "recipient_unreachable" });
  await t.user("ann").post({ text: "hi" });
  await t.advance("1m");
  expect(told).toBeLessThan(10);
  expect(t.platform().calls.length).toBeLessThan(12);
});

test("durations and waits that are no whole milliseconds are no reason to lose a message", async () => {
  expect(parseDuration("4.1m")).toBe(246_000);
  const bot = blind();
  bot.otherwise(async (ctx) => {
    await ctx.enqueue("reminder", { delay: 1_000.4 });
    await ctx.reply("hello");
  });
  t = testBot(bot);
  t.platform().failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 1_001.5 });
  await t.user("ann").say("hi");
  await t.advance("1m");
  expect(t.user("ann").screen.sort()).toEqual(["hello", "reminder"]);
});

test("what a failed turn took back is said by the replay that succeeds", async () => {
  const bot = blind();
  let broken = true;
  bot.otherwise(async (ctx) => {
    await ctx.enqueue("thank you", { when: "settled" });
    if (broken) throw new Error("a bug");
  });
  t = testBot(bot);
  await t.user("ann").say("hi");
  expect(t.user("ann").screen).toEqual([]);
  broken = false;
  expect(await t.client.chat(t.user("ann").address).inbox.replay("e1")).toBe(true);
  await t.idle();
  expect(t.user("ann").screen).toEqual(["thank you"]);
});

test("a replay of a done event leaves a reminder that was set since alone", async () => {
  const bot = blind();
  bot.otherwise(async (ctx) => {
    await ctx.enqueue(ctx.text, { delay: "1h", idempotencyKey: "alarm", onConflict: "replace" });
  });
  t = testBot(bot);
  await t.user("ann").say("at 10");
  await t.user("ann").say("at 11");
  await t.client.chat(t.user("ann").address).inbox.replay("e1");
  await t.advance("2h");
  expect(t.user("ann").screen).toEqual(["at 11"]);
});

test("a listener that hangs holds no later send", async () => {
  const bot = blind();
  bot.after("send", () => new Promise(() => {}));
  bot.otherwise(async (ctx) => {
    await ctx.reply(ctx.text);
    await ctx.enqueue(`${ctx.text} later`, { delay: "10s" });
  });
  t = testBot(bot);
  for (let n = 0; n < 40; n += 1) await t.user("ann").post({ text: `m${n}` });
  await t.advance("1m");
  expect(t.user("ann").screen).toHaveLength(80);
});

describe("a fetch of the bot", () => {
  test("goes to the test that runs it", async () => {
    const bot = blind();
    bot.otherwise(async (ctx) => {
      const answer = await fetch("https://example.com/rate");
      await ctx.reply(await answer.text());
    });
    t = testBot(bot, { fetch: async (request) => new Response(`from ${request.url}`) });
    await t.user("ann").say("hi");
    expect(t.user("ann").screen).toEqual(["from https://example.com/rate"]);
  });

  test("that no test answers throws with its URL, instead of reaching the network", async () => {
    const bot = blind();
    bot.otherwise(async () => {
      await fetch("https://example.com/rate");
    });
    t = testBot(bot);
    await t.user("ann").say("hi");
    const errors = t.announced.flatMap((one) =>
      one.kind === "error" ? [String(one.event.error)] : [],
    );
    expect(errors).toEqual([expect.stringContaining("https://example.com/rate")]);
  });
});

test("a replay that says something else while hooks run keeps the key of its place", async () => {
  const bot = blind();
  bot.before("send", async () => {});
  bot.otherwise(async (ctx) => {
    const said = ctx.reply(ctx.attempt === 1 ? "old" : "new");
    if (ctx.attempt === 1) {
      await new Promise((resolve) => t.runtime.clock.setTimer(1_000, () => resolve(undefined)));
      throw new RetryTurn({ after: "1s" });
    }
    expect((await said).key).toBe("e1:0");
  });
  t = testBot(bot, {});
  t.platform().failNext({ type: "refuse", kind: "transient", retryAfterMs: 60_000 });
  await t.user("ann").say("hi");
  await t.advance("1m");
  expect(t.user("ann").screen).toEqual(["new"]);
  expect(t.announced).toEqual([]);
});
