/** Claims: what a run or an attempt that lost its claim would write, it must not write. */
import { afterEach, expect, test } from "vitest";
import { Bot } from "../../src/index.ts";
import { MockPlatform } from "../../src/testing/MockPlatform.ts";
import { mockProvider } from "../../src/testing/MockProvider.ts";
import { type TestBot, testBot } from "../../src/testing/TestBot.ts";
import { wallClock } from "../../src/time/Clock.ts";

let t: TestBot;
afterEach(() => t.close());

function mockBot(): Bot {
  const platform = new MockPlatform(wallClock, "blind");
  return new Bot({ id: "claims", channels: [mockProvider({ platform })] });
}

test("a turn whose event another life has claimed changes no state; the other run does", async () => {
  const bot = mockBot();
  bot.otherwise((ctx) => {
    ctx.state.update<number>("count", (n) => (n ?? 0) + 1);
    if (ctx.attempt > 1) return;
    const storage = t.runtime.storage("ChatActor", t.actorOf(t.user("ann")));
    storage.run(`UPDATE inbox SET claim = 'another life'`, []);
  });
  t = testBot(bot);
  await t.user("ann").say("hi");
  expect(t.state(t.user("ann"), "count")).toBe(1);
  const metrics = await t.client.chat(t.user("ann").address).metrics();
  expect(metrics.staleLeases).toBe(1);
  expect(metrics.inboundReplayed).toBe(1);
});

test("an answer that comes after the send was settled otherwise changes nothing", async () => {
  const bot = mockBot();
  const seen: string[] = [];
  bot.otherwise(async (ctx) => {
    seen.push((await ctx.reply("hello")).status);
  });
  t = testBot(bot);
  t.platform().latency = () => 500;
  t.platform().failNext({ type: "refuse", kind: "permission" });
  await t.user("ann").post({ text: "hi" });
  await t.advance(100);
  const marker = t.platform().calls[0]?.marker ?? "";
  await t.deliverStatus("mock", {
    marker,
    platformId: "p1",
    status: "delivered",
    at: t.now,
    chat: t.user("ann").chat,
  });
  await t.idle();
  const row = t.runtime
    .storage("ChatActor", t.actorOf(t.user("ann")))
    .all(`SELECT state, error FROM outbox`, []);
  expect(row).toEqual([{ state: "sent", error: null }]);
  expect(seen).toEqual(["sent"]);
});
