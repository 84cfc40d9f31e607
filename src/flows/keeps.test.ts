/** What a run keeps: the same each time its function is executed. */
import { describe, expect, test } from "vitest";
import { made } from "./lab.ts";

describe("what a run keeps", () => {
  test("parallel steps and sends are done once, in whatever order they end", async () => {
    const { t, notes } = made((bot, notes) => {
      const all = bot.flow("all", async (c) => {
        const [a, , b] = await Promise.all([
          c.step("a", async () => {
            notes.push("a");
            return 1;
          }),
          c.reply("working"),
          c.step("b", () => {
            notes.push("b");
            return 2;
          }),
        ]);
        const word = await c.ask("Word?");
        await c.reply(`${a + b} ${word}`);
      });
      bot.command("all", (ctx) => ctx.start(all));
    });
    const ann = t.user("ann");
    await ann.say("/all");
    await t.restart();
    await ann.say("done");
    expect(ann.screen).toEqual(["working", "Word?", "3 done"]);
    expect(notes).toEqual(["a", "b"]);
  });

  test("state is written once, also inside a step; others may change it meanwhile", async () => {
    const { t } = made((bot) => {
      const count = bot.flow("count", async (c) => {
        c.state.set("begun", true);
        await c.step("count", () => {
          c.state.update<number>("n", (n) => (n ?? 0) + 1);
        });
        await c.ask("Go on?");
        await c.reply(`n is ${c.state.get<number>("n")}`);
        c.state.update<number>("n", (n) => (n ?? 0) + 10);
      });
      bot.command("count", (ctx) => ctx.start(count));
      bot.command("reset", (ctx) => ctx.state.set("begun", false));
    });
    const ann = t.user("ann");
    await ann.say("/count");
    await ann.say("/reset");
    await t.restart();
    await ann.say("yes");
    expect(ann.screen.at(-1)).toBe("n is 1");
    const { state } = t.client.chat(ann.address);
    expect([await state.get("begun"), await state.get("n")]).toEqual([false, 11]);
  });

  test("time, chance and ids are the same each time", async () => {
    const { t, notes } = made((bot, notes) => {
      const lot = bot.flow("lot", async (c) => {
        notes.push([c.now(), c.random(), c.uuid()]);
        await c.ask("?");
        notes.push([c.now(), c.random(), c.uuid()]);
      });
      bot.command("lot", (ctx) => ctx.start(lot));
    });
    const ann = t.user("ann");
    await ann.say("/lot");
    await t.advance("1h");
    await ann.say("!");
    expect(notes).toHaveLength(3);
    expect(notes[1]).toEqual(notes[0]);
    expect(notes[2]).not.toEqual(notes[0]);
    expect(String((notes[0] as unknown[])[2])).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]/,
    );
  });

  test("a flow may run another as a part of itself", async () => {
    const { t } = made((bot) => {
      const address = bot.flow("address", async (c, what: string) => {
        const street = await c.ask(`Street of ${what}?`);
        return { street };
      });
      const order = bot.flow("order", async (c) => {
        const { street } = await c.run(address, "home");
        await c.reply(`to ${street}`);
      });
      bot.command("order", (ctx) => ctx.start(order));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("Elm 3");
    expect(ann.screen).toEqual(["Street of home?", "to Elm 3"]);
  });

  test("a send that died since does not change what the run was told", async () => {
    const { t, notes } = made(
      (bot, notes) => {
        const order = bot.flow("order", async (c) => {
          const sent = await c.reply("hello");
          notes.push(sent.status);
          await c.ask("Size?");
          await c.reply("done");
        });
        bot.command("order", (ctx) => ctx.start(order));
      },
      { durability: { outbox: { inlineMaxMs: 500, retries: 2 } } },
    );
    const ann = t.user("ann");
    const platform = t.platform();
    platform.fault = (call) =>
      call.text === "hello" ? { type: "refuse", kind: "transient" } : undefined;
    await ann.say("/order");
    await t.advance("10m");
    await ann.say("small");
    expect(ann.screen).toEqual(["Size?", "done"]);
    expect(notes).toEqual(["deferred", "deferred"]);
    const { rows } = await t.client.chat(ann.address).outbox.list({ state: "dead" });
    expect(rows).toHaveLength(1);
  });

  test("what failed and was caught fails in the same way when the function runs again", async () => {
    let tries = 0;
    const { t, notes } = made(
      (bot, notes) => {
        const pay = bot.flow("pay", async (c) => {
          for (let round = 1; ; round += 1) {
            try {
              await c.step("charge", () => {
                tries += 1;
                if (tries < 3)
                  throw Object.assign(new Error(`declined ${tries}`), { code: "card" });
                return tries;
              });
              break;
            } catch (error) {
              notes.push((error as Error).message);
              const poll = { native: {}, media: [{ kind: "image" as const }], text: "x" };
              await c.reply(poll).catch(() => c.reply("No picture today."));
              await c.ask(`Try ${round + 1}?`);
            }
          }
          await c.reply("Paid.");
        });
        bot.command("pay", (ctx) => ctx.start(pay));
      },
      { durability: {} },
    );
    const ann = t.user("ann");
    await ann.say("/pay");
    await t.restart();
    await ann.say("yes");
    await t.restart();
    await ann.say("yes");
    expect(ann.screen.at(-1)).toBe("Paid.");
    expect(tries).toBe(3);
    expect(ann.screen.filter((text) => text.startsWith("Try"))).toEqual(["Try 2?", "Try 3?"]);
    expect(new Set(notes)).toEqual(new Set(["declined 1", "declined 2"]));
  });

  test("a batch of which a part is refused is the same batch when the function runs again", async () => {
    const { t, notes } = made((bot, notes) => {
      const all = bot.flow("all", async (c) => {
        const batch = await c.sendBatch(["one", { text: "two", template: { name: "t" } }, "three"]);
        notes.push(batch.status);
        await c.ask("Go on?");
        await c.reply("done");
      });
      bot.command("all", (ctx) => ctx.start(all));
    });
    const ann = t.user("ann");
    await ann.say("/all");
    await t.restart();
    await ann.say("yes");
    expect(ann.screen).toEqual(["one", "three", "Go on?", "done"]);
    expect(notes).toEqual(["partial_failed", "partial_failed"]);
  });
});
