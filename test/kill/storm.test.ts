/**
 * Many messages through many kills. What the platform accepted, what the bot announced and what the
 * journals say are three ledgers of the same sends; they are compared key by key.
 *
 * `HOLDFAST_KILL_SEED=<n>` plays another storm. The seed decides messages and moments; the machine
 * decides what a moment hits, so a failure prints the difference, not only the seed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { seededRandom } from "../../src/testing/random.ts";
import { BotProcess, until } from "./BotProcess.ts";

const CHATS = 20;
const MESSAGES_PER_CHAT = 10;
const KILLS = 25;
const LEASE_MS = 600;
const seed = Number(process.env.HOLDFAST_KILL_SEED ?? 20_261_130);

/** One message of the storm. */
interface Plan {
  text: string;
  /** Not before this many kills, so that there is traffic in every life. */
  afterKills: number;
  thinkMs: number;
}

function planOf(random: () => number): Plan[][] {
  return Array.from({ length: CHATS }, () =>
    Array.from({ length: MESSAGES_PER_CHAT }, (_unused, n) => ({
      text: random() < 0.3 ? "/two" : "hello",
      afterKills: Math.floor((n * KILLS) / MESSAGES_PER_CHAT),
      thinkMs: Math.floor(random() * 150),
    })),
  );
}

it(`loses, doubles and miscounts nothing in 200 messages and 25 kills (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const plans = planOf(random);
  const slowly = () => delay(Math.floor(random() * 25));
  await using bot = new BotProcess({
    leaseMs: LEASE_MS,
    // A window before and after the platform's own work, for a kill to fall into.
    network: { before: slowly, after: slowly },
  });
  await bot.start();

  let kills = 0;
  const delivered = new Map<string, { chatId: number; text: string; tries: number }>();
  const storm = async () => {
    while (kills < KILLS) {
      await delay(40 + Math.floor(random() * 260));
      await bot.workerd.restart();
      kills += 1;
    }
  };
  const chat = async (plan: readonly Plan[], chatId: number) => {
    for (const { text, afterKills, thinkMs } of plan) {
      await until(() => kills >= afterKills || undefined, 50_000);
      await delay(thinkMs);
      const update = bot.sim.messageUpdate({ chatId, text });
      const tries = await bot.deliverSurely(update);
      delivered.set(String(update.update_id), { chatId, text, tries });
    }
  };
  await Promise.all([storm(), ...plans.map((plan, at) => chat(plan, 1_000 + at))]);

  const looks = await Promise.all(plans.map((_plan, at) => bot.settles(1_000 + at, 20_000)));

  // The platform's ledger and the bot's announcements, by key.
  const said = new Map<string, number>();
  for (const { text } of bot.sim.sent) {
    const key = text.split(" ")[0] ?? "";
    said.set(key, (said.get(key) ?? 0) + 1);
  }
  const announced = new Set(bot.ambiguous.map((event) => event.key));
  const differences: string[] = [];
  for (const [id, { chatId, text, tries }] of delivered) {
    for (const key of text === "/two" ? [`${id}:0`, `${id}:1`] : [`${id}:0`]) {
      const times = said.get(key) ?? 0;
      said.delete(key);
      const state = (await bot.record(chatId, key))?.state ?? "absent";
      const doubt = announced.delete(key);
      const right = doubt ? state === "unknown" && times <= 1 : state === "sent" && times === 1;
      if (!right) {
        const starts = bot.starts.filter((start) => start.id === id).length;
        differences.push(
          `${key} in chat ${chatId}: accepted ${times} times, journal says ${state}, ${doubt ? "" : "not "}announced, ${starts} starts, ${tries} tries to deliver`,
        );
      }
    }
  }
  for (const [key, times] of said) differences.push(`${key}: accepted ${times} times, never asked`);
  for (const key of announced) differences.push(`${key}: announced, never asked`);
  for (const { id, error } of bot.dead) differences.push(`${id}: dead: ${error}`);
  for (const [at, { count }] of looks.entries()) {
    if (count !== MESSAGES_PER_CHAT) differences.push(`chat ${1_000 + at} counted ${count}`);
  }
  // In each chat in the order in which they were written.
  for (const [at] of plans.entries()) {
    const keys = bot.said(1_000 + at).map((text) => text.split(" ")[0] ?? "");
    if (keys.join() !== [...keys].sort(byPlace).join()) {
      differences.push(`chat ${1_000 + at} out of order: ${keys.join(" ")}`);
    }
  }
  const again = [...delivered.keys()].filter(
    (id) => bot.starts.filter((start) => start.id === id).length > 1,
  );
  const doubts = new Set(bot.ambiguous.map((event) => event.key));
  console.log(
    `storm ${seed}: ${delivered.size} messages, ${kills} kills, ${again.length} turns replayed, ` +
      `${doubts.size} sends in doubt, ${[...delivered.values()].filter((one) => one.tries > 1).length} deliveries repeated`,
  );
  expect(differences, `seed ${seed}:\n${differences.join("\n")}`).toEqual([]);
  expect(delivered.size).toBe(CHATS * MESSAGES_PER_CHAT);
  // A storm that hit nothing proves nothing.
  expect(again.length).toBeGreaterThan(10);
  expect(doubts.size).toBeGreaterThan(0);
}, 59_000);

function byPlace(a: string, b: string): number {
  const [aId = 0, aN = 0] = a.split(":").map(Number);
  const [bId = 0, bN = 0] = b.split(":").map(Number);
  return aId - bId || aN - bN;
}
