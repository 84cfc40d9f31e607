/** The example bot: this is the file to edit. */
import { Bot, telegram, webchat } from "holdfast";

export const bot = new Bot({ id: "example", channels: [webchat(), telegram()] });

bot.command("start", (ctx) => ctx.reply("Hello! Say something, or press /count."));

bot.command("count", async (ctx) => {
  const count = ctx.state.update<number>("count", (n) => (n ?? 0) + 1);
  await ctx.reply(`You have counted to ${count}.`);
});

bot.otherwise((ctx) => ctx.reply(`You said: ${ctx.text}`));
