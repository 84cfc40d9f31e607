/** `ctx.state` and `ctx.user` over runs that die, retry and fail. */
import { describe, expect, test } from "vitest";
import type { Context } from "../../src/index.ts";
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

describe("state set inside a step", () => {
  test("is set again when the step is answered from the record", async () => {
    const l = dying(async (ctx, l) => {
      await ctx.step("outer", async () => {
        ctx.state.set("a", 1);
        await ctx.step("inner", () => ctx.user.set("b", { deep: true }));
        ctx.state.set("gone", 1);
        ctx.state.delete("gone");
      });
      l.notes.push([ctx.state.get("a"), ctx.user.get("b"), ctx.state.get("gone")]);
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual([
      [1, { deep: true }, undefined],
      [1, { deep: true }, undefined],
    ]);
    expect(l.t.state(l.ann, "a")).toBe(1);
    expect(l.sql("SELECT v FROM state WHERE scope = 'u:ann' AND k = 'b'")).toEqual([
      { v: '{"deep":true}' },
    ]);
  });

  test("is taken back when the step fails and its error is caught, as its replay would not set it", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          ctx.state.set("a", 1);
          await ctx
            .step("s", () => {
              ctx.state.set("a", 2);
              throw new Error("no");
            })
            .catch(() => 0);
        }),
    });
    await l.ann.say("hi");
    expect(l.t.state(l.ann, "a")).toBe(1);
  });

  test("is dropped with the rest when the turn throws", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.step("s", () => ctx.state.set("a", 1));
          throw new Error("boom");
        }),
    });
    await l.ann.say("hi");
    expect(l.t.state(l.ann, "a")).toBeUndefined();
  });
});

describe("state", () => {
  test("counts each message exactly once, though the process dies at every step", async () => {
    for (const label of ["inbox.receive", "turn.handler", "turn.settle", "inbox.claim"]) {
      for (const side of ["before", "after"] as const) {
        const l = dying((ctx) => void ctx.state.update<number>("n", (n) => (n ?? 0) + 1), 0);
        l.t.crash[side](label);
        await l.ann.say("one");
        await l.ann.say("two");
        expect(l.t.state(l.ann, "n"), `${side} ${label}`).toBe(2);
      }
    }
  });

  test("of a user is that user's in this chat alone", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const mine = ctx.user.update<number>("n", (n) => (n ?? 0) + 1);
          const all = ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
          await ctx.reply(`${mine}/${all}`);
        }),
    });
    const [ann, bob] = ["ann", "bob"].map((name) => l.t.user(name, { chat: "team" }));
    for (const user of [ann, bob, ann]) await user?.say("hi");
    await l.ann.say("hi");
    expect(ann?.screen).toEqual(["1/1", "1/2", "2/3"]);
    expect(l.screen).toEqual(["1/1"]);
  });

  test("that is no JSON, or too long, is refused where it is set", async () => {
    const l = dying((ctx, l) => {
      for (const value of [undefined, () => 1, Symbol("x"), "x".repeat(2_000_000)]) {
        try {
          ctx.state.set("k", value);
        } catch (error) {
          l.notes.push((error as Error).name);
        }
      }
    }, 0);
    await l.ann.say("hi");
    expect(l.notes).toEqual(["TypeError", "TypeError", "TypeError", "PayloadTooLargeError"]);
  });

  test("that is too long in bytes, though not in characters, is refused where it is set", async () => {
    const l = dying((ctx) => ctx.state.set("k", "漢".repeat(1_000_000)), 0);
    await l.ann.say("hi");
    expect(l.told("error")).toEqual([
      expect.objectContaining({ error: expect.objectContaining({ code: "payload_too_large" }) }),
    ]);
  });

  test("that a client sets is held to the same limit", async () => {
    const l = dying(() => {}, 0);
    await expect(l.client.state.set("k", "x".repeat(2_000_000))).rejects.toMatchObject({
      code: "payload_too_large",
    });
  });

  test("is read and written by clients between turns", async () => {
    const l = dying((ctx) => ctx.reply(String(ctx.state.get("lang"))), 0);
    await l.client.state.set("lang", "de");
    await l.ann.say("hi");
    expect(l.screen).toEqual(["de"]);
    expect(await l.client.state.get("lang")).toBe("de");
    await l.client.state.delete("lang");
    await l.ann.say("hi");
    expect(l.screen).toEqual(["de", "undefined"]);
  });
});
