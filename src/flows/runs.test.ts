/** Runs: how they are started, looked at and ended. */
import { describe, expect, test } from "vitest";
import { made } from "./lab.ts";

describe("a run", () => {
  test("is started once, though the turn that starts it is run again", async () => {
    for (const label of ["flow.start", "turn.settle"])
      for (const side of ["before", "after"] as const) {
        const { t } = made((bot) => {
          const a = bot.flow("a", async (c) => void (await c.ask("A?")));
          bot.command("a", async (ctx) => {
            await ctx.start(a, 1, { sender: "bob" });
            await ctx.start(a, 2);
          });
        });
        const ann = t.user("ann");
        t.crash[side](label);
        await ann.say("/a");
        await t.advance("5m");
        const { rows } = await t.client.chat(ann.address).flows.list();
        expect(rows.map((row) => row.state)).toEqual(["active", "active"]);
        expect(ann.screen).toEqual(["A?", "A?"]);
      }
  });

  test("is shown to operators, step by step, and can be ended by them", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c, input: { shop: string }) => {
        await c.step("price", () => 7);
        await c.ask(`Size at ${input.shop}?`, { timeout: "1h" });
        await c.ask("Really?");
      });
      bot.command("order", (ctx) => ctx.start(order, { shop: "Luigi" }, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await t.advance("1s");
    await ann.say("small");
    const { flows } = t.client.chat(ann.address);
    expect(await flows.get("o1")).toMatchObject({
      flow: "order",
      state: "active",
      waitsFor: "ask text",
      input: { shop: "Luigi" },
      history: [
        { kind: "step", name: "price", result: 7 },
        { kind: "send", result: "sent" },
        // It came, and what was said then.
        { kind: "send", result: "sent" },
        { kind: "ask", name: "text", result: "small" },
      ],
    });
    expect(await flows.cancel("o1")).toBe(true);
    expect(await flows.cancel("o1")).toBe(false);
    expect(await flows.list({ state: "cancelled" })).toMatchObject({ rows: [{ id: "o1" }] });
  });

  test("is listed page by page, newest first; what is no cursor is refused", async () => {
    const { t } = made((bot) => {
      const a = bot.flow("a", () => 1);
      bot.command("a", (ctx) => ctx.start(a));
    });
    const ann = t.user("ann");
    for (let n = 0; n < 3; n += 1) await ann.say("/a");
    const { flows } = t.client.chat(ann.address);
    const all = (await flows.list()).rows.map(({ id }) => id);
    const first = await flows.list({ limit: 2 });
    const rest = await flows.list({ limit: 2, ...(first.cursor && { cursor: first.cursor }) });
    expect(all).toHaveLength(3);
    expect([...first.rows, ...rest.rows].map(({ id }) => id)).toEqual(all);
    expect(rest.cursor).toBeUndefined();
    for (const cursor of ["x", "1", "-1.0", "9".repeat(30)])
      await expect(flows.list({ cursor })).rejects.toMatchObject({ code: "config" });
  });

  test("one run of a sender at a time: a second replaces the first, or is not started", async () => {
    const { t, notes } = made((bot, notes) => {
      const a = bot.flow("a", async (c) => void (await c.ask("A?")));
      const b = bot.flow("b", async (c) => void (await c.ask("B?")));
      bot.command("a", (ctx) => ctx.start(a));
      bot.command("b", (ctx) => ctx.start(b));
      bot.command("keep", async (ctx) => {
        notes.push((await ctx.start(a, undefined, { active: "keep" })).started);
      });
    });
    const ann = t.user("ann");
    await ann.say("/a");
    await ann.say("/b");
    await ann.say("/keep");
    expect(ann.screen).toEqual(["A?", "B?"]);
    expect(notes).toEqual([false]);
    const { rows } = await t.client.chat(ann.address).flows.list({ state: "active" });
    expect(rows.map((row) => row.flow)).toEqual(["b"]);
  });

  test("is started from outside, for everybody in the chat, once for each id", async () => {
    const { t } = made((bot) => {
      bot.flow("survey", async (c, topic: string) => {
        await c.reply(`noted: ${await c.ask(`How was ${topic}?`)}`);
      });
      bot.otherwise((ctx) => ctx.reply("?"));
    });
    const ann = t.user("ann");
    await ann.say("hello");
    const survey = { name: "survey", version: 1 };
    const chat = t.client.chat(ann.address);
    const start = () => chat.start<unknown>(survey, "lunch", { id: "s1" });
    expect([(await start()).started, (await start()).started]).toEqual([true, false]);
    await t.idle();
    await ann.say("good");
    expect(ann.screen).toEqual(["?", "How was lunch?", "noted: good"]);
    await expect(chat.start<unknown>({ name: "none", version: 1 }, 1)).rejects.toThrow(
      'the bot has no flow "none"',
    );
  });
});
