/** A request that may have been sent is repeated as it was: a keyed platform compares the body. */
import { afterEach, expect, test } from "vitest";
import type { Channel } from "../../src/channels/channel.ts";
import { Bot } from "../../src/index.ts";
import { MockPlatform } from "../../src/testing/MockPlatform.ts";
import { mockProvider } from "../../src/testing/MockProvider.ts";
import { type TestBot, testBot } from "../../src/testing/TestBot.ts";
import { wallClock } from "../../src/time/Clock.ts";

let t: TestBot;
afterEach(() => t.close());

/** Makes the channel render otherwise, as a deploy of other code does. */
function renderOtherwise(channel: Channel): void {
  const { render } = channel.outbound;
  channel.outbound.render = (content, target) =>
    render(content, target).map((part) => ({
      ...part,
      request: { ...part.request, text: "rendered by newer code" },
    }));
}

function keyedBot(): Bot {
  const platform = new MockPlatform(wallClock, "keyed");
  const bot = new Bot({ id: "frozen", channels: [mockProvider({ platform })] });
  bot.when("now", async (ctx) => {
    await ctx.reply("as first said");
  });
  bot.when("later", async (ctx) => {
    await ctx.enqueue("as first said", { delay: "10s" });
  });
  return bot;
}

test("a repeat after a lost answer carries the same text, though a deploy renders it otherwise", async () => {
  t = testBot(keyedBot());
  t.platform().failNext({ type: "drop" }, { type: "drop" });
  await t.user("ann").post({ text: "now" });
  await t.advance(100);
  renderOtherwise(t.channel("mock"));
  await t.restart();
  expect(t.platform().calls.length).toBeGreaterThan(1);
  expect(new Set(t.platform().calls.map((call) => `${call.text} ${call.marker}`)).size).toBe(1);
  expect(t.user("ann").screen).toEqual(["as first said"]);
});

test("what was never tried is rendered by the code that sends it", async () => {
  t = testBot(keyedBot());
  await t.user("ann").say("later");
  t.runtime.kill();
  renderOtherwise(t.channel("mock"));
  await t.advance("1m");
  expect(t.user("ann").screen).toEqual(["rendered by newer code"]);
});
