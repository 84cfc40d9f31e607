/** `npm run telegram:simulated` as a process: what it prints, what a bot gets, what a person sees of the bot. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { freePortFrom } from "./ports.ts";

const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});

async function start() {
  const port = await freePortFrom(31_000 + Math.floor(Math.random() * 10_000), "127.0.0.1");
  const script = join(import.meta.dirname, "simulatedTelegram.ts");
  const child = spawn(process.execPath, [script, `--port=${port}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  running.push(child);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const prints = async (text: string) => {
    const deadline = Date.now() + 10_000;
    while (!output.includes(text)) {
      if (Date.now() > deadline) throw new Error(`"${text}" was not printed:\n${output}`);
      await delay(10);
    }
  };
  await prints("Ctrl-C");
  const variable = (name: string) => new RegExp(`^${name}=(.+)$`, "m").exec(output)?.[1] ?? "";
  const api = `${variable("TELEGRAM_API_BASE")}/bot${variable("TELEGRAM_BOT_TOKEN")}`;
  return {
    child,
    prints,
    output: () => output,
    types: (line: string) => child.stdin.write(`${line}\n`),
    /** A call of the bot. */
    call: async (method: string, params: object) => {
      const response = await fetch(`${api}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(params),
      });
      return ((await response.json()) as { result: unknown }).result;
    },
  };
}

interface Update {
  update_id: number;
  message?: { text: string; chat: { id: number } };
  callback_query?: { id: string; data: string };
}

test("a line is a message to the bot; what the bot says, edits and deletes is printed, and its buttons work", async () => {
  const telegram = await start();
  telegram.types("hello");
  const [first] = (await telegram.call("getUpdates", { timeout: 5 })) as Update[];
  expect(first?.message?.text).toBe("hello");
  const chat = first?.message?.chat.id;
  const keyboard = { inline_keyboard: [[{ text: "large", callback_data: "pizza:large" }]] };
  const sent = (await telegram.call("sendMessage", {
    chat_id: chat,
    text: "Hungry?",
    reply_markup: keyboard,
  })) as { message_id: number };
  await telegram.prints("bot: Hungry? [large]\n");

  telegram.types("[small]");
  await telegram.prints("shows no button [small]");
  telegram.types("[large]");
  const offset = (first?.update_id ?? 0) + 1;
  const [press] = (await telegram.call("getUpdates", { timeout: 5, offset })) as Update[];
  expect(press?.callback_query?.data).toBe("pizza:large");
  const id = press?.callback_query?.id;
  await telegram.call("answerCallbackQuery", { callback_query_id: id, text: "Right away" });
  await telegram.prints("over the chat: Right away\n");
  const message = { chat_id: chat, message_id: sent.message_id };
  await telegram.call("editMessageText", { ...message, text: "Large it is" });
  await telegram.prints("bot, edited: Large it is\n");
  await telegram.call("deleteMessage", message);
  await telegram.prints("bot, deleted: Large it is\n");
  expect(telegram.output().match(/Hungry/g)).toHaveLength(1);
});

test("a later run is another chat with later updates, so that a bot takes nothing for old news", async () => {
  const seen: Update[] = [];
  for (const _run of [1, 2]) {
    const telegram = await start();
    telegram.types("hello");
    seen.push(...((await telegram.call("getUpdates", { timeout: 5 })) as Update[]));
    telegram.child.kill("SIGTERM");
    await new Promise((done) => telegram.child.once("close", done));
    // Ids come from the clock, by the second.
    await delay(1_100);
  }
  const [first, second] = seen;
  expect(second?.update_id).toBeGreaterThan(first?.update_id ?? Number.POSITIVE_INFINITY);
  expect(second?.message?.chat.id).not.toBe(first?.message?.chat.id);
});
