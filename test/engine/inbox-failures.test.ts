import { describe, expect, test } from "vitest";
import { DeliveryError, RetryTurn } from "../../src/index.ts";
import { lab, only } from "./lab.ts";

describe("a handler that throws", () => {
  test("is reported once, listed as failed, and not run again: its effects may have happened", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("charged");
          throw new Error(`boom ${ctx.attempt}`);
        }),
    });
    await l.ann.say("buy");
    await l.t.restart();
    await l.t.advance("1h");
    expect(l.screen).toEqual(["charged"]);
    expect(l.told("error")).toEqual([
      { error: new Error("boom 1"), id: "e1", chatId: "mock/mock/ann" },
    ]);
    expect(l.told("durability:dead")).toEqual([]);
    const failed = only((await l.client.inbox.list({ state: "failed" })).rows);
    expect(failed).toMatchObject({ id: "e1", state: "failed", error: "Error: boom 1" });
    expect(await l.client.inbox.get("e1")).toMatchObject({ runs: 1, state: "failed" });
  });

  test("changes no state, and takes back what it said only for the case that it settles", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          ctx.state.set("balance", 0);
          ctx.user.set("vip", true);
          await ctx.enqueue("thank you", { when: "settled" });
          await ctx.enqueue("working on it");
          throw new Error("boom");
        }),
    });
    await l.ann.say("buy");
    expect(l.screen).toEqual(["working on it"]);
    expect(l.t.state(l.ann, "balance")).toBeUndefined();
    expect(l.sql("SELECT 1 FROM sqlite_master WHERE name = 'state'")).toEqual([]);
    expect(await l.client.outbox.get("e1:0")).toMatchObject({
      state: "suppressed",
      reason: "turn_failed",
    });
  });

  test("does not stop the next message", async () => {
    const l = lab({
      setup: (bot) => {
        bot.when("bad", () => Promise.reject(new Error("boom")));
        bot.otherwise((ctx) => ctx.reply("fine"));
      },
    });
    await l.receive([l.message("a", "bad"), l.message("b", "good")]);
    await l.t.idle();
    expect(l.screen).toEqual(["fine"]);
  });

  test("and a listener that throws or hangs does not stop the chat either", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.on("error", async () => {
          l().notes.push("told");
          if (l().notes.length === 1) throw new Error("the listener is broken too");
          await new Promise(() => {});
        });
        bot.when("bad", () => Promise.reject(new Error("boom")));
        bot.otherwise((ctx) => ctx.reply("fine"));
      },
    });
    await l.receive([l.message("a", "bad"), l.message("b", "bad"), l.message("c", "good")]);
    await l.t.idle();
    expect(l.notes).toEqual(["told", "told"]);
    expect(l.screen).toEqual(["fine"]);
  });

  test("keeps secrets out of the record", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(() => Promise.reject(new Error("GET https://x/?k=s3cr3t-value-1 failed"))),
    });
    l.t.runtime.env.SHOP_API_KEY = "s3cr3t-value-1";
    await l.ann.say("hi");
    expect(only(l.events()).error).toBe("Error: GET https://x/?k=[redacted] failed");
  });

  test("can be replayed by an operator, and then changes state", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("charged");
          ctx.state.set("paid", true);
          if (l().notes.length === 0) throw new Error("boom");
          await ctx.reply("done");
        }),
    });
    await l.ann.say("buy");
    l.notes.push("fixed");
    const { ref } = only((await l.client.inbox.list({ state: "failed" })).rows);
    expect(await l.t.client.durability.replayInbound(ref)).toBe(true);
    await l.t.idle();
    expect(l.screen).toEqual(["charged", "done"]);
    expect(l.t.state(l.ann, "paid")).toBe(true);
    expect((await l.client.inbox.list({ state: "failed" })).rows).toEqual([]);
  });
});

test("a done event that is replayed sends nothing again and changes no state twice", async () => {
  const l = lab({
    setup: (bot) =>
      bot.otherwise(async (ctx) => {
        ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
        await ctx.reply("hello");
        await ctx.enqueue("later", { when: "settled" });
        await ctx.enqueue("keyed", { idempotencyKey: "k" });
      }),
  });
  await l.ann.say("hi");
  for (let n = 0; n < 2; n += 1) {
    expect(await l.client.inbox.replay("e1")).toBe(true);
    await l.t.idle();
  }
  expect([...l.screen].sort()).toEqual(["hello", "keyed", "later"]);
  expect(l.t.state(l.ann, "n")).toBe(1);
});

