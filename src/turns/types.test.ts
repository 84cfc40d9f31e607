/** The types that a bot's author relies on. Checked by `tsc`; nothing here runs but the last line. */
import { describe, expectTypeOf, test } from "vitest";
import type { MediaRef } from "../channels/events.ts";
import {
  Bot,
  type Context,
  IMAGE,
  LOCATION,
  Router,
  type SendResult,
  type StandardSchema,
  TEXT,
} from "../index.ts";
import { testBot } from "../testing/index.ts";

interface Env {
  SHOP_TOKEN: string;
}

interface Shape {
  state: { orders: number; last: { sku: string } };
  user: { lang: "de" | "en" };
}

declare const bot: Bot<Env, Shape>;
declare const loose: Bot;
declare const schema: StandardSchema<{ n: number }>;

/** Type checks only: never called. */
function matchers(): void {
  bot.when(IMAGE, (ctx) => {
    expectTypeOf(ctx.media).toExtend<readonly [MediaRef, ...MediaRef[]]>();
    expectTypeOf(ctx.media[0]).toEqualTypeOf<MediaRef>();
    expectTypeOf(ctx.env).toEqualTypeOf<Env>();
  });
  bot.when(LOCATION, (ctx) => {
    expectTypeOf(ctx.event.location.latitude).toEqualTypeOf<number>();
  });
  bot.when(TEXT, (ctx) => {
    expectTypeOf(ctx.text).toEqualTypeOf<string>();
  });
  bot.when(/order (\d+)/, (ctx) => {
    expectTypeOf(ctx.match[1]).toEqualTypeOf<string | undefined>();
  });
  bot.otherwise((ctx) => {
    // A matcher's promise holds in its own handler only.
    expectTypeOf(ctx.media[0]).toEqualTypeOf<MediaRef | undefined>();
    // @ts-expect-error a location is not always there
    ctx.event.location.latitude;
  });
  const isVip = (ctx: Context<Env, Shape>): ctx is Context<Env, Shape> & { vip: true } =>
    ctx.sender?.id === "1";
  bot.when(isVip, (ctx) => {
    expectTypeOf(ctx.vip).toEqualTypeOf<true>();
  });
  bot.when(
    (ctx) => ctx.text !== "",
    (ctx) => {
      expectTypeOf(ctx).toEqualTypeOf<Context<Env, Shape>>();
    },
  );
}

function actions(): void {
  const buy = bot.action("buy", async (ctx, data: { sku: string }) => {
    expectTypeOf(ctx.env.SHOP_TOKEN).toEqualTypeOf<string>();
    expectTypeOf(data).toEqualTypeOf<{ sku: string }>();
  });
  buy.button("Buy", { sku: "s1" });
  // @ts-expect-error the data is not optional
  buy.button("Buy");
  // @ts-expect-error the data has another shape
  buy.button("Buy", { sku: 5 });
  const help = bot.action("help", () => {});
  help.button("Help");
  // @ts-expect-error this action takes no data
  help.button("Help", { sku: "s1" });
  const checked = bot.action("checked", { schema }, (_ctx, data) => {
    expectTypeOf(data).toEqualTypeOf<{ n: number }>();
  });
  checked.button("Check", { n: 1 });
  // @ts-expect-error not what the schema gives
  checked.button("Check", { n: "1" });
}

function state(): void {
  bot.otherwise((ctx) => {
    expectTypeOf(ctx.state.get("orders")).toEqualTypeOf<number | undefined>();
    expectTypeOf(ctx.state.get("last")).toEqualTypeOf<{ sku: string } | undefined>();
    expectTypeOf(ctx.user.get("lang")).toEqualTypeOf<"de" | "en" | undefined>();
    ctx.state.set("orders", 1);
    ctx.state.delete("last");
    expectTypeOf(ctx.state.update("orders", (n) => (n ?? 0) + 1)).toEqualTypeOf<number>();
    // @ts-expect-error no such key
    ctx.state.get("order");
    // @ts-expect-error not a number
    ctx.state.set("orders", "1");
    // @ts-expect-error the user's keys are not the chat's
    ctx.state.get("lang");
    // @ts-expect-error no such language
    ctx.user.set("lang", "fr");
  });
  loose.otherwise((ctx) => {
    ctx.state.set("anything", { a: [1] });
    expectTypeOf(ctx.state.get<number>("anything")).toEqualTypeOf<number | undefined>();
    ctx.user.set("anything", 1);
  });
}

