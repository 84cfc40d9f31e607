/** Steps of a run: each call has one outcome, a value or an error, whoever runs the function again. */
import { describe, expect, test } from "vitest";
import { RetryTurn } from "../index.ts";
import { made, pause } from "./lab.ts";

describe("steps of one name at the same time", () => {
  test.each([
    [1, "first"],
    [2, "second"],
  ])("each have their own outcome when the function runs again (%i fails)", async (bad) => {
    const { t, notes } = made((bot, notes) => {
      let runs = 0;
      const flow = bot.flow("order", async (c) => {
        const one = (n: number) =>
          c.step("charge", async () => {
            runs += 1;
            await pause(t, 1_000 * n);
            if (n === bad) throw new Error(`declined ${n}`);
            return `paid ${n}`;
          });
        const all = await Promise.allSettled([one(1), one(2)]);
        const third = await c.step("charge", () => "paid 3");
        notes.push(
          [
            ...all.map((x) => (x.status === "fulfilled" ? x.value : x.reason.message)),
            third,
          ].join(),
        );
        await c.ask("Go on?");
        await c.reply(`${runs} charges`);
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await t.restart();
    await ann.say("yes");
    const wanted = [1, 2].map((n) => (n === bad ? `declined ${n}` : `paid ${n}`)).concat("paid 3");
    expect(notes).toEqual([wanted.join(), wanted.join()]);
    expect(ann.screen.at(-1)).toBe("2 charges");
  });
});

describe("a step that fails, and whose error is caught", () => {
  test("writes no state, neither now nor when the function runs again", async () => {
    const { t, notes } = made((bot, notes) => {
      const flow = bot.flow("order", async (c) => {
        c.state.set("n", 1);
        await c
          .step("count", async () => {
            c.state.update<number>("n", (n) => (n ?? 0) + 1);
            await c.step("inner", () => c.state.set("inner", true));
            throw new Error("no");
          })
          .catch(() => 0);
        notes.push([c.state.get("n"), c.state.get("inner")]);
        await c.ask("Go on?");
        c.state.update<number>("n", (n) => (n ?? 0) + 10);
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    const { state } = t.client.chat(ann.address);
    expect([await state.get("n"), await state.get("inner")]).toEqual([1, undefined]);
    await ann.say("yes");
    expect(notes).toEqual([
      [1, undefined],
      [1, undefined],
    ]);
    expect(await state.get("n")).toBe(11);
  });

  test("writes no state of a try that failed where the next one worked", async () => {
    let tries = 0;
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await c.step(
          "count",
          () => {
            tries += 1;
            c.state.update<number>("n", (n) => (n ?? 0) + 1);
            if (tries === 1) c.state.set("bad", true);
            if (tries < 3) throw new Error("busy");
          },
          { retries: 3 },
        );
        await c.ask("Go on?");
        c.state.update<number>("n", (n) => (n ?? 0) + 10);
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    const { state } = t.client.chat(ann.address);
    expect([await state.get("n"), await state.get("bad")]).toEqual([1, undefined]);
    await ann.say("yes");
    expect(await state.get("n")).toBe(11);
  });

  test("takes back no state that was written beside it", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        const both = [1, 2].map((n) =>
          c.step(`s${n}`, async () => {
            c.state.update<number[]>("by", (by) => [...(by ?? []), n]);
            await pause(t, n * 1_000);
            if (n === 1) throw new Error("no");
            c.state.set(`s${n}`, true);
          }),
        );
        await Promise.allSettled(both);
        await c.ask("Go on?");
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    const { state } = t.client.chat(ann.address);
    expect([await state.get("by"), await state.get("s2")]).toEqual([[1, 2], true]);
  });

  test("is not run again by a crash once the function went on", async () => {
    for (const at of ["outbox.insert", "outbox.markSent", "turn.settle"]) {
      let tries = 0;
      const { t } = made((bot) => {
        const flow = bot.flow("pay", async (c) => {
          const paid = await c
            .step("charge", () => {
              tries += 1;
              if (tries === 1) throw new Error("declined");
              return true;
            })
            .catch(() => false);
          await c.reply(paid ? "Paid." : "Declined.");
          await c.ask("Again?");
        });
        bot.command("pay", (ctx) => ctx.start(flow));
      });
      const ann = t.user("ann");
      await ann.post({ text: "/pay" });
      t.crash.before(at);
      await t.idle();
      await t.advance("5m");
      expect([at, tries, ann.screen]).toEqual([at, 1, ["Declined.", "Again?"]]);
    }
  });

  test("is tried again by a turn that runs again for it", async () => {
    let tries = 0;
    const { t } = made((bot) => {
      const flow = bot.flow("pay", async (c) => {
        await c
          .step("charge", () => {
            tries += 1;
            if (tries < 3) throw new Error("busy");
          })
          .catch((cause: unknown) => {
            throw new RetryTurn({ after: "5s", cause });
          });
        await c.reply("Paid.");
      });
      bot.command("pay", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    await ann.say("/pay");
    await t.advance("1m");
    expect([tries, ann.screen]).toEqual([3, ["Paid."]]);
  });

  test("is shown to operators with its error, without secrets", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("pay", async (c) => {
        await c.step("charge", () => Promise.reject(new Error("declined"))).catch(() => 0);
        await c.ask("Again?");
      });
      bot.command("pay", (ctx) => ctx.start(flow, undefined, { id: "p1" }));
    });
    const ann = t.user("ann");
    await ann.say("/pay");
    const run = await t.client.chat(ann.address).flows.get("p1");
    expect(run?.history[0]).toMatchObject({ kind: "step", name: "charge", error: "declined" });
  });
});

test("a wait between tries that is no duration is refused by name", async () => {
  const { t } = made((bot) => {
    const flow = bot.flow("order", (c) =>
      c.step("charge", () => 1, { retries: 1, backoff: "soon" as "1s" }),
    );
    bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
  });
  const ann = t.user("ann");
  await ann.say("/order");
  expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({
    state: "failed",
    error: expect.stringContaining('"soon" is not a duration'),
  });
});

test("what a step gives is what its record gives, at once", async () => {
  const { t, notes } = made((bot, notes) => {
    const flow = bot.flow("order", async (c) => {
      notes.push([
        await c.step("date", () => ({ at: new Date(0), of: new Map([[1, 2]]), no: undefined })),
        await c.step("nothing", () => undefined),
        await c.step("null", () => null),
      ]);
      await c.ask("Go on?");
    });
    bot.command("order", (ctx) => ctx.start(flow));
  });
  const ann = t.user("ann");
  await ann.say("/order");
  await ann.say("yes");
  const given = [{ at: "1970-01-01T00:00:00.000Z", of: {} }, undefined, null];
  expect(notes).toStrictEqual([given, given]);
});