describe("a handler that asks to be run again", () => {
  /** Fails on the first runs, then answers. */
  const again = (fail: (run: number) => unknown, fails = 1) =>
    lab({
      setup: (bot, l) => {
        bot.when("first", async (ctx) => {
          l().notes.push({ run: ctx.attempt, replayed: ctx.replayed, at: l().now });
          ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
          await ctx.reply("trying");
          await ctx.enqueue("promised", { when: "settled" });
          if (ctx.attempt <= fails) {
            const thrown = fail(ctx.attempt);
            if (thrown instanceof Error) throw thrown;
            (ctx.nack as (...args: unknown[]) => void)(...(thrown as unknown[]));
          }
        });
        bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
      },
    });

  const waits = (notes: unknown[]) => {
    const runs = notes as { at: number }[];
    return runs.slice(1).map((run, n) => run.at - (runs[n]?.at ?? 0));
  };

  test("gets it after a backoff, with nothing said or stored twice", async () => {
    const l = again(() => new RetryTurn(), 2);
    await l.ann.say("first");
    expect(l.notes).toMatchObject([
      { run: 1, replayed: false },
      { run: 2, replayed: true },
      { run: 3, replayed: true },
    ]);
    const [one = 0, two = 0] = waits(l.notes);
    expect(one).toBeGreaterThanOrEqual(500);
    expect(one).toBeLessThanOrEqual(1_000);
    expect(two).toBeGreaterThanOrEqual(1_000);
    expect(two).toBeLessThanOrEqual(2_000);
    expect(l.screen).toEqual(["trying", "promised"]);
    expect(l.t.state(l.ann, "n")).toBe(1);
    expect(l.told("error")).toEqual([]);
    expect((await l.client.inbox.list({ state: "failed" })).rows).toEqual([]);
  });

  test("within the cap holds the messages behind it, so that order stays", async () => {
    const l = again(() => new RetryTurn({ after: "50s" }));
    await l.receive([l.message("a", "first"), l.message("b", "second")]);
    await l.t.advance("49s");
    expect(l.screen).toEqual(["trying"]);
    await l.t.idle();
    expect(waits(l.notes)).toEqual([50_000]);
    expect(l.screen).toEqual(["trying", "promised", "ok second"]);
  });

  test("much later lets the messages behind it pass, and still gets its turn on time", async () => {
    const l = again(() => new RetryTurn({ after: "2h" }));
    await l.receive([l.message("a", "first"), l.message("b", "second")]);
    await l.t.advance("1s");
    expect(l.screen).toEqual(["trying", "ok second"]);
    await l.t.restart();
    await l.t.advance("1h");
    await l.ann.say("third");
    await l.t.advance("1h");
    expect(waits(l.notes)).toEqual([7_200_000]);
    expect(l.screen).toEqual(["trying", "ok second", "ok third", "promised"]);
  });

  test("by nack is run again although it returned, and its state of the first run is dropped", async () => {
    const l = again(() => [new Error("not yet"), { after: "10s" }]);
    await l.ann.say("first");
    expect(waits(l.notes)).toEqual([10_000]);
    expect(l.screen).toEqual(["trying", "promised"]);
    expect(l.t.state(l.ann, "n")).toBe(1);
  });

  test("by nack without a time waits for the backoff", async () => {
    const l = again(() => [new Error("not yet")]);
    await l.ann.say("first");
    const [wait = 0] = waits(l.notes);
    expect(wait).toBeGreaterThanOrEqual(500);
    expect(wait).toBeLessThanOrEqual(1_000);
  });

  test("for ever is given up in the end, announced, and the chat goes on", async () => {
    const l = again(() => new RetryTurn(), 1_000);
    await l.receive([l.message("a", "first"), l.message("b", "second")]);
    await l.t.idle();
    expect(l.told("durability:dead").map((event) => event.id)).toEqual(["a"]);
    expect(l.screen).toEqual(["trying", "ok second"]);
  });
});

describe("inbox.retryHandlers", () => {
  const retrying = (error: (run: number) => Error) =>
    lab({
      durability: { inbox: { retryHandlers: true } },
      setup: (bot, l) =>
        bot.otherwise((ctx) => {
          l().notes.push(ctx.attempt);
          if (ctx.attempt < 3) throw error(ctx.attempt);
          return ctx.reply(`run ${ctx.attempt}`);
        }),
    });

  test("runs a handler that threw again, and bothers nobody if that helps", async () => {
    const l = retrying(() => new Error("flaky"));
    await l.ann.say("hi");
    expect(l.screen).toEqual(["run 3"]);
    expect(l.told("error")).toEqual([]);
  });

  test("does not repeat what can only fail again", async () => {
    const l = retrying(() => new DeliveryError("the user blocked the bot"));
    await l.ann.say("hi");
    expect(l.notes).toEqual([1]);
    expect(l.told("error")).toHaveLength(1);
    expect((await l.client.inbox.list({ state: "failed" })).rows).toHaveLength(1);
  });
});
