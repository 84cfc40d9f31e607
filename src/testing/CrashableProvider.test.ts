/** Deaths in the middle of a send, and what a user sees afterwards, per delivery class. */
import { afterEach, describe, expect, test } from "vitest";
import type { DeliveryClass } from "../channels/channel.ts";
import { Bot, type DurabilityOptions, telegram } from "../index.ts";
import { crashable, MockProvider, type TestBot, testBot } from "./index.ts";

const open: TestBot[] = [];
afterEach(() => {
  for (const t of open.splice(0)) t.close();
});

/** A bot that answers everything with "ok", over a crashable channel. */
function setUp(
  deliveryClass: DeliveryClass,
  durability: DurabilityOptions = {},
  options: { prepare?: boolean } = {},
) {
  const inner = new MockProvider({ class: deliveryClass, ...options });
  const provider = crashable(inner);
  const bot = new Bot({ id: "shop", channels: [provider], durability });
  bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
  const t = testBot(bot);
  open.push(t);
  return { inner, provider, t, ann: t.user("ann") };
}

const told = (t: TestBot) =>
  t.announced.map(({ kind, event }) => ("action" in event ? `${kind}: ${event.action}` : kind));

/** Class, moment, policy after a crash, and then: copies that the user sees, calls, announcements. */
const CASES: [DeliveryClass, "before" | "after", "skip" | "resend", number, number, string[]][] = [
  // A keyed platform recognises the repeat, whatever happened.
  ["keyed", "before", "skip", 1, 1, ["durability:ambiguous: resent"]],
  ["keyed", "after", "skip", 1, 2, ["durability:ambiguous: resent"]],
  // A provable one is asked first.
  ["provable", "before", "skip", 1, 1, ["durability:ambiguous: looked up"]],
  ["provable", "after", "skip", 1, 1, ["durability:ambiguous: looked up"]],
  // On a blind one the policy decides whether it may be lost or doubled, and somebody is told.
  ["blind", "before", "skip", 0, 0, ["durability:ambiguous: held"]],
  ["blind", "after", "skip", 1, 1, ["durability:ambiguous: held"]],
  ["blind", "before", "resend", 1, 1, ["durability:ambiguous: resent"]],
  ["blind", "after", "resend", 2, 2, ["durability:ambiguous: resent"]],
];

describe("the process dies around the call", () => {
  test.each(CASES)(
    "%s, %s it, afterCrash %s: %i copies after %i calls",
    async (deliveryClass, side, afterCrash, copies, calls, announced) => {
      const { inner, provider, t, ann } = setUp(deliveryClass, {
        outbox: { onAmbiguous: { afterCrash, noAnswer: "skip" } },
      });
      provider.crash[side]("send");
      await ann.say("hi");
      expect(provider.deaths).toEqual([{ step: "send", side, chat: "ann" }]);
      expect(provider.pending).toBe(0);
      expect(ann.screen).toEqual(Array.from({ length: copies }, () => "ok hi"));
      expect(inner.platform.calls).toHaveLength(calls);
      expect(told(t)).toEqual(announced);
      // The chat goes on.
      await ann.say("again");
      expect(ann.last).toBe("ok again");
    },
  );
});

