/** Buttons: data of any length, untrusted, and gone with its message. */
import { describe, expect, test } from "vitest";
import type { Bot, StandardSchema } from "../../src/index.ts";
import { echoing, type Lab, lab } from "./lab.ts";

const LONG = "x".repeat(300);

/** "menu" shows three buttons; a press says what arrived. */
function menu(bot: Bot): void {
  const buy = bot.action("buy", (ctx, data: { sku: string }) =>
    ctx.reply(`bought ${data.sku.length} ${data.sku.slice(0, 5)}`),
  );
  const help = bot.action("help me: now|~", (ctx) => ctx.reply("helping"));
  bot.when("menu", (ctx) =>
    ctx.reply({
      text: "menu",
      buttons: [
        [buy.button("short", { sku: "s1" }), buy.button("long", { sku: LONG })],
        [help.button("help")],
      ],
    }),
  );
  bot.on("action:expired", (ctx) => ctx.reply("that button is too old"));
}

describe("a button", () => {
  test("brings its data back, within the platform's 64 bytes and beyond", async () => {
    const l = lab({ setup: menu });
    await l.ann.say("menu");
    for (const text of ["short", "long", "help"]) await l.ann.press(text);
    expect(l.screen).toEqual(["menu", "bought 2 s1", "bought 300 xxxxx", "helping"]);
    const values = l.platform.ledger.flatMap((entry) =>
      entry.buttons.map((button) => button.value),
    );
    expect(values).toHaveLength(3);
    for (const value of values)
      expect(new TextEncoder().encode(value).length).toBeLessThanOrEqual(64);
  });

  test("with long data still works after a restart, and in a copy from another turn", async () => {
    const l = lab({ setup: menu });
    await l.ann.say("menu");
    await l.ann.say("menu");
    await l.t.restart();
    await l.ann.press("long");
    expect(l.ann.last).toBe("bought 300 xxxxx");
  });

  test("whose message was purged says that it is too old", async () => {
    const l = lab({ setup: menu });
    await l.ann.say("menu");
    await l.t.advance("9d");
    await l.ann.press("long");
    expect(l.ann.last).toBe("that button is too old");
    // Short data travels with the button itself.
    await l.ann.press("short");
    expect(l.ann.last).toBe("bought 2 s1");
  });

  test("made up by somebody is too old, or nobody's: it never runs an action it does not name", async () => {
    const l = lab({
      setup: (bot) => {
        menu(bot);
        bot.otherwise((ctx) => ctx.reply(`unknown ${JSON.stringify(ctx.press)}`));
      },
    });
    await l.ann.say("menu");
    for (const value of ["~0000000000000000", "%zz", "buy|{", ""]) {
      await l.ann.send({ kind: "action", press: { value, pressId: "p" } });
    }
    await l.ann.send({ kind: "action", press: { value: "other|1", pressId: "p" } });
    expect(l.screen.slice(1)).toEqual([
      "that button is too old",
      "that button is too old",
      "that button is too old",
      'unknown {"action":""}',
      'unknown {"action":"other","data":1}',
    ]);
  });

  test("whose data does not fit its schema runs nothing", async () => {
    const number: StandardSchema<number> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) =>
          typeof value === "number" ? { value } : { issues: [{ message: "no number" }] },
      },
    };
    const l = lab({
      setup: (bot) => {
        bot.action("count", { schema: number }, (ctx, n) => ctx.reply(`counted ${n}`));
        bot.otherwise((ctx) => ctx.reply("nobody"));
      },
    });
    await l.ann.send({ kind: "action", press: { value: "count|4" } });
    await l.ann.send({ kind: "action", press: { value: 'count|"rm -rf"' } });
    await l.ann.send({ kind: "action", press: { value: "count" } });
    expect(l.screen).toEqual(["counted 4"]);
    expect(l.told("error")).toEqual([]);
  });

  test("with long data in a scheduled message still works when the process was restarted before it went out", async () => {
    const l = lab({ setup: menu });
    const long = {
      text: "offer",
      buttons: [{ text: "take it", action: "buy", data: { sku: LONG } }],
    };
    await l.client.enqueue(long, { delay: "1h", idempotencyKey: "offer" });
    l.t.runtime.kill();
    await l.t.advance("2h");
    await l.ann.press("take it");
    expect(l.ann.last).toBe("bought 300 xxxxx");
  });

  test("with long data in a turn's scheduled message works after a restart", async () => {
    const l = lab({
      setup: (bot) => {
        menu(bot);
        bot.otherwise((ctx) =>
          ctx.enqueue(
            { text: "offer", buttons: [{ text: "take it", action: "buy", data: { sku: LONG } }] },
            { delay: "1h" },
          ),
        );
      },
    });
    await l.ann.say("hi");
    l.t.runtime.kill();
    await l.t.advance("2h");
    await l.ann.press("take it");
    expect(l.ann.last).toBe("bought 300 xxxxx");
  });

  test("of an action whose name begins with a tilde works like any other", async () => {
    const l = lab({
      setup: (bot) => {
        const odd = bot.action("~odd", (ctx) => ctx.reply("pressed"));
        bot.otherwise((ctx) => ctx.reply({ text: "menu", buttons: [odd.button("press")] }));
      },
    });
    await l.ann.say("hi");
    await l.ann.press("press");
    expect(l.ann.last).toBe("pressed");
  });
});

