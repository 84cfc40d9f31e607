/**
 * Ten seconds in which the platform answers nothing well, on the real runtime: rate limits, errors of
 * its own, dropped connections. Afterwards everything is delivered, and every repeat was announced.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import type { FaultEffect } from "../../src/testing/platforms/telegram.ts";
import { seededRandom } from "../../src/testing/random.ts";
import { BotProcess, until } from "./BotProcess.ts";

const OUTAGE_MS = 10_000;
const CHATS = 6;
const MESSAGES = 3;
const seed = Number(process.env.HOLDFAST_KILL_SEED ?? 7);

/** One call of `sendMessage`, as the platform answered it. */
interface Call {
  at: number;
  chatId: string;
  key: string;
  /** `ok`, or the fault that hit it. */
  outcome: string;
}

it(`delivers everything after ten seconds of refusals, and announces every repeat (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await using bot = new BotProcess();
  await bot.start();
  const calls: Call[] = [];
  const until10s = Date.now() + OUTAGE_MS;
  bot.sim.fault(({ method, params }) => {
    const effect = Date.now() < until10s ? faultOf(random(), Number(params.chat_id)) : undefined;
    if (method === "sendMessage") {
      const key = String(params.text).split(" ")[0] ?? "";
      const outcome = effect === undefined ? "ok" : effect.type;
      calls.push({ at: Date.now(), chatId: String(params.chat_id), key, outcome });
    }
    return effect;
  });

  const ids: string[] = [];
  const chats = Array.from({ length: CHATS }, (_unused, at) => 2_000 + at);
  await Promise.all(
    chats.map(async (chatId) => {
      for (let n = 0; n < MESSAGES; n += 1) {
        ids.push(await bot.say(chatId, `message ${n}`));
        await delay(Math.floor(random() * 2_000));
      }
    }),
  );
  await until(() => Date.now() > until10s || undefined, OUTAGE_MS + 1_000);
  const keys = ids.map((id) => `${id}:0`);
  const timesSaid = (key: string) =>
    bot.sim.sent.filter((message) => message.text.startsWith(`${key} `)).length;
  await until(() => keys.every((key) => timesSaid(key) > 0) || undefined, 15_000).catch(() => {});
  for (const chatId of chats) await bot.settles(chatId, 10_000);

  const announced = new Map(bot.ambiguous.map((event) => [event.key, event]));
  const differences: string[] = [];
  for (const key of keys) {
    const mine = calls.filter((call) => call.key === key);
    const story = `${key}: ${mine.map((call) => call.outcome).join(" ")}`;
    if (timesSaid(key) !== 1) differences.push(`${story}; accepted ${timesSaid(key)} times`);
    // A repeat of a call that may have got through is one that somebody must be told of.
    const repeated = mine.slice(0, -1).some((call) => call.outcome !== "rateLimit");
    const event = announced.get(key);
    if (repeated && event?.action !== "resent") differences.push(`${story}; not announced`);
    if (!repeated && event !== undefined) differences.push(`${story}; announced for nothing`);
  }
  // "Retry after 1" is a promise: nothing else may be sent to that chat before.
  for (const limited of calls.filter((call) => call.outcome === "rateLimit")) {
    const early = calls.find(
      (call) =>
        call.chatId === limited.chatId && call.at > limited.at && call.at < limited.at + 1_000,
    );
    if (early !== undefined) {
      differences.push(`${early.key}: sent ${early.at - limited.at} ms after "retry after 1 s"`);
    }
  }
  for (const chatId of chats) {
    const order = bot.said(chatId).map((text) => Number.parseInt(text, 10));
    if (order.join() !== [...order].sort((a, b) => a - b).join()) {
      differences.push(`chat ${chatId} out of order: ${order.join(" ")}`);
    }
  }
  for (const { id, error } of bot.dead) differences.push(`${id}: dead: ${error}`);
  const count = (outcome: string) => calls.filter((call) => call.outcome === outcome).length;
  const kinds = ["rateLimit", "5xx", "drop", "ok"];
  console.log(
    `refusals ${seed}: ${kinds.map((kind) => `${count(kind)} ${kind}`).join(", ")}; ` +
      `${announced.size} repeats announced`,
  );
  expect(differences, `seed ${seed}:\n${differences.join("\n")}`).toEqual([]);
  // Refusals that did not happen prove nothing.
  expect(kinds.filter((kind) => count(kind) === 0)).toEqual([]);
}, 45_000);

/** Mostly "later"; else an error of its own in one half of the chats, a dropped connection in the other. */
function faultOf(roll: number, chatId: number): FaultEffect {
  if (roll < 0.7) return { type: "rateLimit", retryAfter: 1 };
  return chatId % 2 === 0 ? { type: "5xx", status: 502 } : { type: "drop" };
}
