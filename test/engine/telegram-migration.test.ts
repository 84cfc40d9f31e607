/** A Telegram group that becomes a supergroup while its bot is answering. */
import { expect, test } from "vitest";
import { TelegramLab } from "./telegramLab.ts";

const OLD = -4711;
const NEW = -1001234;

function counting(): TelegramLab {
  return new TelegramLab((bot, lab) => {
    bot.on("telegram:migrate_to_chat_id", () => {});
    bot.otherwise(async (ctx) => {
      const n = ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
      if (ctx.text === "slow") {
        await new Promise<void>((resolve) => lab.runtime.clock.setTimer(3_000, resolve));
      }
      await ctx.reply(`${ctx.text} ${n}`);
    });
  });
}

const service = (lab: TelegramLab, chatId: number, fields: Record<string, unknown>) =>
  lab.sim.messageUpdate({ chatId, text: "", fields: { text: undefined, ...fields } });

test("the reply arrives in the new group once; order and state are kept", async () => {
  const lab = counting();
  await lab.deliver(lab.sim.messageUpdate({ chatId: OLD, text: "first" }));
  await lab.idle();
  await lab.deliver(lab.sim.messageUpdate({ chatId: OLD, text: "slow" }));
  await lab.runtime.advance(1_000);
  lab.sim.migrate(OLD, NEW);
  await lab.deliver(service(lab, OLD, { migrate_to_chat_id: NEW }));
  await lab.deliver(service(lab, NEW, { migrate_from_chat_id: OLD }));
  await lab.deliver(lab.sim.messageUpdate({ chatId: NEW, text: "third" }));
  await lab.idle();
  await lab.runtime.advance(3_600_000);
  const sent = lab.sim.sent.map((one) => [one.chatId, one.text]);
  expect(sent).toEqual([
    [String(OLD), "first 1"],
    [String(NEW), "slow 2"],
    [String(NEW), "third 3"],
  ]);
  expect(await lab.client(NEW).state.get("n")).toBe(3);
});

test("a bot that learns of it only from the refusal answers in the new group, too", async () => {
  const lab = counting();
  await lab.deliver(lab.sim.messageUpdate({ chatId: OLD, text: "first" }));
  await lab.idle();
  await lab.deliver(lab.sim.messageUpdate({ chatId: OLD, text: "slow" }));
  lab.sim.migrate(OLD, NEW);
  await lab.idle();
  await lab.deliver(lab.sim.messageUpdate({ chatId: NEW, text: "third" }));
  await lab.idle();
  const sent = lab.sim.sent.map((one) => [one.chatId, one.text]);
  expect(sent.slice(1)).toEqual([
    [String(NEW), "slow 2"],
    [String(NEW), "third 3"],
  ]);
});
