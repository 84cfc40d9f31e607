/**
 * The Worker that the kill tests kill: a bot that says its keys, so that what the platform saw can be
 * compared with what the bot was told, and that tells a ledger of the test what it does.
 *
 * @module
 */
import { env } from "cloudflare:workers";
import { serve } from "../../src/cloudflare.ts";
import { Bot, telegram } from "../../src/index.ts";

/** Variables that a test sets. */
interface KillEnv {
  /** Base URL of the test's ledger. */
  LEDGER: string;
  LEASE_MS: string;
  AFTER_CRASH: "skip" | "resend-once" | "resend";
}

interface Shape {
  state: { count: number };
}

const vars = env as unknown as KillEnv;
const leaseMs = Number(vars.LEASE_MS);

/** Tells the test. @throws when the test did not answer: an announcement is then made again */
async function tell(what: string, about: unknown): Promise<void> {
  const response = await fetch(`${vars.LEDGER}/${what}`, {
    method: "POST",
    body: JSON.stringify(about),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`the ledger answered ${response.status}`);
}

export const bot = new Bot<KillEnv, Shape>({
  id: "killed",
  channels: [telegram()],
  durability: {
    // A storm of kills hits the same message more often than bad luck would.
    inbox: { leaseMs, maxAttempts: 100, backoff: { baseMs: 50, capMs: 500 } },
    outbox: { leaseMs, onAmbiguous: { afterCrash: vars.AFTER_CRASH } },
  },
});

bot.use(async (ctx, next) => {
  await tell("start", { id: ctx.ref.id, attempt: ctx.attempt });
  await next();
});
// Stays in the handler until the test answers.
bot.command("slow", async (ctx) => {
  const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
  await tell("slow", { id: ctx.ref.id });
  await ctx.reply(`${ctx.ref.id}:0 count ${count}`);
});
bot.command("later", async (ctx) => {
  await ctx.enqueue(`${ctx.ref.id}:0`, { delay: Number(ctx.match[1]) });
});
bot.command("long", async (ctx) => {
  const text = Array.from({ length: 1_200 }, (_unused, n) => `${ctx.ref.id}-${n}`).join(" ");
  await ctx.reply(text);
});
// Two replies, with a step and a wait between them.
bot.command("two", async (ctx) => {
  const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
  await ctx.reply(`${ctx.ref.id}:0 count ${count}`);
  await ctx.step("work", async () => {
    await tell("step", { id: ctx.ref.id });
    return count;
  });
  await scheduler.wait(20);
  await ctx.reply(`${ctx.ref.id}:1`);
});
bot.otherwise(async (ctx) => {
  const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
  await ctx.reply(`${ctx.ref.id}:0 count ${count}`);
});
bot.on("durability:ambiguous", (event) => tell("ambiguous", event));
bot.on("durability:dead", (event) => tell("dead", event));

const app = serve<KillEnv>(bot, {
  /** `GET /look?chat=…&key=…`: state, the record of a send, and what is not finished. */
  async fetch(request, env): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const chat = app.client(env).chat(telegram.address(searchParams.get("chat") ?? ""));
    const key = searchParams.get("key");
    if (key !== null) return Response.json((await chat.outbox.get(key)) ?? null);
    const open: string[] = [];
    for (const state of ["pending", "processing"] as const) {
      open.push(...(await chat.inbox.list({ state })).rows.map((row) => `${state} ${row.id}`));
    }
    for (const state of ["pending", "sending", "failed"] as const) {
      open.push(...(await chat.outbox.list({ state })).rows.map((row) => `${state} ${row.key}`));
    }
    return Response.json({ open, count: (await chat.state.get<number>("count")) ?? 0 });
  },
});

export default app.handler;
export class ChatActor extends app.ChatActor {}
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