function environment(): void {
  bot.use((ctx, next) => {
    expectTypeOf(ctx.env).toEqualTypeOf<Env>();
    // @ts-expect-error no such variable
    ctx.env.OTHER;
    return next();
  });
  bot.on("error", (event, { env, client }) => {
    expectTypeOf(env).toEqualTypeOf<Env>();
    expectTypeOf(event.error).toEqualTypeOf<unknown>();
    expectTypeOf(client.durability.metrics).toBeFunction();
  });
  bot.on("durability:dead", (event) => {
    expectTypeOf(event.kind).toEqualTypeOf<"inbound" | "outbound">();
    expectTypeOf(event.id).toEqualTypeOf<string>();
  });
  bot.on("durability:ambiguous", (event) => {
    expectTypeOf(event.action).toEqualTypeOf<"held" | "resent" | "looked up">();
  });
  bot.on("event:paid", (ctx) => {
    expectTypeOf(ctx.event.data).toEqualTypeOf<unknown>();
    expectTypeOf(ctx.env).toEqualTypeOf<Env>();
  });
  bot.after("send", (event, { env }) => {
    expectTypeOf(event.receipt.primaryId).toEqualTypeOf<string>();
    expectTypeOf(env).toEqualTypeOf<Env>();
  });
  const router = new Router<Env, Shape>();
  bot.use(router);
  // @ts-expect-error a router of another environment
  bot.use(new Router<{ OTHER: number }, Shape>());
}

function options(): void {
  // Option types accept undefined, so that `process.env` values and conditionals need no spreading.
  new Bot({
    id: "x",
    channels: [],
    tenant: undefined,
    durability: {
      inbox: { maxAttempts: undefined },
      outbox: { onAmbiguous: undefined },
      retention: undefined,
    },
  });
  // @ts-expect-error "…Ms" options are numbers
  new Bot({ id: "x", channels: [], durability: { inbox: { leaseMs: "1m" } } });
  new Bot({ id: "x", channels: [], durability: { retention: "7d" } });
  // @ts-expect-error no duration
  new Bot({ id: "x", channels: [], durability: { retention: "a week" } });
  // @ts-expect-error no such option
  new Bot({ id: "x", channels: [], durability: { outbox: { retry: 3 } } });
  // @ts-expect-error no such policy
  new Bot({ id: "x", channels: [], durability: { outbox: { onAmbiguous: "drop" } } });
  testBot(bot, { seed: undefined, env: undefined });
}

async function sends(ctx: Context): Promise<void> {
  const said = await ctx.reply("hello");
  expectTypeOf(said).toEqualTypeOf<SendResult>();
  expectTypeOf(said.status).toEqualTypeOf<"sent" | "deferred" | "unknown" | "suppressed">();
  expectTypeOf(await ctx.step("s", () => 5)).toEqualTypeOf<number>();
  expectTypeOf(await ctx.step("s", async () => ({ id: "x" }))).toEqualTypeOf<{ id: string }>();
  await ctx.reply("hello", {
    idempotencyKey: undefined,
    durability: undefined,
    notAfter: undefined,
  });
  await ctx.enqueue("later", { delay: "10m", when: "settled" });
  // @ts-expect-error a reply is not scheduled
  await ctx.reply("later", { delay: "10m" });
  // @ts-expect-error no duration
  await ctx.enqueue("later", { delay: "ten minutes" });
  // @ts-expect-error no such format
  await ctx.reply({ text: "x", format: "html" });
  // @ts-expect-error an unawaited match is read-only
  ctx.match = [];
}

describe("the public types", () => {
  test("are checked by tsc", () => {
    for (const check of [matchers, actions, state, environment, options, sends]) {
      expectTypeOf(check).toBeFunction();
    }
  });
});
