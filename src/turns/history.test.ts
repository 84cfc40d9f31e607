/** What a language model is told of a chat. */
import { describe, expect, test } from "vitest";
import { Lab } from "../../test/engine/lab.ts";
import type { ModelMessage } from "./history.ts";

describe("history as model messages", () => {
  test("who said what, oldest first, this turn's message last", async () => {
    const told: ModelMessage[][] = [];
    const lab = new Lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          told.push((await ctx.history()).toModelMessages());
          await ctx.reply(`about ${ctx.text}`);
        }),
    });
    await lab.ann.say("one");
    await lab.t.advance("1s");
    await lab.ann.say("two");
    expect(told).toEqual([
      [{ role: "user", content: "one" }],
      [
        { role: "user", content: "one" },
        { role: "assistant", content: "about one" },
        { role: "user", content: "two" },
      ],
    ]);
  });

  test("what nobody heard is not told, long messages are one, and both sides take turns", async () => {
    const told: ModelMessage[][] = [];
    const lab = new Lab({
      capabilities: { text: { limit: 40, unit: "codepoints" } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          if (ctx.text === "now") told.push((await ctx.history()).toModelMessages());
          if (ctx.text === "long") await ctx.reply("word ".repeat(20).trim());
          if (ctx.text === "dead") await ctx.reply("never").catch(() => undefined);
        }),
    });
    lab.platform.fault = (call) =>
      call.text === "never" ? { type: "refuse", kind: "permission" } : undefined;
    for (const text of ["long", "dead", "more", "now"]) {
      await lab.ann.say(text);
      await lab.t.advance("1s");
    }
    expect(told[0]).toEqual([
      { role: "user", content: "long" },
      { role: "assistant", content: "word ".repeat(20).trim() },
      { role: "user", content: "dead\nmore\nnow" },
    ]);
  });
});
