/**
 * The scenarios of the crash matrix. Together they pass every label of `src/journal/labels.ts`.
 *
 * @module
 */
import { RetryTurn } from "../../src/index.ts";
import { BUSY_SCENARIOS } from "./busyScenarios.ts";
import { FLOW_SCENARIOS } from "./flowScenarios.ts";
import { botOf, insist, LIMIT, type Scenario } from "./scenarioKit.ts";
import { STREAM_SCENARIOS } from "./streamScenarios.ts";

const talk: Scenario = {
  name: "a talk with steps, parts and sends for later",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
      await ctx.reply(`${ctx.text} one`);
      await ctx.step("pay", async () => {
        await ctx.reply(`${ctx.text} paid`);
      });
      ctx.reply(`${ctx.text} loose`);
      await ctx.reply(
        `${ctx.text} part a ${"a".repeat(25)}\n\n${ctx.text} part b ${"b".repeat(25)}`,
      );
      await ctx.enqueue(`${ctx.text} later`, { delay: 1_000 });
      await ctx.enqueue(`${ctx.text} settled`, { when: "settled" });
    });
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    await ann.say("x");
    await t.advance("10s");
    await Promise.all([ann.post({ text: "y" }), ann.post({ text: "z" })]);
    await t.idle();
    await t.advance("2m");
  },
};

const faults: Scenario = {
  name: "a platform that refuses, drops and hangs",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} one`).catch(() => {});
      await ctx.reply(`${ctx.text} two`).catch(() => {});
      await ctx.reply(`${ctx.text} three`).catch(() => {});
    });
    return bot;
  },
  async run(t) {
    const sick = t.now + 20_000;
    t.platform().healthy = () => t.now > sick;
    t.platform().failNext(
      { type: "refuse", kind: "transient" },
      { type: "acceptThenDrop" },
      { type: "refuse", kind: "rate_limit", retryAfterMs: 3_000 },
      { type: "drop" },
      { type: "hang" },
    );
    await t.user("ann").say("x");
    await t.advance("10m");
    await t.idle();
  },
};

const endings: Scenario = {
  name: "turns that throw, time out and ask to run again",
  bot(column) {
    const bot = botOf(column, { durability: { inbox: { turnTimeoutMs: 3_000 } } });
    bot.on("error", () => {});
    bot.when("throw", async (ctx) => {
      await ctx.reply("before the throw");
      await ctx.enqueue("taken back", { when: "settled" });
      throw new Error("as told");
    });
    bot.when("hang", async (ctx) => {
      await ctx.reply("before the hang");
      await new Promise(() => {});
    });
    bot.when("retry", async (ctx) => {
      await ctx.reply("before the retry");
      if (ctx.attempt === 1) throw new RetryTurn({ after: "2s" });
    });
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    await ann.say("throw");
    await ann.say("hang");
    await ann.say("retry");
    await t.idle();
  },
};

const poison: Scenario = {
  name: "an event that kills the process each time",
  bot(column) {
    const bot = botOf(column, { durability: { inbox: { maxAttempts: 3, minAgeMs: 10_000 } } });
    bot.when("poison", async (ctx) => {
      await ctx.reply("last words");
      (ctx.env as { kill(): void }).kill();
      await new Promise(() => {});
    });
    bot.otherwise((ctx) => ctx.reply("still here"));
    return bot;
  },
  async run(t) {
    t.runtime.env.kill = () => t.runtime.kill(t.actorOf(t.user("ann")));
    const ann = t.user("ann");
    await ann.say("poison");
    await ann.say("hello");
    await t.idle();
  },
};

const diverging: Scenario = {
  name: "a handler that says something else when it runs again",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      const first = ctx.attempt === 1;
      if (ctx.text === "unsent") {
        // The first run's send is refused for now, so that it is proven unsent when the process dies.
        await Promise.race([
          ctx.reply(first ? "unsent old" : "unsent new").catch(() => {}),
          ctx.signal.aborted,
        ]);
      } else {
        ctx.reply(first ? "maybe old" : "maybe new").catch(() => {});
        ctx.reply(first ? "behind old" : "behind new").catch(() => {});
      }
      if (first) {
        const { kill, later } = ctx.env as { kill(): void; later(ms: number): Promise<void> };
        await later(500);
        kill();
        await new Promise(() => {});
      }
      await ctx.reply(`${ctx.text} done`).catch(() => {});
    });
    return bot;
  },
  async run(t) {
    t.runtime.env.kill = () => t.runtime.kill(t.actorOf(t.user("ann")));
    t.runtime.env.later = (ms: number) =>
      new Promise((resolve) => t.runtime.clock.setTimer(ms, () => resolve(undefined)));
    t.platform().failNext({ type: "refuse", kind: "transient", retryAfterMs: 4_000 });
    await t.user("ann").say("unsent");
    await t.idle();
    t.platform().failNext({ type: "acceptThenHang" });
    await t.user("ann").say("maybe");
    await t.advance("2m");
    await t.idle();
  },
};

const operators: Scenario = {
  name: "an operator who retries, replays, cancels and discards",
  bot(column) {
    const bot = botOf(column, { durability: { inbox: { maxAttempts: 1 } } });
    bot.when("refused", async (ctx) => {
      await ctx.reply("refused at first").catch(() => {});
    });
    bot.when("poison", async (ctx) => {
      if (ctx.attempt <= 1) (ctx.env as { kill(): void }).kill();
      await new Promise(() => {});
    });
    bot.otherwise((ctx) => ctx.reply(`${ctx.text} again ${ctx.attempt}`));
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    t.runtime.env.kill = () => t.runtime.kill(t.actorOf(ann));
    const chat = t.client.chat(ann.address);
    t.platform().failNext({ type: "refuse", kind: "recipient_unreachable" });
    await ann.say("refused");
    const dead = await insist(t, () => chat.outbox.list({ state: "dead" }));
    for (const row of dead?.rows ?? []) await insist(t, () => chat.outbox.retry(row.id));
    await t.idle();
    await insist(t, () => chat.state.set("k", 1));
    const other = t.client.chat({ channel: "mock", chat: "bob" });
    await insist(t, () => other.send("to a new chat", { idempotencyKey: "first" }));
    await insist(t, () => other.enqueue("never", { idempotencyKey: "cancelled", delay: "1h" }));
    await insist(t, () => other.cancel("cancelled"));
    await insist(t, () => other.enqueue("nor this", { idempotencyKey: "discarded", delay: "1h" }));
    await insist(t, () => other.outbox.discard("discarded"));
    await ann.say("poison");
    await t.idle();
    const poisoned = await insist(t, () => chat.inbox.list({ state: "dead" }));
    const ref = poisoned?.rows[0]?.ref;
    if (ref !== undefined) await insist(t, () => t.client.durability.discard(ref));
    await ann.say("once");
    const done = await insist(t, () => chat.inbox.list({ state: "done" }));
    const id = done?.rows[0]?.id;
    if (id !== undefined) await insist(t, () => chat.inbox.replay(id));
    await t.idle();
  },
};

const listeners: Scenario = {
  name: "listeners that fail before they work",
  bot(column) {
    const bot = botOf(column);
    let fails = 2;
    bot.on("durability:dead", () => {
      fails -= 1;
      if (fails >= 0) throw new Error("the listener is down");
    });
    bot.after("send", () => {});
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} refused`).catch(() => {});
      await ctx.reply(`${ctx.text} sent`);
    });
    return bot;
  },
  async run(t) {
    t.platform().failNext({ type: "refuse", kind: "permission" });
    await t.user("ann").say("x");
    await t.advance("5m");
    await t.idle();
  },
};

