/**
 * The bots of the tests: the same handlers, once with the defaults and once with short waits. What they
 * did is noted outside the objects, where a test sees it whatever becomes of the object.
 *
 * @module
 */
import { telegramCapabilities } from "../../src/channels/telegram/index.ts";
import {
  type AmbiguousEvent,
  Bot,
  type DeadEvent,
  type DurabilityOptions,
  telegram,
} from "../../src/index.ts";

/** The variables and bindings of `wrangler.toml`. */
export interface TestEnv {
  TELEGRAM_BOT_TOKEN: string;
  TELEGRAM_WEBHOOK_SECRET: string;
  TELEGRAM_API_BASE: string;
  CHAT_ACTOR: DurableObjectNamespace;
  QUICK_ACTOR: DurableObjectNamespace;
  CONNECTION: DurableObjectNamespace;
  REGISTRY: DurableObjectNamespace;
}

/** The state that the bots keep. */
interface Shape {
  state: { count: number; pressed: string };
}

/** Each start of a turn: the inbox id, and how often it had started before. */
export const starts: { id: string; attempt: number }[] = [];
/** Announcements, in order. */
export const ambiguous: AmbiguousEvent[] = [];
export const dead: DeadEvent[] = [];
/** What comes before the Registry takes a report, by the chat's name: a wait, or a failure. */
export const beforeReport = new Map<string, () => Promise<void>>();
/** Gates that slow handlers wait at, and who waits there now. */
export const gates = { open: new Set<string>(), waiting: new Map<string, number>() };

/** The longest that a handler waits at a gate, in ms: a test that fails must end. */
const GATE_LIMIT_MS = 30_000;

/** Waits until a test opens the gate. */
async function pass(gate: string): Promise<void> {
  gates.waiting.set(gate, (gates.waiting.get(gate) ?? 0) + 1);
  const deadline = Date.now() + GATE_LIMIT_MS;
  while (!gates.open.has(gate)) {
    if (Date.now() > deadline) throw new Error(`nobody opened the gate ${gate}`);
    await scheduler.wait(5);
  }
}

function handlers(bot: Bot<TestEnv, Shape>): Bot<TestEnv, Shape> {
  bot.use(async (ctx, next) => {
    starts.push({ id: ctx.ref.id, attempt: ctx.attempt });
    await next();
  });
  bot.command("count", async (ctx) => {
    const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
    await ctx.reply(`count ${count}`);
  });
  bot.command("slow", async (ctx) => {
    const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
    await pass(ctx.match[1] ?? "");
    await ctx.reply(`slow ${count}`);
  });
  bot.command("halves", async (ctx) => {
    const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
    await ctx.reply(`first half ${count}`);
    await pass(ctx.match[1] ?? "");
    await ctx.reply(`second half ${count}`);
  });
  bot.command("twice", async (ctx) => {
    await ctx.reply("one");
    await ctx.reply("two");
  });
  bot.command("later", async (ctx) => {
    for (const ms of (ctx.match[1] ?? "").split(" ").map(Number)) {
      await ctx.enqueue(`after ${ms}`, { delay: ms });
    }
  });
  // Work that comes due while its turn goes on.
  bot.command("long", async (ctx) => {
    const [turnMs = 0, ...delays] = (ctx.match[1] ?? "").split(" ").map(Number);
    for (const ms of delays) await ctx.enqueue(`after ${ms}`, { delay: ms });
    await scheduler.wait(turnMs);
    await ctx.reply("done at last");
  });
  bot.command("throw", async (ctx) => {
    ctx.state.set("count", 999);
    await ctx.reply("before the throw");
    throw new Error("as the test asked");
  });
  bot.command("quiet", () => {});
  const pick = bot.action("pick", async (ctx, data: { dish: string }) => {
    ctx.state.set("pressed", data.dish);
    await ctx.answer(`${data.dish} it is`);
    await ctx.reply(`you picked ${data.dish}`);
  });
  bot.command("menu", (ctx) =>
    ctx.reply({
      text: "what will it be?",
      buttons: [
        [
          pick.button("Soup", { dish: "soup" }),
          pick.button("Feast", { dish: `${"feast ".repeat(30)}it is` }),
        ],
      ],
    }),
  );
  bot.on("event:paid", (ctx) => ctx.reply(`paid: ${JSON.stringify(ctx.event.data)}`));
  bot.otherwise((ctx) => ctx.reply(`you said: ${ctx.text}`));
  bot.on("durability:ambiguous", (event) => {
    ambiguous.push(event);
  });
  bot.on("durability:dead", (event) => {
    dead.push(event);
  });
  return bot;
}

/** A Telegram that never redelivers, so that a retention of moments is allowed. */
const brief = {
  ...telegram({ connection: "brief" }),
  capabilities: {
    ...telegramCapabilities,
    redelivery: { behaviour: "never", windowMs: -86_400_000 },
  },
};

/** The lease of the quick bot, in ms. */
export const QUICK_LEASE_MS = 1_000;
/** How long the quick bot keeps what is finished, on the connection `brief`, in ms. */
export const BRIEF_RETENTION_MS = 1_200;

const quickly: DurabilityOptions = {
  inbox: { leaseMs: QUICK_LEASE_MS, maxPending: 40, backoff: { baseMs: 50 } },
  outbox: { leaseMs: QUICK_LEASE_MS, backoff: { baseMs: 100 }, inlineMaxMs: 4_000 },
  retention: BRIEF_RETENTION_MS,
};

/** All defaults. */
export const plain = handlers(new Bot<TestEnv, Shape>({ id: "plain", channels: [telegram()] }));
plain.cron("7 * * * *", { name: "hourly" }, () => {});
/** Short waits. */
export const quick = handlers(
  new Bot<TestEnv, Shape>({ id: "quick", channels: [telegram(), brief], durability: quickly }),
);
