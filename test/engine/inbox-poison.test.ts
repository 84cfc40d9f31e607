import { describe, expect, test } from "vitest";
import type { Context, DurabilityOptions } from "../../src/index.ts";
import { type Lab, lab, only } from "./lab.ts";

/** A lab whose "poison" kills the process as long as it is deadly. */
type Deadly = Lab & { deadly: boolean };

interface Start {
  run: number;
  at: number;
}

/** A bot that dies while it handles "poison", as long as `deadly`; other messages are answered. */
function dying(
  before: (ctx: Context, l: Deadly) => unknown = () => {},
  inbox: DurabilityOptions["inbox"] = {},
): Deadly {
  const l = Object.assign(
    lab({
      durability: { inbox },
      setup: (bot, get) => {
        bot.when("poison", async (ctx) => {
          const mine = get() as Deadly;
          mine.notes.push({ run: ctx.attempt, at: mine.now - started });
          await before(ctx, mine);
          if (mine.deadly) {
            await mine.sleep(1);
            mine.t.runtime.kill(mine.actor());
            await new Promise(() => {});
          }
          await ctx.reply("survived");
        });
        bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
      },
    }),
    { deadly: true },
  );
  const started = l.now;
  return l;
}

const starts = (l: Lab) => l.notes as Start[];

describe("a message that kills the process every time", () => {
  test("is given up after five starts without progress, announced once, and the chat goes on", async () => {
    const l = dying();
    await l.receive([l.message("a", "poison"), l.message("b", "next")]);
    await l.t.idle();
    expect(starts(l).map(({ run }) => run)).toEqual([1, 2, 3, 4, 5]);
    expect(l.told("durability:dead")).toEqual([
      {
        kind: "inbound",
        id: "a",
        chatId: "mock/mock/ann",
        error: expect.stringMatching(/5 times/),
      },
    ]);
    expect(only((await l.client.inbox.list({ state: "dead" })).rows).id).toBe("a");
    expect(l.screen).toEqual(["ok next"]);
  });

  test("is not given up younger than two minutes: its last start waits for that", async () => {
    const l = dying();
    await l.ann.post({ text: "poison" });
    await l.t.advance("119s");
    expect(l.told("durability:dead")).toEqual([]);
    await l.t.idle();
    expect(starts(l).at(-1)?.at).toBeGreaterThanOrEqual(120_000);
  });

  test("spreads its starts out, so that the process can do other work between them", async () => {
    const l = dying(() => {}, { maxAttempts: 8, minAgeMs: 0, leaseMs: 1_000 });
    await l.ann.say("poison");
    const waits = starts(l)
      .slice(1)
      .map(({ at }, n) => at - (starts(l)[n]?.at ?? 0));
    expect(waits).toHaveLength(7);
    // The watchdog brings each back after a second; from the third start on a doubling backoff adds to it.
    for (const [n, wait] of waits.slice(1).entries()) {
      expect(wait).toBeGreaterThanOrEqual(1_000 + 500 * 2 ** n);
      expect(wait).toBeLessThanOrEqual(1_100 + 1_000 * 2 ** n);
    }
  });

  test("can be replayed by an operator once the bug is fixed", async () => {
    const l = dying();
    await l.ann.say("poison");
    l.deadly = false;
    const { ref } = only((await l.client.inbox.list({ state: "dead" })).rows);
    expect(await l.t.client.durability.replayInbound(ref)).toBe(true);
    await l.t.idle();
    expect(l.screen).toEqual(["survived"]);
    expect(await l.client.inbox.get("e1")).toMatchObject({ state: "done" });
  });

  test("and again after a replay is given up again, not at its first crash", async () => {
    const l = dying();
    await l.ann.say("poison");
    const before = starts(l).length;
    await l.client.inbox.replay("e1");
    await l.t.idle();
    expect(starts(l).length - before).toBeGreaterThanOrEqual(4);
    expect(l.told("durability:dead")).toHaveLength(2);
  });
});

