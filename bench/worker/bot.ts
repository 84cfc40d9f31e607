/** The bot that is measured; a variable says what it does with a message. @module */
import { env } from "cloudflare:workers";
import { telegramCapabilities } from "../../src/channels/telegram/index.ts";
import { serve } from "../../src/cloudflare.ts";
import { Bot, telegram } from "../../src/index.ts";
import type { BenchEnv } from "./env.ts";

const { BENCH_BOT: kind, BENCH_LEASE_MS: lease } = env as unknown as BenchEnv;
const leaseMs = Number(lease);

const { pacing: _pacing, ...unpaced } = telegramCapabilities;
/** Telegram without its limit of a message a second, for what is measured in one chat many times over. */
const fast = { ...telegram({ connection: "fast" }), capabilities: unpaced };

/** The bot. */
export const bot = new Bot<BenchEnv>({
  id: "bench",
  channels: [telegram(), fast],
  durability: { inbox: { leaseMs, maxPending: 100_000 }, outbox: { leaseMs } },
});

if (kind === "held") bot.otherwise(() => new Promise<void>(() => {}));
if (kind === "echo") bot.otherwise((ctx) => ctx.reply(`you said: ${ctx.text}`));

/** The bot, served. */
export const app = serve<BenchEnv>(bot);
