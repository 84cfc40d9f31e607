/** Flows that fail, hang or are hurried: the chat goes on, and somebody hears of it. */
import { describe, expect, test } from "vitest";
import { Bot, RetryTurn } from "../index.ts";
import { MockPlatform, mockProvider, testBot } from "../testing/index.ts";
import { botWith } from "./lab.ts";

describe("a flow that fails", () => {
  test("is listed with its error, and the chat goes on", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          await c.ask("Size?");
          throw new Error("no more pizza");
        });
        bot.command("order", (ctx) => ctx.start(order));
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    await ann.say("hello");
    expect(ann.screen).toEqual(["Size?", "? hello"]);
    const { rows } = await t.client.chat(ann.address).flows.list({ state: "failed" });
    expect(rows[0]?.error).toContain("no more pizza");
    expect(t.announced.filter((one) => one.kind === "error")).toHaveLength(1);
    t.close();
  });

  test("a RetryTurn runs the same answer again", async () => {
    let tries = 0;
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          const size = await c.ask("Size?");
          tries += 1;
          if (tries === 1) throw new RetryTurn({ after: "5s" });
          await c.reply(`so ${size}`);
        });
        bot.command("order", (ctx) => ctx.start(order));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    await t.advance("10s");
    expect(ann.screen).toEqual(["Size?", "so small"]);
    t.close();
  });

  test("an answer that kills the process each time ends the run, and the chat goes on", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          await c.ask("Size?");
          t.runtime.kill();
          await new Promise(() => {});
        });
        bot.command("order", (ctx) => ctx.start(order));
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    await t.advance("1h");
    await ann.say("hello");
    expect(ann.screen).toEqual(["Size?", "? hello"]);
    const { rows } = await t.client.chat(ann.address).flows.list({ state: "failed" });
    expect(rows[0]?.error).toContain("given up");
    t.close();
  });

  test("a result or an input that no row can hold is refused, and the chat goes on", async () => {
    const t = testBot(
      botWith((bot) => {
        const large = bot.flow("large", (_c, text: string) => text.repeat(4));
        bot.command("result", (ctx) => ctx.start(large, "x".repeat(600_000)));
        bot.command("input", async (ctx) => {
          const error = await ctx.start(large, "x".repeat(2_100_000)).catch((one: unknown) => one);
          await ctx.reply((error as { code: string }).code);
        });
      }),
    );
    const ann = t.user("ann");
    await ann.say("/result");
    await ann.say("/input");
    expect(ann.screen).toEqual(["payload_too_large"]);
    const { rows } = await t.client.chat(ann.address).flows.list();
    expect(rows).toMatchObject([{ state: "failed", error: expect.stringContaining("result") }]);
    t.close();
  });

  test("a function that hangs past the turn's time ends its run, and the chat goes on", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          await c.ask("Size?");
          await new Promise(() => {});
        });
        bot.command("order", (ctx) => ctx.start(order));
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    await t.advance("11m");
    await ann.say("hello");
    expect(ann.screen).toEqual(["Size?", "? hello"]);
    const { rows } = await t.client.chat(ann.address).flows.list({ state: "failed" });
    expect(rows[0]?.error).toContain("its turn ended first");
    t.close();
  });

  test.each(["memory", "wait"])(
    "a run whose %s is damaged ends, is announced, and the chat goes on",
    async (column) => {
      const t = testBot(
        botWith((bot) => {
          const order = bot.flow(
            "order",
            async (c) => void (await c.ask("Size?", { timeout: "30d" })),
          );
          bot.command("order", (ctx) => ctx.start(order, undefined, { id: "o1" }));
          bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
        }),
      );
      const ann = t.user("ann");
      await ann.say("/order");
      const [name = ""] = t.runtime.names("ChatActor");
      t.runtime.storage("ChatActor", name).run(`UPDATE flows SET ${column} = '{'`, []);
      await t.restart();
      await t.advance("9d");
      expect((await t.client.chat(ann.address).flows.get("o1"))?.state).toBe("active");
      await ann.say("small");
      await ann.say("hello");
      expect(ann.screen).toEqual(["Size?", "? small", "? hello"]);
      expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({
        state: "failed",
        error: expect.stringContaining("cannot be read"),
      });
      expect(t.announced).toMatchObject([{ kind: "error" }]);
      t.close();
    },
  );

  test("a run whose wait is damaged ends when its time is over, and the alarm rests", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow(
          "order",
          async (c) => void (await c.ask("Size?", { timeout: "1h" })),
        );
        bot.command("order", (ctx) => ctx.start(order, undefined, { id: "o1" }));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    const [name = ""] = t.runtime.names("ChatActor");
    t.runtime.storage("ChatActor", name).run(`UPDATE flows SET wait = '{'`, []);
    const before = t.runtime.alarmRuns;
    await t.advance("2h");
    expect((await t.client.chat(ann.address).flows.get("o1"))?.state).toBe("failed");
    expect(t.announced).toMatchObject([{ kind: "error" }]);
    expect(t.runtime.alarmRuns - before).toBeLessThan(10);
    t.close();
  });

  test("a step with a number of retries that is none is refused", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", (c) => c.step("once", () => 1, { retries: Number.NaN }));
        bot.command("order", (ctx) => ctx.start(order));
      }),
    );
    await t.user("ann").say("/order");
    expect(t.announced).toMatchObject([{ kind: "error", event: { error: { code: "config" } } }]);
    t.close();
  });

  test("a step is tried again as often as it says", async () => {
    let tries = 0;
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          const found = await c.step(
            "ask the shop",
            () => {
              tries += 1;
              if (tries < 3) throw new Error("busy");
              return tries;
            },
            { retries: 3, backoff: "1s" },
          );
          await c.reply(`after ${found} tries`);
        });
        bot.command("order", (ctx) => ctx.start(order));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    expect(ann.screen).toEqual(["after 3 tries"]);
    t.close();
  });
});

describe("busy chats", () => {
  test("with `interrupt`, two quick answers are two answers", async () => {
    const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "blind");
    const bot = new Bot({
      id: "flows",
      channels: [mockProvider({ platform })],
      concurrency: "interrupt",
    });
    const order = bot.flow("order", async (c) => {
      const a = await c.ask("A?");
      const b = await c.ask("B?");
      await c.reply(`${a}, ${b}`);
    });
    bot.command("order", (ctx) => ctx.start(order));
    const t = testBot(bot);
    const ann = t.user("ann");
    await ann.say("/order");
    t.platform().latency = () => 2_000;
    await ann.post({ text: "one" });
    await ann.post({ text: "two" });
    await t.idle();
    expect(ann.screen).toEqual(["A?", "B?", "one, two"]);
    t.close();
  });

  test("a replay of an answer by an operator is nobody's answer any more", async () => {
    const t = testBot(
      botWith((bot) => {
        const order = bot.flow("order", async (c) => {
          await c.ask("A?");
          await c.ask("B?");
        });
        bot.command("order", (ctx) => ctx.start(order));
      }),
    );
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("one");
    const chat = t.client.chat(ann.address);
    const { rows } = await chat.inbox.list({ state: "done" });
    const answer = rows.find((row) => row.kind === "message");
    expect(await chat.inbox.replay(answer?.id ?? "")).toBe(false);
    expect(ann.screen).toEqual(["A?", "B?"]);
    t.close();
  });
});
