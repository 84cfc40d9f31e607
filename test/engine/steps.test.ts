/** `ctx.step` over runs that die, retry and fail. */
import { describe, expect, test } from "vitest";
import { type Context, RetryTurn, TurnEndedError } from "../../src/index.ts";
import { type Lab, lab } from "./lab.ts";

/** Runs `run`; the first `deaths` runs die at its end. */
function dying(run: (ctx: Context, l: Lab) => unknown, deaths = 1): Lab {
  return lab({
    durability: { inbox: { leaseMs: 1_000 } },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        await run(ctx, l());
        if (ctx.attempt > deaths) return;
        await l().sleep(1);
        l().t.runtime.kill();
        await new Promise(() => {});
      }),
  });
}

describe("a step", () => {
  test("runs once, however often its turn does, and gives the same value each time", async () => {
    let charged = 0;
    const l = dying(async (ctx, l) => {
      const id = await ctx.step("charge", () => {
        charged += 1;
        return { id: `c${charged}`, at: [1, null, "x"] };
      });
      l.notes.push(id);
    }, 3);
    await l.ann.say("hi");
    expect(charged).toBe(1);
    expect(l.notes).toEqual(Array.from({ length: 4 }, () => ({ id: "c1", at: [1, null, "x"] })));
  });

  test("without a value is recorded, too", async () => {
    let done = 0;
    const l = dying(async (ctx, l) => {
      l.notes.push(
        await ctx.step("notify", () => {
          done += 1;
        }),
      );
    });
    await l.ann.say("hi");
    expect(done).toBe(1);
    expect(l.notes).toEqual([undefined, undefined]);
  });

  test("that throws is not recorded: a retry runs it again", async () => {
    let tries = 0;
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const value = await ctx
            .step("flaky", () => {
              tries += 1;
              if (tries < 3) throw new Error("no");
              return "yes";
            })
            .catch(() => {
              throw new RetryTurn();
            });
          await ctx.reply(value);
        }),
    });
    await l.ann.say("hi");
    expect(tries).toBe(3);
    expect(l.screen).toEqual(["yes"]);
  });

  test("with the same name as another before it is a step of its own", async () => {
    let runs = 0;
    const l = dying(async (ctx, l) => {
      const values: number[] = [];
      for (let n = 0; n < 3; n += 1)
        values.push(
          await ctx.step("item", () => {
            runs += 1;
            return n;
          }),
        );
      l.notes.push(values);
    });
    await l.ann.say("hi");
    expect(runs).toBe(3);
    expect(l.notes).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  test("named like the runtime names a second one is not mistaken for it", async () => {
    const l = dying(async (ctx, l) => {
      l.notes.push([
        await ctx.step("a", () => "first"),
        await ctx.step("a", () => "second"),
        await ctx.step("a@2", () => "third"),
      ]);
    }, 0);
    await l.ann.say("hi");
    expect(l.notes).toEqual([["first", "second", "third"]]);
  });

  test("inside another is recorded on its own: the outer goes on where it was", async () => {
    const ran: string[] = [];
    const l = dying(async (ctx, l) => {
      const run = ctx.attempt;
      const value = await ctx.step("outer", async () => {
        const a = await ctx.step("inner", () => {
          ran.push("a");
          return "a";
        });
        if (run === 1) {
          await l.sleep(1);
          l.t.runtime.kill();
          await new Promise(() => {});
        }
        const b = await ctx.step("inner", () => {
          ran.push("b");
          return "b";
        });
        ran.push("outer");
        return a + b;
      });
      l.notes.push(value);
    }, 2);
    await l.ann.say("hi");
    expect(ran).toEqual(["a", "b", "outer"]);
    expect(l.notes).toEqual(["ab", "ab"]);
  });

  test("beside others at the same time keeps its sends apart from theirs", async () => {
    let order = [30, 20, 10];
    const l = dying(async (ctx, l) => {
      const delays = order;
      // On the replay they finish the other way round.
      order = [10, 20, 30];
      await Promise.all(
        ["x", "y", "z"].map((name, n) =>
          ctx.step(name, async () => {
            await l.sleep(delays[n] ?? 0);
            await ctx.reply(`${name} 1`);
            if (ctx.attempt === 1) await new Promise((resolve) => setImmediate(resolve));
            await ctx.reply(`${name} 2`);
            if (ctx.attempt === 1 && name === "x") throw new RetryTurn();
          }),
        ),
      );
    }, 0);
    await l.ann.say("hi");
    expect([...l.screen].sort()).toEqual(["x 1", "x 2", "y 1", "y 2", "z 1", "z 2"]);
    expect((await l.metrics()).outboxDiverged).toBe(0);
    expect(await l.client.outbox.get("e1:x/1")).toMatchObject({ content: { text: "x 2" } });
  });

  test("whose name holds separators keeps its sends findable", async () => {
    const l = dying((ctx) => ctx.step("a/b:c#1~d", () => ctx.reply("hello")), 0);
    await l.ann.say("hi");
    const key = l.sends()[0]?.slot;
    expect(await l.client.outbox.get(`e1:${key}`)).toMatchObject({ content: { text: "hello" } });
  });

  test("of another turn has nothing to do with it", async () => {
    let runs = 0;
    const l = dying(
      (ctx) =>
        ctx.step("s", () => {
          runs += 1;
        }),
      0,
    );
    await l.ann.say("one");
    await l.ann.say("two");
    expect(runs).toBe(2);
  });

  test("on a turn that is over does not run", async () => {
    let late: Promise<unknown> = Promise.resolve();
    let ran = false;
    const l = dying((ctx, l) => {
      late = l
        .sleep(5_000)
        .then(() =>
          ctx.step("late", () => {
            ran = true;
          }),
        )
        .catch((error: unknown) => error);
    }, 0);
    await l.ann.say("hi");
    await l.t.advance("10s");
    expect(await late).toBeInstanceOf(TurnEndedError);
    expect(ran).toBe(false);
  });

  test("whose result is too long for the journal says so, naming the step", async () => {
    const l = dying(async (ctx, l) => {
      l.notes.push(
        await ctx.step("big", () => "x".repeat(2_000_000)).catch((error: unknown) => error),
      );
    }, 0);
    await l.ann.say("hi");
    expect(l.notes[0]).toMatchObject({
      code: "payload_too_large",
      message: expect.stringContaining('"big"'),
    });
  });
});
