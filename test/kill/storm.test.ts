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
import { BotProcess, type BotSetup, type Look, until } from "./BotProcess.ts";

const LEASE_MS = 600;
const FIRST_CHAT = 1_000;
const seed = Number(process.env.HOLDFAST_KILL_SEED ?? 20_261_130);

/** How much happens. */
interface Size {
  chats: number;
  messagesPerChat: number;
  kills: number;
}

/** One message of the storm. */
interface Plan {
  chatId: number;
  text: string;
  /** Not before this many kills, so that there is traffic in every life. */
  afterKills: number;
  thinkMs: number;
}

/** A message that the Worker took. */
interface Delivered extends Plan {
  id: string;
  tries: number;
}

function plansOf(size: Size, random: () => number): Plan[][] {
  return Array.from({ length: size.chats }, (_chat, at) =>
    Array.from({ length: size.messagesPerChat }, (_message, n) => ({
      chatId: FIRST_CHAT + at,
      text: random() < 0.3 ? "/two" : "hello",
      afterKills: Math.floor((n * size.kills) / size.messagesPerChat),
      thinkMs: Math.floor(random() * 150),
    })),
  );
}

/** Keys of what a message is answered with. */
function keysOf({ id, text }: Delivered): string[] {
  return text === "/two" ? [`${id}:0`, `${id}:1`] : [`${id}:0`];
}

/** The key in a reply's text. */
function keyIn(text: string): string {
  return text.split(" ")[0] ?? "";
}

/** Plays a storm, waits until every chat has settled, and returns what the Worker took. */
async function storm(
  bot: BotProcess,
  size: Size,
  random: () => number,
): Promise<{ delivered: Delivered[]; looks: Map<number, Look> }> {
  const plans = plansOf(size, random);
  const delivered: Delivered[] = [];
  let kills = 0;
  const kill = async () => {
    while (kills < size.kills) {
      await delay(40 + Math.floor(random() * 260));
      await bot.workerd.restart();
      kills += 1;
    }
  };
  const write = async (messages: readonly Plan[]) => {
    for (const plan of messages) {
      await until(() => kills >= plan.afterKills || undefined, 50_000);
      await delay(plan.thinkMs);
      const update = bot.sim.messageUpdate({ chatId: plan.chatId, text: plan.text });
      const tries = await bot.deliverSurely(update);
      delivered.push({ ...plan, id: String(update.update_id), tries });
    }
  };
  await Promise.all([kill(), ...plans.map(write)]);
  const looks = new Map<number, Look>();
  await Promise.all(
    plans.map(async (_messages, at) => {
      looks.set(FIRST_CHAT + at, await bot.settles(FIRST_CHAT + at, 20_000));
    }),
  );
  return { delivered, looks };
}

/** What a send may look like in the three ledgers. */
type Rule = (send: { times: number; state: string; announced: boolean }) => boolean;

/** Compares the ledgers; a line for each difference. */
async function differencesOf(
  bot: BotProcess,
  delivered: readonly Delivered[],
  rule: Rule,
): Promise<string[]> {
  const said = new Map<string, number>();
  for (const { text } of bot.sim.sent) said.set(keyIn(text), (said.get(keyIn(text)) ?? 0) + 1);
  const doubts = new Set(bot.ambiguous.map((event) => event.key));
  const differences: string[] = [];
  for (const message of delivered) {
    for (const key of keysOf(message)) {
      const times = said.get(key) ?? 0;
      const state = (await bot.record(message.chatId, key))?.state ?? "absent";
      const announced = doubts.delete(key);
      said.delete(key);
      if (rule({ times, state, announced })) continue;
      const starts = bot.starts.filter((start) => start.id === message.id).length;
      differences.push(
        `${key} in chat ${message.chatId}: accepted ${times} times, journal says ${state}, ` +
          `${announced ? "" : "not "}announced, ${starts} starts, ${message.tries} tries to deliver`,
      );
    }
  }
  for (const [key, times] of said) differences.push(`${key}: accepted ${times} times, never asked`);
  for (const key of doubts) differences.push(`${key}: announced, never asked`);
  for (const { id, error } of bot.dead) differences.push(`${id}: dead: ${error}`);
  return differences;
}