describe("a press", () => {
  const answering = (ms: number, answer?: string): Lab & { answers: unknown[] } => {
    const answers: unknown[] = [];
    const l = Object.assign(
      lab({
        setup: (bot, l) => {
          bot.action("go", async (ctx) => {
            await l().sleep(ms);
            if (answer !== undefined) await ctx.answer(answer);
          });
        },
      }),
      { answers },
    );
    l.t.channel("mock").outbound.answerPress = async (id, text) => {
      answers.push([id, text, l.now - start]);
    };
    const start = l.now;
    return l;
  };
  const press = { kind: "action", press: { value: "go", pressId: "p1" } } as const;

  test("is answered when its turn ends, so that the button stops spinning", async () => {
    const l = answering(2_000);
    await l.ann.send(press);
    expect(l.answers).toEqual([["p1", undefined, 2_000]]);
  });

  test("is answered after ten seconds at the latest, and once", async () => {
    const l = answering(60_000, "done");
    await l.ann.send(press);
    expect(l.answers).toEqual([["p1", undefined, 10_000]]);
  });

  test("is answered with the handler's own words", async () => {
    const l = answering(1_000, "done");
    await l.ann.send(press);
    expect(l.answers).toEqual([["p1", "done", 1_000]]);
  });

  test("is answered although its handler throws", async () => {
    const l = lab({
      setup: (bot) => void bot.action("go", () => Promise.reject(new Error("boom"))),
    });
    const answers: string[] = [];
    l.t.channel("mock").outbound.answerPress = async (id) => {
      answers.push(id);
    };
    await l.ann.send(press);
    expect(answers).toEqual(["p1"]);
  });

  test("that the platform does not let us answer disturbs nothing", async () => {
    const l = answering(0);
    l.t.channel("mock").outbound.answerPress = () => Promise.reject(new Error("too late"));
    await l.ann.send(press);
    expect(await l.client.inbox.get("e1")).toMatchObject({ state: "done" });
    expect(l.told("error")).toEqual([]);
  });
});

test("an edited message cannot carry button data that only a record could keep", async () => {
  const l = lab({
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        const said = await ctx.reply("menu");
        await said.edit({ text: "menu 2", buttons: [{ text: "b", action: "buy", data: 1 }] });
        const failed = await said
          .edit({ text: "menu 3", buttons: [{ text: "b", action: "buy", data: LONG }] })
          .catch((error: unknown) => error);
        l().notes.push(failed);
        await said.delete();
      }),
  });
  await l.ann.say("hi");
  expect(l.notes).toMatchObject([{ code: "unsupported_content" }]);
  expect(l.platform.ledger).toMatchObject([{ text: "menu 2", deleted: true }]);
  expect(l.screen).toEqual([]);
});

test("a bot without buttons keeps no table for them", async () => {
  const l = lab({ setup: echoing });
  await l.ann.say("hi");
  expect(l.sql("SELECT 1 FROM sqlite_master WHERE name = 'buttons'")).toEqual([]);
});
