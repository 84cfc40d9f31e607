import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { BotProcess, until } from "./BotProcess.ts";

const LEASE_MS = 2_000;
const CHAT = 71;

/** Waits, without a request to the Worker, until a whole lease brought nothing new to a chat. */
async function staysQuiet(bot: BotProcess): Promise<void> {
  const { length } = bot.sim.calls;
  await delay(LEASE_MS + 300);
  expect(bot.sim.calls).toHaveLength(length);
}

describe.concurrent("a process that is killed", () => {
  it("in a slow handler: the reply comes by itself, once, within two leases of the restart", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    bot.holdsSlow = true;
    const id = await bot.say(CHAT, "/slow");
    await until(() => bot.slow[0]);
    await bot.workerd.kill();
    expect(bot.sim.sent).toEqual([]);

    bot.holdsSlow = false;
    await bot.workerd.restart();
    const restarted = Date.now();
    await until(() => bot.sim.sent[0], 2 * LEASE_MS + 2_000);
    expect((bot.sim.sent[0]?.at ?? 0) - restarted).toBeLessThanOrEqual(2 * LEASE_MS);
    await staysQuiet(bot);
    expect(bot.said(CHAT)).toEqual([`${id}:0 count 1`]);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(bot.starts.filter((start) => start.id === id)).toHaveLength(2);
    expect(bot.ambiguous).toEqual([]);
  });

  it("in a slow handler, again and again: the reply comes once in the end", async () => {
    await using bot = new BotProcess({ leaseMs: 400 });
    await bot.start();
    bot.holdsSlow = true;
    const id = await bot.say(CHAT, "/slow");
    for (let life = 1; life <= 4; life += 1) {
      await until(() => bot.slow.length >= life || undefined, 10_000);
      if (life === 4) bot.holdsSlow = false;
      await bot.workerd.restart();
    }
    await until(() => bot.sim.sent[0], 10_000);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(bot.said(CHAT)).toEqual([`${id}:0 count 1`]);
  });

  it("after the platform took a message and before that was recorded: said once, and announced", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    bot.sim.fault({ type: "hang", accepted: true, method: "sendMessage" });
    const id = await bot.say(CHAT, "hello");
    await until(() => bot.sim.sent[0]);
    await bot.workerd.restart();
    const announced = await until(() => bot.ambiguous[0], 2 * LEASE_MS + 2_000);
    expect(announced).toMatchObject({
      key: `${id}:0`,
      chatId: `telegram/telegram/${CHAT}`,
      cause: "crash",
      action: "held",
    });
    await staysQuiet(bot);
    expect(bot.said(CHAT)).toEqual([`${id}:0 count 1`]);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(await bot.record(CHAT, `${id}:0`)).toMatchObject({ state: "unknown" });
    expect(new Set(bot.ambiguous.map((event) => event.key))).toEqual(new Set([`${id}:0`]));
  });

  it("before the platform took a message: not said, and never silently", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    bot.sim.fault({ type: "hang", method: "sendMessage" });
    const id = await bot.say(CHAT, "hello");
    await until(() => bot.sim.calls.find((call) => call.method === "sendMessage"));
    await bot.workerd.restart();
    const announced = await until(() => bot.ambiguous[0], 2 * LEASE_MS + 2_000);
    expect(announced).toMatchObject({ key: `${id}:0`, action: "held" });
    expect(bot.sim.sent).toEqual([]);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(await bot.record(CHAT, `${id}:0`)).toMatchObject({ state: "unknown" });
  });

  it("where a repeat is wanted: said at most twice, and announced", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS, afterCrash: "resend" });
    await bot.start();
    bot.sim.fault({ type: "hang", accepted: true, method: "sendMessage" });
    const id = await bot.say(CHAT, "hello");
    await until(() => bot.sim.sent[0]);
    await bot.workerd.restart();
    const announced = await until(() => bot.ambiguous[0], 2 * LEASE_MS + 2_000);
    expect(announced).toMatchObject({ key: `${id}:0`, cause: "crash", action: "resent" });
    await until(() => bot.sim.sent[1], 5_000);
    await staysQuiet(bot);
    expect(bot.said(CHAT)).toEqual([`${id}:0 count 1`, `${id}:0 count 1`]);
    // The channel was asked whether it is there at all before the repeat.
    expect(bot.sim.calls.map((call) => call.method)).toEqual([
      "sendMessage",
      "getMe",
      "sendMessage",
    ]);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(await bot.record(CHAT, `${id}:0`)).toMatchObject({ state: "sent" });
  });

  it("between two parts of a long message: each part said once, the doubtful one announced", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    bot.sim.fault({
      type: "hang",
      accepted: true,
      method: "sendMessage",
      when: () => bot.sim.sent.length === 1,
    });
    const id = await bot.say(CHAT, "/long");
    await until(() => bot.sim.sent[1]);
    await bot.workerd.restart();
    const announced = await until(() => bot.ambiguous[0], 2 * LEASE_MS + 2_000);
    expect(announced).toMatchObject({ key: `${id}:0#2`, action: "held" });
    await bot.settles(CHAT);
    const words = bot.said(CHAT).join(" ").split(/\s+/);
    expect(words).toEqual(Array.from({ length: 1_200 }, (_unused, n) => `${id}-${n}`));
  });

  it("while a scheduled send is to come: it comes after the restart, though nobody writes", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    const id = await bot.say(CHAT, "/later 600");
    const due = Date.now() + 600;
    await until(async () => (await bot.look(CHAT)).open.length === 1 || undefined);
    await bot.workerd.kill();
    await until(() => Date.now() > due || undefined);
    expect(bot.sim.sent).toEqual([]);
    await bot.workerd.restart();
    await until(() => bot.sim.sent[0]);
    expect(await bot.settles(CHAT)).toMatchObject({ open: [] });
    expect(bot.said(CHAT)).toEqual([`${id}:0`]);
  });

  it("after an update was taken: the platform's repeat of it does nothing", async () => {
    await using bot = new BotProcess({ leaseMs: LEASE_MS });
    await bot.start();
    const update = bot.sim.messageUpdate({ chatId: CHAT, text: "hello" });
    expect(await bot.deliver(update)).toBe(200);
    await until(() => bot.sim.sent[0]);
    await bot.settles(CHAT);
    await bot.workerd.restart();
    expect(await bot.deliver(update)).toBe(200);
    expect(await bot.settles(CHAT)).toEqual({ open: [], count: 1 });
    expect(bot.said(CHAT)).toEqual([`${update.update_id}:0 count 1`]);
    expect(bot.starts).toHaveLength(1);
  });
});

it("needs no bindings: a Worker that only exports its objects answers, and comes back", async () => {
  await using bot = new BotProcess({ leaseMs: LEASE_MS, bound: false });
  await bot.start();
  const update = bot.sim.messageUpdate({ chatId: CHAT, text: "/later 300" });
  expect(await bot.deliver(update)).toBe(200);
  await bot.workerd.restart();
  await until(() => bot.sim.sent[0]);
  expect(bot.said(CHAT)).toEqual([`${update.update_id}:0`]);
  expect(await bot.settles(CHAT)).toMatchObject({ open: [] });
});