/** Chats whose state is not exactly one count for each message. */
function miscounted(looks: ReadonlyMap<number, Look>, expected: number): string[] {
  return [...looks]
    .filter(([, look]) => look.count !== expected)
    .map(([chatId, look]) => `chat ${chatId} counted ${look.count}`);
}

/** Chats in which something was said before what came earlier. */
function disordered(bot: BotProcess, looks: ReadonlyMap<number, Look>): string[] {
  return [...looks.keys()].flatMap((chatId) => {
    const keys = bot.said(chatId).map(keyIn);
    const inOrder = keys.join() === [...keys].sort(byPlace).join();
    return inOrder ? [] : [`chat ${chatId} out of order: ${keys.join(" ")}`];
  });
}

function byPlace(a: string, b: string): number {
  const [aId = 0, aN = 0] = a.split(":").map(Number);
  const [bId = 0, bN = 0] = b.split(":").map(Number);
  return aId - bId || aN - bN;
}

/** What the storm hit; one that hit nothing proves nothing. */
function hits(
  bot: BotProcess,
  delivered: readonly Delivered[],
): { replayed: number; doubts: number } {
  const replayed = new Set(bot.starts.filter((start) => start.attempt > 1).map(({ id }) => id))
    .size;
  const doubts = new Set(bot.ambiguous.map((event) => event.key)).size;
  const repeated = delivered.filter((message) => message.tries > 1).length;
  console.log(
    `storm ${seed}: ${delivered.length} messages, ${replayed} turns replayed, ${doubts} sends in doubt, ` +
      `${repeated} deliveries repeated`,
  );
  return { replayed, doubts };
}

/** A window before and after the platform's own work, for a kill to fall into. */
function slowNetwork(random: () => number, ms: number): NonNullable<BotSetup["network"]> {
  const slowly = () => delay(Math.floor(random() * ms));
  return { before: slowly, after: slowly };
}

it(`loses, doubles and miscounts nothing in 200 messages and 25 kills (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await using bot = new BotProcess({ leaseMs: LEASE_MS, network: slowNetwork(random, 25) });
  await bot.start();
  const size = { chats: 20, messagesPerChat: 10, kills: 25 };
  const { delivered, looks } = await storm(bot, size, random);
  const differences = [
    ...(await differencesOf(bot, delivered, ({ times, state, announced }) =>
      announced ? state === "unknown" && times <= 1 : state === "sent" && times === 1,
    )),
    ...miscounted(looks, size.messagesPerChat),
    ...disordered(bot, looks),
  ];
  const { replayed, doubts } = hits(bot, delivered);
  expect(differences, `seed ${seed}:\n${differences.join("\n")}`).toEqual([]);
  expect(delivered).toHaveLength(200);
  expect(replayed).toBeGreaterThan(10);
  expect(doubts).toBeGreaterThan(0);
}, 59_000);

it(`says everything where repeats are wanted, twice only where announced (seed ${seed})`, async () => {
  const random = seededRandom(seed + 1);
  await using bot = new BotProcess({
    leaseMs: LEASE_MS,
    afterCrash: "resend",
    network: slowNetwork(random, 60),
  });
  await bot.start();
  const size = { chats: 10, messagesPerChat: 6, kills: 10 };
  const { delivered, looks } = await storm(bot, size, random);
  const differences = [
    ...(await differencesOf(
      bot,
      delivered,
      ({ times, state, announced }) =>
        state === "sent" && (times === 1 || (announced && times > 1)),
    )),
    ...miscounted(looks, size.messagesPerChat),
  ];
  const { replayed, doubts } = hits(bot, delivered);
  expect(differences, `seed ${seed}:\n${differences.join("\n")}`).toEqual([]);
  expect(replayed).toBeGreaterThan(0);
  expect(doubts).toBeGreaterThan(0);
}, 59_000);
