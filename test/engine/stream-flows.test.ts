/** Streamed answers in flows: a run that goes on asks no model again. */
import { describe, expect, test } from "vitest";
import { ModelStream } from "../../src/testing/index.ts";
import { lab } from "./lab.ts";
import { prose } from "./streamLab.ts";

describe("a flow", () => {
  test("that streams an answer and asks on begins each source once", async () => {
    let begun = 0;
    const l = lab({
      setup: (bot) => {
        const talk = bot.flow("talk", async (c) => {
          for (const n of [1, 2]) {
            await c.stream(() => {
              begun += 1;
              return new ModelStream(`${n}: ${prose(600)}`);
            });
            await c.ask("And?");
          }
          return "done";
        });
        bot.command("talk", (ctx) => ctx.start(talk));
      },
    });
    await l.ann.say("/talk");
    await l.t.restart();
    await l.ann.say("go on");
    await l.t.restart();
    await l.ann.say("stop");
    expect(begun).toBe(2);
    expect(l.screen).toEqual([`1: ${prose(600)}`, "And?", `2: ${prose(600)}`, "And?"]);
    expect((await l.client.flows.list()).rows).toMatchObject([{ state: "done" }]);
  });

  test("whose source failed goes on as it did then", async () => {
    const fails = { afterTokens: 100, error: new Error("down") };
    const l = lab({
      setup: (bot) => {
        const talk = bot.flow("talk", async (c) => {
          try {
            await c.stream(() => new ModelStream(prose(2_000), { fails }));
          } catch (error) {
            const again = await c.ask(`${(error as Error).message}. Again?`);
            await c.reply(`you said ${again}`);
          }
        });
        bot.command("talk", (ctx) => ctx.start(talk));
      },
    });
    await l.ann.say("/talk");
    await l.ann.say("yes");
    expect(l.screen).toEqual([
      prose(2_000).slice(0, 400).trimEnd(),
      "down. Again?",
      "you said yes",
    ]);
    expect(l.told("error")).toEqual([]);
  });
});

describe("a function that begins a source", () => {
  test("may be late, and may fail", async () => {
    const l = lab({
      setup: (bot, of) =>
        bot.otherwise(async (ctx) => {
          const begin = async () => {
            await of().sleep(5_000);
            if (ctx.text === "fail") throw new Error("no model");
            return new ModelStream("an answer");
          };
          await ctx.stream(begin).catch((error: Error) => ctx.reply(error.message));
        }),
    });
    await l.ann.say("go");
    await l.ann.say("fail");
    expect(l.screen).toEqual(["an answer", "no model"]);
  });

  test("that gives nothing to read is told what to give", async () => {
    const l = lab({
      setup: (bot) => bot.otherwise((ctx) => ctx.stream(() => ({ text: "no" }) as never)),
    });
    await l.ann.say("go");
    expect(l.told("error")).toMatchObject([{ error: { code: "config" } }]);
  });
});

test("a response of bytes is read as text, across pieces that cut a character", async () => {
  const bytes = new TextEncoder().encode("Grüße, 世界 🌍");
  const l = lab({
    setup: (bot) =>
      bot.otherwise((ctx) =>
        ctx.stream(
          new ReadableStream<Uint8Array>({
            start(controller) {
              for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
              controller.close();
            },
          }),
        ),
      ),
  });
  await l.ann.say("go");
  expect(l.screen).toEqual(["Grüße, 世界 🌍"]);
});
