/** Questions: what answers them, and what becomes of everything else. */
import { describe, expect, test } from "vitest";
import { Bot, IMAGE } from "../index.ts";
import { MockPlatform, mockProvider, testBot } from "../testing/index.ts";
import { made } from "./lab.ts";

describe("a question", () => {
  test("with choices is answered by a button, by its words, or by its number", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c) => {
        const size = await c.ask("Size?", { choices: ["small", "large"] });
        const count = await c.ask("How many?", {
          choices: [
            { text: "one", value: 1 },
            { text: "two", value: 2 },
          ],
        });
        await c.reply(`${count * 2} halves, ${size}`);
      });
      bot.command("order", (ctx) => ctx.start(order));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.press("large");
    await ann.say("TWO");
    expect(ann.screen.at(-1)).toBe("4 halves, large");
    await ann.say("/order");
    await ann.say("1");
    await ann.say("medium");
    expect(ann.screen.at(-1)).toBe("Please choose one of: one, two.");
    await ann.press("one");
    expect(ann.screen.at(-1)).toBe("2 halves, small");
  });

  test("without buttons at the platform its choices are numbered text", async () => {
    const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "blind");
    const channel = mockProvider({ platform, capabilities: { kinds: ["text"] } });
    const bot = new Bot({ id: "flows", channels: [channel] });
    const order = bot.flow("order", async (c) => {
      await c.reply(`so ${await c.ask("Size?", { choices: ["small", "large"] })}`);
    });
    bot.command("order", (ctx) => ctx.start(order));
    const t = testBot(bot);
    const ann = t.user("ann");
    await ann.say("/order");
    expect(ann.screen).toEqual(["Size?\n\n1. small\n2. large"]);
    await ann.say("2");
    expect(ann.screen.at(-1)).toBe("so large");
  });

  test("with a schema converts, says what is wrong, and gives up after its retries", async () => {
    const age = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) =>
          /^\d+$/.test(String(value))
            ? { value: Number(value) }
            : { issues: [{ message: "A number, please." }] },
      },
    };
    const { t, notes } = made((bot, notes) => {
      const ask = bot.flow("age", async (c) => {
        try {
          const years = await c.ask("Your age?", { schema: age, retries: 1 });
          await c.reply(`next year ${years + 1}`);
        } catch (error) {
          notes.push((error as { code: string }).code);
          await c.reply("Never mind.");
        }
      });
      bot.command("age", (ctx) => ctx.start(ask));
    });
    const ann = t.user("ann");
    await ann.say("/age");
    await ann.say("old");
    await ann.say("41");
    expect(ann.screen).toEqual(["Your age?", "A number, please.", "next year 42"]);
    await ann.say("/age");
    await ann.say("old");
    await ann.say("very old");
    expect(ann.screen.at(-1)).toBe("Never mind.");
    expect(notes).toContain("flow_answer");
  });

  test("takes only what it waits for: other messages, other people and commands go to their handlers", async () => {
    const { t } = made((bot) => {
      const photo = bot.flow("photo", async (c) => {
        const { media } = await c.ask("A photo?", { accept: IMAGE });
        await c.reply(`${media.length} photo`);
      });
      const name = bot.flow("name", async (c) => {
        await c.reply(`hi ${await c.ask("Name?")}`);
      });
      bot.command("photo", (ctx) => ctx.start(photo));
      bot.command("name", (ctx) => ctx.start(name));
      bot.command("help", (ctx) => ctx.reply("help"));
      bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
    });
    const ann = t.user("ann");
    const bob = t.user("bob", { chat: ann.chat.id });
    await ann.say("/photo");
    await ann.say("no");
    await bob.send({ media: [{ kind: "image", ref: { fileId: "f" } }] });
    await ann.say("/help");
    await ann.send({ media: [{ kind: "image", ref: { fileId: "f" } }] });
    expect(ann.screen).toEqual(["A photo?", "? no", "? ", "help", "1 photo"]);
    await ann.say("/name");
    await ann.say("/help");
    await ann.say("Ann");
    expect(ann.screen.slice(5)).toEqual(["Name?", "help", "hi Ann"]);
  });

  test("is cancelled by a word, or by a command where the flow says so", async () => {
    const { t } = made((bot) => {
      const a = bot.flow("a", { cancel: ["stop"], cancelled: "As you wish." }, (c) => c.ask("A?"));
      const b = bot.flow("b", { commands: "cancel" }, (c) => c.ask("B?"));
      bot.command("a", (ctx) => ctx.start(a));
      bot.command("b", (ctx) => ctx.start(b));
      bot.command("help", (ctx) => ctx.reply("help"));
      bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
    });
    const ann = t.user("ann");
    await ann.say("/a");
    await ann.say("STOP");
    await ann.say("hello");
    await ann.say("/b");
    await ann.say("/help");
    await ann.say("hello");
    expect(ann.screen).toEqual(["A?", "As you wish.", "? hello", "B?", "help", "? hello"]);
    const { rows } = await t.client.chat(ann.address).flows.list();
    expect(rows.map((row) => [row.flow, row.state])).toEqual([
      ["b", "cancelled"],
      ["a", "cancelled"],
    ]);
  });

  test("a choice of a question that is over is expired, and no handler's", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c) => {
        await c.ask("Size?", { choices: ["small", "large"] });
        await c.reply("done");
      });
      bot.command("order", (ctx) => ctx.start(order));
      bot.on("action:expired", (ctx) => ctx.reply("too late"));
      bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.press("small");
    await ann.press("large");
    expect(ann.screen).toEqual(["Size?", "done", "too late"]);
  });
});
