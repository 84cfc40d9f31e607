import { describe, expect, test } from "vitest";
import { type Context, TurnAbortedError, TurnEndedError } from "../../src/index.ts";
import { lab, only } from "./lab.ts";

/** A bot whose handler of "slow" runs into the timeout and goes on afterwards. */
function stuck(after: (ctx: Context, note: (what: unknown) => void) => Promise<unknown>) {
  return lab({
    durability: { inbox: { turnTimeoutMs: 20_000 } },
    setup: (bot, l) => {
      bot.when("slow", async (ctx) => {
        ctx.state.set("before", 1);
        ctx.signal.addEventListener("abort", () => l().notes.push(ctx.signal.reason));
        await ctx.reply("one moment");
        await l().sleep(60_000);
        ctx.state.set("after", 1);
        await after(ctx, (what) => l().notes.push(what));
      });
      bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
    },
  });
}

describe("a turn that takes too long", () => {
  test("ends: it is listed as failed, reported to its own signal, and not replayed", async () => {
    const l = stuck(async () => {});
    await l.receive([l.message("a", "slow"), l.message("b", "next")]);
    await l.t.advance("19s");
    expect(l.screen).toEqual(["one moment"]);
    await l.t.advance("1s");
    expect(l.screen).toEqual(["one moment", "ok next"]);
    await l.t.advance("5m");
    await l.t.restart();
    await l.t.advance("1h");
    expect(l.screen).toEqual(["one moment", "ok next"]);
    expect(l.notes).toEqual([expect.any(TurnAbortedError)]);
    const failed = only((await l.client.inbox.list({ state: "failed" })).rows);
    expect(failed.id).toBe("a");
    expect(failed.error).toMatch(/^TurnAbortedError: .*turnTimeoutMs/);
    expect(await l.client.inbox.get("a")).toMatchObject({ runs: 1 });
  });

  test("writes nothing when its handler ends at last", async () => {
    const l = stuck(async () => {});
    await l.ann.say("slow");
    await l.t.advance("5m");
    expect(l.t.state(l.ann, "before")).toBeUndefined();
    expect(l.t.state(l.ann, "after")).toBeUndefined();
    expect((await l.client.inbox.list({ state: "failed" })).rows).toHaveLength(1);
    expect(l.states).toEqual(["sent"]);
  });

  test("can say nothing more: every way to send throws TurnEndedError", async () => {
    const l = stuck(async (ctx, note) => {
      const tries = [
        () => ctx.reply("late"),
        () => ctx.send("late"),
        () => ctx.enqueue("late"),
        () => ctx.enqueue("late", { when: "settled" }),
        () => ctx.reply("late", { idempotencyKey: "k" }),
        () => ctx.step("late", () => ctx.reply("late")),
      ];
      for (const attempt of tries) note(await attempt().catch((error: unknown) => error));
      note((await ctx.sendBatch(["late", "later"])).status);
    });
    await l.ann.say("slow");
    await l.t.advance("5m");
    expect(l.notes.slice(1)).toEqual([
      ...Array.from({ length: 6 }, () => expect.any(TurnEndedError)),
      "failed",
    ]);
    expect(l.screen).toEqual(["one moment"]);
    expect(l.called).toEqual(["one moment"]);
  });

  test("leaves no step that a replay would take for its own", async () => {
    const l = lab({
      durability: { inbox: { turnTimeoutMs: 20_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const value = await ctx.step("slow", async () => {
            await l().sleep(60_000);
            return "late";
          });
          l().notes.push(value);
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("5m");
    expect(l.notes).toEqual([]);
    expect(l.sql("SELECT 1 FROM sqlite_master WHERE name = 'steps'")).toEqual([]);
  });

  test("still delivers what it had begun to send, and drops what it had not", async () => {
    const l = lab({
      durability: { inbox: { turnTimeoutMs: 20_000 }, outbox: { inlineMaxMs: 60_000 } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const first = ctx.reply("begun");
          const second = ctx.reply("not begun");
          await Promise.all([first, second]);
        }),
    });
    l.platform.latency = () => 25_000;
    await l.ann.post({ text: "hi" });
    await l.t.advance("5m");
    expect(l.screen).toEqual(["begun"]);
    expect(l.states).toEqual(["sent", "suppressed"]);
    expect(await l.client.outbox.get("e1:1")).toMatchObject({ reason: "turn_aborted" });
  });

  test("does not cut a message in half whose first part was already sent", async () => {
    const l = lab({
      capabilities: { text: { limit: 10, unit: "codepoints" } },
      durability: { inbox: { turnTimeoutMs: 20_000 }, outbox: { inlineMaxMs: 60_000 } },
      setup: (bot) => bot.otherwise((ctx) => ctx.reply("the first\n\nthe second\n\nthe third")),
    });
    l.platform.latency = () => 14_000;
    await l.ann.post({ text: "hi" });
    await l.t.advance("5m");
    expect(l.screen.map((text) => text.trim())).toEqual(["the first", "the second", "the third"]);
  });

  test("keeps a reminder that it had scheduled", async () => {
    const l = lab({
      durability: { inbox: { turnTimeoutMs: 20_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("reminder", { delay: "1h" });
          await l().sleep(60_000);
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("61m");
    expect(l.screen).toEqual(["reminder"]);
  });
});

test("a turn of nine minutes under a watchdog of one is not run twice and does not make alarms spin", async () => {
  const l = lab({
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push(ctx.attempt);
        await l().sleep(540_000);
        await ctx.reply("done");
      }),
  });
  await l.ann.say("hi");
  expect(l.notes).toEqual([1]);
  expect(l.screen).toEqual(["done"]);
  expect(l.t.runtime.alarmRuns).toBeLessThanOrEqual(10);
});
