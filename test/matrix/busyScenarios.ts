/**
 * Scenarios of the crash matrix about busy and moving chats.
 *
 * @module
 */
import type { InboundEvent } from "../../src/index.ts";
import { chatActorName } from "../../src/objects/names.ts";
import type { TestBot } from "../../src/testing/TestBot.ts";
import { botOf, type Scenario } from "./scenarioKit.ts";

/** The chat that the platform renames, and its new name. */
export const MOVED_FROM = "old";
export const MOVED_TO = "new";

const SCOPE = { tenant: "main", environment: "production", bot: "matrix" };

/** Delivers as a platform does: again until it is told success. */
async function deliver(t: TestBot, chat: string, event: Partial<InboundEvent>): Promise<void> {
  const info = { id: chat, kind: "group" as const };
  const actor = chatActorName(SCOPE, "mock", chat);
  const whole = {
    kind: "message",
    channel: "mock",
    connection: "mock",
    chat: info,
    sender: { id: "ann" },
    at: t.now,
    ...event,
  };
  const items = [{ type: "event", event: whole }];
  const payload = JSON.stringify({ connection: "mock", channel: "mock", chat: info, items });
  for (let tries = 0; tries < 8; tries += 1) {
    try {
      await t.runtime.call("ChatActor", actor, "receive", payload);
      return;
    } catch {
      await t.advance(500);
    }
  }
  throw new Error("never admitted");
}

const interrupting: Scenario = {
  name: "a message that interrupts an answer",
  bot(column) {
    const bot = botOf(column, { busy: { concurrency: "interrupt" } });
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} one`);
      await ctx.enqueue(`${ctx.text} settled`, { when: "settled" });
      await new Promise<void>((resolve) => {
        ctx.signal.addEventListener("abort", () => resolve(), { once: true });
        if (ctx.text !== "a") resolve();
      });
      await ctx.reply(`${ctx.text} two`).catch(() => {});
    });
    return bot;
  },
  async run(t) {
    await deliver(t, "ann", { id: "a", text: "a" });
    await t.advance(200);
    await deliver(t, "ann", { id: "b", text: "b" });
    await t.idle();
    await t.advance("1m");
  },
};

const bursting: Scenario = {
  name: "three messages that are one turn",
  bot(column) {
    const bot = botOf(column, { busy: { concurrency: "burst" } });
    bot.otherwise(async (ctx) => {
      await ctx.reply(`got ${ctx.burst.length}`);
    });
    return bot;
  },
  async run(t) {
    for (const id of ["a", "b", "c"]) {
      await deliver(t, "ann", { id, text: id });
      await t.advance(100);
    }
    await t.idle();
    await t.advance("1m");
  },
};

const relaying: Scenario = {
  name: "a turn that says something in another chat",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      await ctx.chatAt({ channel: "mock", chat: "hub" }).send(`${ctx.text} for the hub`);
      await ctx.reply(`${ctx.text} passed on`);
    });
    return bot;
  },
  async run(t) {
    await deliver(t, "ann", { id: "a", text: "a" });
    await t.idle();
    await t.advance("1m");
  },
};

const moving: Scenario = {
  name: "a chat that gets another name in the middle of a turn",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} one`);
      await ctx.reply(`${ctx.text} two`);
    });
    return bot;
  },
  async run(t) {
    let moved = false;
    t.platform().latency = () => 1_500;
    t.platform().fault = (call) =>
      moved && call.chat === MOVED_FROM ? { type: "moved", to: MOVED_TO } : undefined;
    await deliver(t, MOVED_FROM, { id: "a", text: "a" });
    moved = true;
    const away = t.now + 8_000;
    t.runtime.onCall = (_kind, _name, method) => {
      if (method === "forward" && t.now < away) throw new Error("unreachable");
    };
    await deliver(t, MOVED_FROM, { id: "to", kind: "mock:moved", migration: { to: MOVED_TO } });
    await deliver(t, MOVED_TO, { id: "from", kind: "mock:moved", migration: { from: MOVED_FROM } });
    await t.advance("1m");
    await deliver(t, MOVED_TO, { id: "b", text: "b" });
    await t.idle();
    await t.advance("1m");
  },
};

/** All of them. */
export const BUSY_SCENARIOS: readonly Scenario[] = [interrupting, bursting, relaying, moving];
