import { expect, test } from "vitest";
import { Bot } from "../../src/index.ts";
import { telegram } from "../../src/index.ts";
import { crashEverywhere, testBot } from "../../src/testing/index.ts";

test("bot test", async () => {
  const bot = new Bot({ id: "t", channels: [telegram()] });
  const buy = bot.action("buy", async (ctx, data: { sku: string }) => { await ctx.reply(`bought ${data.sku}`); });
  bot.command("start", (ctx) => ctx.reply({ text: "Hello", buttons: [buy.button("Buy", { sku: "x".repeat(100) })] }));
  const t = testBot(bot);
  const ann = t.user("ann");
  await ann.say("/start");
  expect(ann.screen).toEqual(["Hello"]);
  await ann.press("Buy");
  expect(ann.last).toBe(`bought ${"x".repeat(100)}`);
  expect(t.now).toBe(Date.UTC(2026, 0, 1));
});
test("crash everywhere", async () => {
  const report = await crashEverywhere({
    bot: () => {
      const bot = new Bot({ id: "t", channels: [telegram()], durability: { outbox: { onAmbiguous: "skip" } } });
      bot.otherwise(async (ctx) => {
        const n = ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
        await ctx.reply(`a${n}`);
        await ctx.step("s", async () => { await ctx.reply("in step"); });
        await ctx.reply(`b${n}`);
      });
      return bot;
    },
    run: async (t) => { const ann = t.user("ann"); await ann.say("1"); await ann.say("2"); },
  }, (t, point) => {
    const ann = t.user("ann");
    expect(t.state(ann, "n")).toBe(2);
    const amb = t.announced.filter((a) => a.kind === "durability:ambiguous").length;
    const all = ["a1", "in step", "b1", "a2", "in step", "b2"];
    if (amb === 0) expect(ann.screen).toEqual(all);
    else { expect(ann.screen.length).toBeGreaterThanOrEqual(5); expect(point?.label).toMatch(/channel.send|outbox.insert|outbox.mark/); }
  });
  console.log(report.points.length);
});
