/** Each counter of design §9 moves when its thing happens, and only then. */
import { describe, expect, test } from "vitest";
import { RetryTurn } from "../../src/index.ts";
import { METRICS, type MetricName } from "../../src/objects/Metrics.ts";
import { type Code, echoing, type Lab, lab } from "./lab.ts";

/** Every counter that is not zero. */
async function counted(l: Lab): Promise<Partial<Record<MetricName, number>>> {
  const all = await l.metrics();
  expect(Object.keys(all).sort()).toEqual([...METRICS].sort());
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== 0));
}

const cases: [
  string,
  Partial<Code>,
  (l: Lab) => Promise<unknown>,
  Partial<Record<MetricName, number>>,
][] = [
  [
    "a message and its reply",
    {},
    (l) => l.ann.say("hi"),
    { inboundJournaled: 1, outboxJournaled: 1 },
  ],
  [
    "a second delivery",
    {},
    async (l) => {
      await l.receive([l.message("m", "hi")]);
      await l.receive([l.message("m", "hi"), l.message("m", "hi")]);
    },
    { inboundJournaled: 1, inboundDuplicates: 2, outboxJournaled: 1 },
  ],
  [
    "a body that is malformed",
    {},
    (l) => l.receive([{ type: "bad", id: "b", chat: l.ann.chat, error: "x", sample: "" }]),
    { inboundDead: 1 },
  ],
  [
    "a text of three parts",
    { capabilities: { text: { limit: 4, unit: "codepoints" } } },
    (l) => l.ann.say("a b c d"),
    { inboundJournaled: 1, outboxJournaled: 3 },
  ],
  [
    "a refusal that is retried",
    {},
    (l) => {
      l.platform.failNext(
        { type: "refuse", kind: "transient" },
        { type: "refuse", kind: "transient" },
      );
      return l.ann.say("hi");
    },
    { inboundJournaled: 1, outboxJournaled: 1, outboxRetried: 2 },
  ],
  [
    "a reply that is deferred",
    {},
    (l) => {
      l.platform.failNext({ type: "refuse", kind: "transient", retryAfterMs: 60_000 });
      return l.ann.say("hi");
    },
    { inboundJournaled: 1, outboxJournaled: 1, outboxRetried: 1, outboxDeferred: 1 },
  ],
  [
    "a send that dies",
    { setup: (bot) => bot.otherwise((ctx) => ctx.reply("x").catch(() => {})) },
    (l) => {
      l.platform.failNext({ type: "refuse", kind: "permission" });
      return l.ann.say("hi");
    },
    { inboundJournaled: 1, outboxJournaled: 1, outboxDead: 1 },
  ],
  [
    "three lost answers of one send",
    { class: "keyed" },
    (l) => {
      l.platform.failNext({ type: "drop" }, { type: "drop" }, { type: "drop" });
      return l.ann.say("hi");
    },
    { inboundJournaled: 1, outboxJournaled: 1, outboxAmbiguous: 1, outboxRetried: 3 },
  ],
  [
    "a turn that runs again",
    {
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("x");
          if (ctx.attempt === 1) throw new RetryTurn();
        }),
    },
    (l) => l.ann.say("hi"),
    { inboundJournaled: 1, inboundReplayed: 1, outboxJournaled: 1, outboxDeduped: 1 },
  ],
  [
    "a turn that says something else when it runs again",
    {
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply(`run ${ctx.attempt}`);
          if (ctx.attempt === 1) throw new RetryTurn();
        }),
    },
    (l) => l.ann.say("hi"),
    { inboundJournaled: 1, inboundReplayed: 1, outboxJournaled: 2, outboxDiverged: 1 },
  ],
  [
    "an explicit key used again",
    {},
    async (l) => {
      for (let n = 0; n < 3; n += 1) await l.client.enqueue("x", { idempotencyKey: "k" });
    },
    { outboxJournaled: 1, outboxDeduped: 2 },
  ],
  [
    "content over the limit",
    { durability: { outbox: { maxPayloadBytes: 50 } } },
    (l) => l.client.enqueue("x".repeat(100)),
    { outboxBypassed: 1 },
  ],
  [
    "an unrecorded send by choice",
    {},
    (l) => l.client.enqueue("x", { durability: "disabled" }),
    {},
  ],
  [
    "a handler that throws",
    { setup: (bot) => bot.otherwise(() => Promise.reject(new Error("x"))) },
    (l) => l.ann.say("hi"),
    { inboundJournaled: 1 },
  ],
];

describe("the counters of a chat", () => {
  test.each(cases)("for %s", async (_name, code, act, wanted) => {
    const l = lab({ setup: echoing, ...code });
    await act(l);
    await l.t.idle();
    expect(await counted(l)).toEqual(wanted);
  });

  test("for a message that kills the process", async () => {
    const l = lab({
      durability: { inbox: { maxAttempts: 2, minAgeMs: 0 } },
      setup: (bot, l) =>
        bot.when("poison", async () => {
          await l().sleep(1);
          l().t.runtime.kill(l().actor());
          await new Promise(() => {});
        }),
    });
    await l.ann.say("poison");
    expect((await l.t.client.durability.metrics()).inboundDead).toBe(1);
  });

  test("for a settle whose claim was lost", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(
          () => void (l().notes.push(1) === 1 && l().damage("UPDATE inbox SET claim = 'x'")),
        ),
    });
    await l.ann.say("hi");
    expect(await l.metrics()).toMatchObject({ staleLeases: 1 });
  });
});

describe("the counters of the bot", () => {
  test("are the sum over chats, and lose nothing when reports fail for a while", async () => {
    const l = lab({ setup: echoing });
    const call = l.t.runtime.call.bind(l.t.runtime);
    let down = true;
    l.t.runtime.call = (kind, ...rest) =>
      kind === "Registry" && down && rest[1] === "report"
        ? Promise.reject(new Error("down"))
        : call(kind, ...rest);
    for (const name of ["ann", "bob", "cem"]) await l.t.user(name).say("hi");
    await l.t.advance("2m");
    down = false;
    await l.t.advance("9d");
    expect(await l.t.client.durability.metrics()).toMatchObject({
      inboundJournaled: 3,
      outboxJournaled: 3,
      outboxDead: 0,
    });
  });
});