describe("a message whose every start gets further", () => {
  test("is never given up while it does, and comes to its end", async () => {
    const l = dying(
      async (ctx, mine) => {
        for (let n = 0; n < 9; n += 1) {
          const fresh = await ctx
            .step(`s${n}`, () => true)
            .then(() => starts(mine).length === n + 1);
          if (fresh) return;
        }
        mine.deadly = false;
      },
      { maxAttempts: 3, minAgeMs: 0 },
    );
    await l.ann.say("poison");
    expect(starts(l)).toHaveLength(10);
    expect(l.screen).toEqual(["survived"]);
    expect(l.told("durability:dead")).toEqual([]);
  });

  test("by sends counts as getting further, too", async () => {
    const l = dying(
      async (ctx, mine) => {
        for (let n = 0; n < 6; n += 1) {
          await ctx.reply(`part ${n}`);
          if (starts(mine).length === n + 1) return;
        }
        mine.deadly = false;
      },
      { maxAttempts: 3, minAgeMs: 0 },
    );
    await l.ann.say("poison");
    expect(l.screen).toEqual([...Array.from({ length: 6 }, (_u, n) => `part ${n}`), "survived"]);
  });

  test("is given up at four times the limit all the same: an endless loop is one, too", async () => {
    const l = dying(
      (ctx) => ctx.enqueue("x", { idempotencyKey: `run-${ctx.attempt}`, delay: "90d" }),
      {
        maxAttempts: 3,
        minAgeMs: 0,
      },
    );
    await l.ann.say("poison");
    expect(starts(l)).toHaveLength(12);
    expect(l.told("durability:dead").map((event) => event.id)).toEqual(["e1"]);
  });

  test("by saying something else each time does not count as getting further", async () => {
    const l = dying((ctx) => ctx.reply(`run ${ctx.attempt}`), { maxAttempts: 3, minAgeMs: 0 });
    await l.ann.say("poison");
    // The first start recorded an ordinal; the three after it nothing new.
    expect(starts(l)).toHaveLength(4);
  });

  test("and was given up at four times the limit can still be replayed by an operator", async () => {
    const l = dying(
      (ctx) => ctx.enqueue("x", { idempotencyKey: `run-${ctx.attempt}`, delay: "90d" }),
      {
        maxAttempts: 3,
      },
    );
    await l.ann.say("poison");
    l.deadly = false;
    await l.client.inbox.replay("e1");
    await l.t.advance("5m");
    expect(l.screen).toEqual(["survived"]);
  });

  test("with a limit of one start can still be replayed by an operator", async () => {
    const l = dying(() => {}, { maxAttempts: 1 });
    await l.ann.say("poison");
    expect(starts(l)).toHaveLength(1);
    l.deadly = false;
    await l.client.inbox.replay("e1");
    await l.t.advance("5m");
    expect(l.screen).toEqual(["survived"]);
  });
});

describe("a good message", () => {
  test("survives a crash loop of its neighbours and a deploy that rolls for two minutes", async () => {
    const l = lab({
      durability: { inbox: { leaseMs: 1_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push(ctx.attempt);
          await l().sleep(10_000);
          await ctx.reply("done");
        }),
    });
    await l.ann.post({ text: "hi" });
    for (let n = 0; n < 24; n += 1) {
      await l.t.advance("5s");
      l.t.runtime.kill();
      await l.client.metrics();
    }
    await l.t.idle();
    expect(l.notes.length).toBeGreaterThan(4);
    expect(l.screen).toEqual(["done"]);
    expect(l.told("durability:dead")).toEqual([]);
  });

  test("that waits behind a poisoned one for longer than the minimum age is not hurt by that", async () => {
    const l = dying(() => {}, { maxAttempts: 3, minAgeMs: 5_000, leaseMs: 20_000 });
    await l.receive([l.message("a", "poison"), l.message("b", "good")]);
    await l.t.idle();
    expect(l.screen).toEqual(["ok good"]);
    expect(await l.client.inbox.get("b")).toMatchObject({ runs: 1, state: "done" });
  });
});
