/** The bot of the README: this is the file to edit. */
import { Bot, telegram, webchat } from "holdfast";

export const bot = new Bot({ id: "pizza", channels: [webchat(), telegram()] });

const order = bot.action("order", async (ctx, data: { size: string }) => {
  const count = ctx.state.update<number>("orders", (n) => (n ?? 0) + 1);
  await ctx.reply(`One ${data.size} pizza. That is order ${count} in this chat.`);
});
const sizes = ["small", "large"].map((size) => order.button(size, { size }));
bot.command("start", (ctx) => ctx.reply({ text: "Hungry?", buttons: sizes }));
bot.when("remind me", (ctx) => ctx.enqueue("Pizza time!", { delay: "10m" }));
bot.otherwise((ctx) => ctx.reply(`You said: ${ctx.text}`));