describe("the process dies elsewhere", () => {
  test.each(["before", "after"] as const)(
    "%s preparing: nothing was sent, so every class sends it once and nobody is bothered",
    async (side) => {
      for (const deliveryClass of ["keyed", "provable", "blind"] as const) {
        const { provider, t, ann } = setUp(deliveryClass, {}, { prepare: true });
        provider.crash[side]("prepare");
        await ann.say("hi");
        expect(provider.deaths, deliveryClass).toHaveLength(1);
        expect(ann.screen, deliveryClass).toEqual(["ok hi"]);
        expect(told(t), deliveryClass).toEqual([]);
      }
    },
  );

  test.each(["before", "after"] as const)(
    "%s looking a lost send up: it is looked up again",
    async (side) => {
      const { inner, provider, ann } = setUp("provable");
      inner.platform.failNext({ type: "acceptThenDrop" });
      provider.crash[side]("reconcile");
      await ann.say("hi");
      expect(provider.deaths).toEqual([{ step: "reconcile", side, chat: "ann" }]);
      expect(ann.screen).toEqual(["ok hi"]);
      expect(inner.platform.calls).toHaveLength(1);
    },
  );

  test("twice: in the send and in the repeat", async () => {
    const { provider, ann } = setUp("keyed");
    provider.crash.after("send", 1);
    provider.crash.after("send", 2);
    await ann.say("hi");
    expect(provider.deaths).toHaveLength(2);
    expect(ann.screen).toEqual(["ok hi"]);
  });
});

describe("orders", () => {
  test("count calls from the order on, and each comes once", async () => {
    const { provider, ann } = setUp("keyed");
    await ann.say("one");
    provider.crash.before("send", 2);
    await ann.say("two");
    expect(provider.deaths).toHaveLength(0);
    expect(provider.pending).toBe(1);
    await ann.say("three");
    expect(provider.deaths).toHaveLength(1);
    await ann.say("four");
    expect(provider.deaths).toHaveLength(1);
    expect(ann.screen).toEqual(["ok one", "ok two", "ok three", "ok four"]);
  });

  test("for a step that the channel does not have are refused", () => {
    const { provider } = setUp("blind");
    expect(() => provider.crash.before("reconcile")).toThrow("has no `reconcile` to die in");
    expect(() => provider.crash.before("prepare")).toThrow("prepare");
    expect(() => provider.crash.after("send", 0)).toThrow(RangeError);
  });

  test("also hit the stand-in of a real channel", async () => {
    const provider = crashable(telegram());
    const bot = new Bot({ id: "shop", channels: [provider] });
    bot.otherwise((ctx) => ctx.reply("ok"));
    const t = testBot(bot);
    open.push(t);
    provider.crash.after("send");
    await t.user("ann").say("hi");
    expect(provider.deaths).toEqual([{ step: "send", side: "after", chat: "ann" }]);
    expect(t.user("ann").screen).toEqual(["ok"]);
    expect(told(t)).toEqual(["durability:ambiguous: held"]);
  });

  test("outside a test kit need somebody who ends the process", async () => {
    const inner = new MockProvider();
    const io = { marker: "m", address: { channel: "mock", chat: "ann" } } as never;
    const request = { chat: "ann", text: "x" };
    const lost = crashable(inner);
    lost.crash.before("send");
    await expect(async () => lost.outbound.send(request, io)).rejects.toThrow("give it `die`");
    let dead = 0;
    const mortal = crashable(inner, { die: () => (dead += 1) });
    mortal.crash.after("send");
    const never = mortal.outbound.send(request, io);
    const first = await Promise.race([never, new Promise((resolve) => setImmediate(resolve))]);
    expect(first).toBeUndefined();
    expect(dead).toBe(1);
    expect(inner.ledger.map((entry) => entry.text)).toEqual(["x"]);
  });
});

test("a mock provider under test has its own ledger and the test's time", async () => {
  const provider = new MockProvider({ class: "blind", name: "pager", connection: "pager-1" });
  const bot = new Bot({ id: "shop", channels: [provider] });
  bot.otherwise((ctx) => ctx.reply("ok"));
  const t = testBot(bot, { now: 1_000_000 });
  open.push(t);
  await t.user("ann").say("hi");
  expect(t.platform("pager-1")).toBe(provider.platform);
  expect(provider.ledger).toMatchObject([{ chat: "ann", text: "ok", at: 1_000_000 }]);
  expect(provider.capabilities.delivery.class).toBe("blind");
  expect(new MockProvider().capabilities.delivery.class).toBe("keyed");
});
