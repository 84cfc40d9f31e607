/** One conversation with everything in it, killed at every step that it passes, one run each. */
import { expect, test } from "vitest";
import type { DeliveryClass } from "../../src/channels/channel.ts";
import { Bot } from "../../src/index.ts";
import {
  crashEverywhere,
  MockPlatform,
  mockProvider,
  type TestBot,
} from "../../src/testing/index.ts";
import type { AmbiguousPolicy } from "../../src/turns/options.ts";

const clock = { now: () => 0, setTimer: () => () => {} };

function shop(kind: DeliveryClass, onAmbiguous: AmbiguousPolicy): Bot {
  const platform = new MockPlatform(clock, kind);
  const capabilities = { text: { limit: 12, unit: "codepoints" as const } };
  const bot = new Bot({
    id: "shop",
    channels: [mockProvider({ platform, capabilities })],
    durability: { inbox: { leaseMs: 1_000 }, outbox: { onAmbiguous } },
  });
  bot.otherwise(async (ctx) => {
    const n = ctx.state.update<number>("orders", (orders) => (orders ?? 0) + 1);
    await ctx.reply(`${n} received`);
    const price = await ctx.step("price", async () => {
      ctx.user.set("last", n);
      await ctx.reply(`${n} pricing`);
      return n * 10;
    });
    ctx.reply(`${n} is being\n\n${n} prepared`).catch(() => {});
    await ctx.enqueue(`${n} costs ${price}`, { when: "settled" });
    await ctx.enqueue(`${n} rate us`, { delay: "30s", idempotencyKey: `rate:${n}` });
  });
  return bot;
}

const TEXTS = [1, 2].flatMap((n) => [
  `${n} received`,
  `${n} pricing`,
  `${n} is being`,
  `${n} prepared`,
  `${n} costs ${n * 10}`,
  `${n} rate us`,
]);

async function buyTwice(t: TestBot): Promise<void> {
  await t.user("ann").say("first");
  await t.user("ann").say("second");
  await t.advance("5m");
}

const seen = (t: TestBot) => t.user("ann").screen.map((text) => text.trim());

const nameOf = (error: unknown) => (error instanceof Error ? error.name : "");

function settled(t: TestBot): void {
  expect(t.state(t.user("ann"), "orders")).toBe(2);
  const errors = t.announced.filter((one) => one.kind === "error");
  expect(errors.filter(({ event }) => nameOf(event.error) !== "Halted")).toEqual([]);
  expect(t.announced.filter((one) => one.kind === "durability:dead")).toEqual([]);
}

test.each(["keyed", "provable"] as const)(
  "wherever the process dies, everything is said once and counted once (%s)",
  async (kind) => {
    const { points } = await crashEverywhere(
      { bot: () => shop(kind, "skip"), run: buyTwice },
      (t) => {
        settled(t);
        expect([...seen(t)].sort()).toEqual([...TEXTS].sort());
      },
    );
    expect(points.length).toBeGreaterThan(80);
  },
);

test("wherever the process dies, a blind channel says nothing twice under skip, and every loss is announced", async () => {
  await crashEverywhere({ bot: () => shop("blind", "skip"), run: buyTwice }, (t) => {
    settled(t);
    const texts = seen(t);
    expect(new Set(texts).size).toBe(texts.length);
    const held = t.announced.filter((one) => one.kind === "durability:ambiguous");
    expect(TEXTS.length - texts.length).toBeLessThanOrEqual(held.length);
    expect(held.length).toBeLessThanOrEqual(1);
  });
});

test("wherever the process dies, a blind channel loses nothing under resend, and every repeat is announced", async () => {
  await crashEverywhere({ bot: () => shop("blind", "resend"), run: buyTwice }, (t) => {
    settled(t);
    const texts = seen(t);
    expect(new Set(texts)).toEqual(new Set(TEXTS));
    const resent = t.announced.filter((one) => one.kind === "durability:ambiguous");
    expect(texts.length - TEXTS.length).toBeLessThanOrEqual(resent.length);
    expect(resent.length).toBeLessThanOrEqual(1);
  });
});

test("wherever the process dies, the parts of a message and the replies of a turn keep their order", async () => {
  await crashEverywhere({ bot: () => shop("keyed", "skip"), run: buyTwice }, (t) => {
    const texts = seen(t);
    for (const n of [1, 2]) {
      const places = [`${n} received`, `${n} pricing`, `${n} is being`, `${n} prepared`].map(
        (text) => texts.indexOf(text),
      );
      expect(places).toEqual([...places].sort((a, b) => a - b));
    }
    expect(texts.indexOf("1 prepared")).toBeLessThan(texts.indexOf("2 received"));
  });
});

test("wherever the process dies, no error listener is told that it is dead", async () => {
  await crashEverywhere({ bot: () => shop("keyed", "skip"), run: buyTwice }, (t) => {
    expect(t.announced.filter((one) => one.kind === "error")).toEqual([]);
  });
});
