/** Other code under runs that wait: their path is kept, or they say where it was left. */
import { describe, expect, test } from "vitest";
import type { Bot } from "../index.ts";
import { type TestBot, testBot } from "../testing/index.ts";
import { botWith, deploy } from "./lab.ts";

describe("other code", () => {
  const first = botWith((bot) => {
    const order = bot.flow("order", async (c) => {
      await c.reply("Welcome");
      await c.ask("Size?");
      await c.reply("done");
    });
    bot.command("order", (ctx) => ctx.start(order, undefined, { id: "o1" }));
    bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
  });

  async function under(second: Bot): Promise<TestBot> {
    const t = testBot(first);
    await t.user("ann").say("/order");
    await deploy(t, second);
    await t.user("ann").say("small");
    return t;
  }

  test("changed texts are the same path: what was said stays said", async () => {
    const t = await under(
      botWith((bot) => {
        bot.flow("order", async (c) => {
          await c.reply("Hello and welcome");
          await c.ask("Which size?");
          await c.reply("done, thanks");
        });
      }),
    );
    expect(t.user("ann").screen).toEqual(["Welcome", "Size?", "done, thanks"]);
    t.close();
  });

  test("a changed path fails the run, says where, and lets the message go on", async () => {
    const t = await under(
      botWith((bot) => {
        bot.flow("order", async (c) => {
          await c.reply("Welcome");
          await c.reply("By the way");
          await c.ask("Size?");
          await c.reply("done");
        });
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      }),
    );
    expect(t.user("ann").screen).toEqual(["Welcome", "Size?", "? small"]);
    const { rows } = await t.client.chat(t.user("ann").address).flows.list({ state: "failed" });
    expect(rows[0]?.error).toMatch(/code of flow "order" has changed under run o1.*a send/);
    t.close();
  });

  test.each<[string, (bot: Bot) => void]>([
    [
      "a step before the question",
      (bot) =>
        void bot.flow("order", async (c) => {
          await c.reply("Welcome");
          await c.step("new", () => 1);
          await c.ask("Size?");
        }),
    ],
    ["a send less", (bot) => void bot.flow("order", async (c) => void (await c.ask("Size?")))],
    [
      "another kind of wait",
      (bot) =>
        void bot.flow("order", async (c) => {
          await c.reply("Welcome");
          await c.reply("Size?");
          await c.sleep("1h");
        }),
    ],
    [
      "an end before the question",
      (bot) => void bot.flow("order", async (c) => void (await c.reply("Welcome"))),
    ],
    [
      "an error that is caught",
      (bot) =>
        void bot.flow("order", async (c) => {
          await c.step("new", () => 1).catch(() => 0);
          await c.reply("Welcome").catch(() => 0);
          await c.ask("Size?").catch(() => 0);
          await c.reply("who knows").catch(() => 0);
        }),
    ],
    ["no such flow", () => {}],
    [
      "no such version",
      (bot) => void bot.flow("order", { version: 2 }, async (c) => void (await c.ask("Size?"))),
    ],
  ])("%s is found, and nothing new is said", async (_what, setup) => {
    const t = await under(
      botWith((bot) => {
        setup(bot);
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      }),
    );
    expect(t.user("ann").screen).toEqual(["Welcome", "Size?", "? small"]);
    const { rows } = await t.client.chat(t.user("ann").address).flows.list({ state: "failed" });
    expect(rows).toHaveLength(1);
    expect(t.announced.filter((one) => one.kind === "error")).toHaveLength(0);
    t.close();
  });

  test("with `restart` the run begins anew", async () => {
    const t = await under(
      botWith((bot) => {
        bot.flow("order", { onCodeChange: "restart" }, async (c) => {
          await c.ask("Which colour?");
          await c.ask("Size?");
          await c.reply("done");
        });
      }),
    );
    const ann = t.user("ann");
    await ann.say("red");
    await ann.say("small");
    expect(ann.screen).toEqual(["Welcome", "Size?", "Which colour?", "Size?", "done"]);
    t.close();
  });

  test.each(["turn.handler", "turn.settle"])(
    "with `restart`, a kill at %s changes nothing: the message that woke it is nobody else's",
    async (label) => {
      for (const side of ["before", "after"] as const) {
        const t = testBot(first);
        const ann = t.user("ann");
        await ann.say("/order");
        const second = botWith((bot) => {
          bot.flow("order", { onCodeChange: "restart" }, async (c) => {
            await c.ask("Which colour?");
          });
          bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
        });
        await deploy(t, second);
        t.crash[side](label);
        await ann.post({ text: "small" });
        await t.advance("5m");
        expect(ann.screen).toEqual(["Welcome", "Size?", "Which colour?"]);
        t.close();
      }
    },
  );

  test("an old version goes on with its own code, a new run takes the newest", async () => {
    const t = await under(
      botWith((bot) => {
        bot.flow("order", { version: 1 }, async (c) => {
          await c.reply("Welcome");
          await c.ask("Size?");
          await c.reply("done by the old");
        });
        const order = bot.flow("order", { version: 2 }, async (c) => {
          await c.ask("Colour?");
          await c.reply("done by the new");
        });
        bot.command("order", (ctx) => ctx.start(order));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("red");
    expect(ann.screen.slice(2)).toEqual(["done by the old", "Colour?", "done by the new"]);
    t.close();
  });
});
