/** The engine with the real Telegram channel, against a simulated Bot API that checks what it is sent. */
import { afterEach, expect, test } from "vitest";
import { Bot, telegram } from "../../src/index.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { chatActorName } from "../../src/objects/names.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { SIM_TOKEN, SimTelegram } from "../../src/testing/platforms/telegram.ts";

let runtime: NodeRuntime;
afterEach(() => runtime.close());

/** Says something to a bot that answers with `answer`, in Markdown, and lets time pass. */
async function told(sim: SimTelegram, answer: string): Promise<void> {
  const bot = new Bot({ id: "tg", channels: [telegram()] });
  bot.otherwise(async (ctx) => {
    await ctx.reply({ text: answer, format: "markdown" });
  });
  runtime = new NodeRuntime({
    env: { TELEGRAM_BOT_TOKEN: SIM_TOKEN, TELEGRAM_WEBHOOK_SECRET: "s" },
    make: (host, kind, name) =>
      kind === "Registry" ? new RegistryBook(host) : new Chat(host, bot, name),
    fetch: (request) => sim.fetch(request),
  });
  const chat = { id: "77", kind: "direct" };
  const event = {
    id: "1",
    kind: "message",
    channel: "telegram",
    connection: "telegram",
    chat,
    at: 1,
    text: "hi",
  };
  const request = {
    connection: "telegram",
    channel: "telegram",
    chat,
    items: [{ type: "event", event }],
  };
  await runtime.call(
    "ChatActor",
    chatActorName(bot.scope, "telegram", "77"),
    "receive",
    JSON.stringify(request),
  );
  for (let second = 0; second < 60; second += 1) {
    // The simulated platform answers in real turns of the event loop, not in virtual time.
    await new Promise((resolve) => setImmediate(resolve));
    await runtime.advance(1_000);
  }
}

test("text with an unclosed asterisk arrives as it was written", async () => {
  const sim = new SimTelegram();
  await told(sim, "2 * 3 and *never closed");
  expect(sim.sent.map((one) => one.text)).toEqual(["2 * 3 and *never closed"]);
});

test("text whose formatting Telegram refuses arrives as plain text, once", async () => {
  const sim = new SimTelegram();
  sim.fault({
    type: "refuse",
    status: 400,
    description: "Bad Request: can't parse entities: unsupported",
    times: 1,
  });
  await told(sim, "**bold** words");
  expect(sim.sent.map((one) => one.text)).toEqual(["bold words"]);
  expect(sim.sent[0]?.body).not.toHaveProperty("entities");
});

test("a message to a group that was upgraded arrives in its new chat, once", async () => {
  const sim = new SimTelegram();
  sim.fault({
    type: "refuse",
    status: 400,
    description: "Bad Request: group chat was upgraded to a supergroup chat",
    parameters: { migrate_to_chat_id: -100_500 },
    times: 1,
  });
  await told(sim, "hello all");
  expect(sim.sent.map((one) => [one.chatId, one.text])).toEqual([["-100500", "hello all"]]);
});
