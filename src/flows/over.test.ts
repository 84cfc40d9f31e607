/** Runs that end while something else is under way: what is over stays as it ended. */
import { describe, expect, test } from "vitest";
import { RetryTurn } from "../index.ts";
import { made, pause } from "./lab.ts";

describe("a run that an operator ends while it is executed", () => {
  test("stays cancelled though its turn runs too long after", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await c.ask("Size?");
        await new Promise(() => {});
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.post({ text: "small" });
    await t.advance("1m");
    const { flows } = t.client.chat(ann.address);
    expect(await flows.cancel("o1")).toBe(true);
    await t.advance("11m");
    expect(await flows.get("o1")).toMatchObject({
      state: "cancelled",
      error: "cancelled by an operator",
    });
  });

  test.each(["fail", "restart"] as const)(
    "is neither failed, announced nor begun anew for code that changed (%s)",
    async (onCodeChange) => {
      let changed = false;
      const { t } = made((bot) => {
        const flow = bot.flow("order", { onCodeChange }, async (c) => {
          if (changed) {
            await pause(t, 5_000);
            await c.reply("By the way");
          }
          await c.ask("Size?");
        });
        bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      });
      const ann = t.user("ann");
      await ann.say("/order");
      changed = true;
      await ann.post({ text: "small" });
      await t.advance("1s");
      const { flows } = t.client.chat(ann.address);
      expect(await flows.cancel("o1")).toBe(true);
      await t.advance("1m");
      expect((await flows.list()).rows).toMatchObject([{ id: "o1", state: "cancelled" }]);
      expect(t.announced).toEqual([]);
      expect(ann.screen).toEqual(["Size?", "? small"]);
    },
  );

  test("is not executed for an event that was offered to another run first", async () => {
    const { t, notes } = made((bot, notes) => {
      const flow = bot.flow("box", async (c, name: string) => {
        notes.push(name);
        if (notes.length > 2 && name === "a") await pause(t, 5_000);
        await c.waitFor({ done: name === "a" ? "event:none" : "event:shipped" });
        notes.push(`${name} shipped`);
      });
      for (const name of ["a", "b"])
        bot.command(name, (ctx) => ctx.start(flow, name, { id: name, sender: name }));
    });
    const ann = t.user("ann");
    for (const name of ["a", "b"]) await ann.say(`/${name}`);
    const chat = t.client.chat(ann.address);
    await chat.sendEvent({ type: "shipped", id: "1" });
    await t.advance("1s");
    expect(await chat.flows.cancel("b")).toBe(true);
    await t.idle();
    expect(notes).toEqual(["a", "b", "a"]);
  });
});

describe("an event that is given up", () => {
  const killer = (kind: "message" | "command" | "event") =>
    made((bot) => {
      const flow = bot.flow("order", { cancel: ["/stop"] }, async (c) => {
        const got = await c.waitFor({ word: /./, shipped: "event:shipped" });
        await c.reply(`got ${got.key}`);
      });
      bot.use(async (ctx, next) => {
        const hit = kind === "event" ? ctx.event.kind === "event" : ctx.text === "/die";
        if (hit || (kind === "message" && ctx.text === "die")) throw new RetryTurn();
        await next();
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
      bot.command("die", () => {});
    });

  test("ends the run that it would have continued", async () => {
    const { t } = killer("message");
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.post({ text: "die" });
    await t.advance("1h");
    expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({
      state: "failed",
      error: expect.stringContaining("given up"),
    });
  });

  test("ends none for a command, which no run takes for an answer", async () => {
    const { t } = killer("command");
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.post({ text: "/die" });
    await t.advance("1h");
    await ann.say("yes");
    expect(ann.screen).toEqual(["got word"]);
  });

  test("ends the run that waits for it by its type, and no other", async () => {
    const { t } = killer("event");
    const ann = t.user("ann");
    await ann.say("/order");
    const chat = t.client.chat(ann.address);
    for (const [type, state] of [
      ["ship", "active"],
      ["shipped", "failed"],
    ] as const) {
      await chat.sendEvent({ type, id: type });
      await t.advance("1h");
      expect(await chat.flows.get("o1")).toMatchObject({ state });
    }
  });

  test.each(["begins", "sleeps"])("ends none that only %s, and takes no message", async (what) => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        if (what === "sleeps") await c.sleep("3h");
        await pause(t, 60_000);
        await c.reply("here");
      });
      bot.use(async (ctx, next) => {
        if (ctx.text === "die") throw new RetryTurn();
        await next();
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
      bot.command("wait", () => pause(t, 600_000));
    });
    const ann = t.user("ann");
    // It begins behind what waits already.
    if (what === "begins") await ann.post({ text: "die" });
    else await ann.say("/order");
    if (what === "begins") {
      await t.client
        .chat(ann.address)
        .start<unknown>({ name: "order", version: 1 }, undefined, { id: "o1", sender: "ann" });
    } else await ann.post({ text: "die" });
    await t.advance("4h");
    expect(ann.screen).toEqual(["here"]);
  });
});