const statuses: Scenario = {
  name: "statuses that come before the answer",
  bot(column) {
    const bot = botOf(column, { capabilities: { statuses: true } });
    bot.on("status", () => {});
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} answered`).catch(() => {});
    });
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    t.platform().latency = () => 500;
    await ann.post({ text: "x" });
    await t.advance(100);
    const id = `m${t.platform().ledger.length + 1}`;
    await t.deliverStatus("mock", {
      platformId: id,
      status: "delivered",
      at: t.now,
      chat: ann.chat,
    });
    await t.idle();
    const marker = t.platform().calls.at(-1)?.marker;
    if (marker !== undefined) {
      await t.deliverStatus("mock", { marker, status: "read", at: t.now, chat: ann.chat });
    }
    await t.idle();
  },
};

const ageing: Scenario = {
  name: "records that grow old",
  purges: true,
  bot(column) {
    const bot = botOf(column, { durability: { retention: "2d" } });
    bot.otherwise((ctx) => ctx.reply(`${ctx.text} heard`));
    return bot;
  },
  async run(t) {
    await t.user("ann").say("x");
    await t.advance("3d");
    await t.user("ann").say("y");
    await t.advance("40d");
    await t.idle();
  },
};

const deploys: Scenario = {
  name: "a deploy that lowers the platform's limit",
  bot(column) {
    const text = { limit: 200, unit: "codepoints" as const };
    const bot = botOf(column, { capabilities: { text }, prepare: true });
    bot.otherwise(async (ctx) => {
      await ctx.enqueue(
        `${ctx.text} first ${"f".repeat(30)}\n\n${ctx.text} second ${"s".repeat(30)}`,
        { delay: "5s" },
      );
    });
    return bot;
  },
  async run(t) {
    const { capabilities } = t.channel("mock");
    capabilities.text.limit = 200;
    await t.user("ann").say("x");
    await t.advance("1s");
    t.runtime.kill();
    capabilities.text.limit = LIMIT + 5;
    await t.advance("1m");
    await t.idle();
  },
};

const unreported: Scenario = {
  name: "a Registry that cannot be reached",
  bot(column) {
    const bot = botOf(column);
    bot.otherwise(async (ctx) => {
      await ctx.reply(`${ctx.text} refused`).catch(() => {});
    });
    return bot;
  },
  async run(t) {
    const back = t.now + 20_000;
    t.runtime.onCall = (kind) => {
      if (kind === "Registry" && t.now < back) throw new Error("the registry is away");
    };
    t.platform().failNext({ type: "refuse", kind: "permission" });
    await t.user("ann").say("x");
    await t.advance("5m");
    await t.idle();
  },
};

/** All scenarios. */
export const SCENARIOS: readonly Scenario[] = [
  talk,
  faults,
  endings,
  poison,
  diverging,
  operators,
  listeners,
  statuses,
  ageing,
  deploys,
  unreported,
  ...BUSY_SCENARIOS,
  ...FLOW_SCENARIOS,
  ...STREAM_SCENARIOS,
];
