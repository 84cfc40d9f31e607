/** What a run came to and how its turn ended agree, whoever else has a say in that turn. */
import { describe, expect, test } from "vitest";
import { RetryTurn } from "../index.ts";
import { testBot } from "../testing/index.ts";
import { botWith, made, pause } from "./lab.ts";

describe("middleware that throws after a run took the event", () => {
  test("fails the turn; the run keeps what it came to, with its state and all that it said", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        const size = await c.ask("Size?");
        c.state.set("size", size);
        await c.enqueue("noted", { when: "settled" });
        const name = await c.ask("Name?");
        c.state.set("name", name);
        await c.enqueue("bye", { when: "settled" });
        return `${size} for ${name}`;
      });
      bot.use(async (ctx, next) => {
        ctx.state.set("seen", ctx.text);
        await next();
        if (!ctx.text.startsWith("/")) throw new Error(`after ${ctx.text}`);
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    const { flows, state, inbox } = t.client.chat(ann.address);
    expect(await state.get("size")).toBe("small");
    await ann.say("Ann");
    expect(ann.screen.toSorted()).toEqual(["Name?", "Size?", "bye", "noted"]);
    expect(await flows.get("o1")).toMatchObject({ state: "done", result: "small for Ann" });
    expect([await state.get("name"), await state.get("seen")]).toEqual(["Ann", "/order"]);
    const { rows } = await inbox.list({ state: "failed" });
    expect(rows.map((row) => row.error)).toEqual([
      expect.stringContaining("after Ann"),
      expect.stringContaining("after small"),
    ]);
  });

  test("and hangs until the turn's time is over, does not fail it either", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => `so ${await c.ask("Size?")}`);
      bot.use(async (ctx, next) => {
        await next();
        if (ctx.text === "small") await new Promise(() => {});
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.post({ text: "small" });
    await t.advance("11m");
    expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({
      state: "done",
      result: "so small",
    });
  });

  test("and hangs: what the run said and was not sent yet is sent all the same", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await c.ask("Size?");
        await c.reply("one");
        await c.reply("two");
        await c.sleep("1d");
        await c.reply("done");
      });
      bot.use(async (ctx, next) => {
        await next();
        if (ctx.text === "small") await new Promise(() => {});
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    t.platform().failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 3_600_000 });
    await ann.post({ text: "small" });
    await t.advance("2d");
    expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({ state: "done" });
    expect(ann.screen).toEqual(["Size?", "one", "two", "done"]);
  });

  test("asks for the turn again: the run is where it was, and says nothing twice", async () => {
    let tries = 0;
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        const size = await c.ask("Size?");
        c.state.update<number>("n", (n) => (n ?? 0) + 1);
        await c.reply(`so ${size}`);
        await c.ask("Name?");
      });
      bot.use(async (ctx, next) => {
        await next();
        if (ctx.text === "small" && tries++ < 2) throw new RetryTurn({ after: "1s" });
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await ann.say("small");
    await t.advance("1m");
    expect(ann.screen).toEqual(["Size?", "so small", "Name?"]);
    expect(await t.client.chat(ann.address).state.get("n")).toBe(1);
  });
});

describe("a turn that runs again until it is given up", () => {
  test.each(["the flow", "the flow's beginning", "middleware", "a nack"])(
    "by %s: the run is failed and listed",
    async (what) => {
      const { t } = made((bot) => {
        const flow = bot.flow("order", async (c) => {
          if (what === "the flow's beginning") throw new RetryTurn();
          await c.ask("Size?");
          if (what === "the flow") throw new RetryTurn();
          await c.ask("Name?");
        });
        bot.use(async (ctx, next) => {
          await next();
          if (ctx.text !== "small") return;
          if (what === "middleware") throw new RetryTurn();
          if (what === "a nack") ctx.nack();
        });
        bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
        bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
      });
      const ann = t.user("ann");
      await ann.post({ text: "/order" });
      await t.advance("1s");
      await ann.post({ text: "small" });
      await t.advance("1h");
      await ann.say("hello");
      const { rows } = await t.client.chat(ann.address).flows.list({ state: "failed" });
      expect(rows).toMatchObject([{ id: "o1", error: expect.stringContaining("given up") }]);
      expect(ann.screen.at(-1)).toBe("? hello");
    },
  );
});

describe("what is done to a message that was sent", () => {
  test("is done once", async () => {
    const { t, notes } = made((bot, notes) => {
      const flow = bot.flow("order", async (c) => {
        const sent = await c.reply("working");
        await sent.edit("done");
        const other = await c.reply("gone");
        await other.delete();
        await c.ask("Size?");
        await sent.edit("closed");
        await c.ask("Name?");
        notes.push("end");
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const changes: string[] = [];
    const platform = t.platform();
    const { edit, remove } = platform;
    platform.edit = (...args) => {
      changes.push("edit");
      return edit.apply(platform, args);
    };
    platform.remove = (...args) => {
      changes.push("delete");
      return remove.apply(platform, args);
    };
    const ann = t.user("ann");
    await ann.say("/order");
    const seen = () => ann.screen.slice(0, 1);
    expect(seen()).toEqual(["done"]);
    await ann.say("small");
    expect(seen()).toEqual(["closed"]);
    await t.restart();
    await ann.say("Ann");
    expect(notes).toEqual(["end"]);
    expect(changes).toEqual(["edit", "delete", "edit"]);
  });
});

describe("a wait that is left behind", () => {
  test.each(["race", "un-awaited", "two at once", "two, one of them caught"])(
    "is refused, and says so: %s",
    async (what) => {
      const { t } = made((bot) => {
        const flow = bot.flow("order", async (c) => {
          if (what === "race") {
            await Promise.race([c.step("slow", () => pause(t, 2_000)), c.sleep("1s")]);
            await c.reply("first");
          } else if (what === "un-awaited") void c.ask("Size?");
          else {
            const two = [c.sleep("1h"), c.ask("Size?")];
            await Promise.all(what === "two at once" ? two : two.map((one) => one.catch(() => 0)));
          }
        });
        bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
      });
      const ann = t.user("ann");
      await ann.say("/order");
      await t.idle();
      expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({
        state: "failed",
        error: expect.stringMatching(/ConfigError.*waits for one thing at a time/),
      });
    },
  );

  test("for something that no run knows of is said to whoever reads the log", async () => {
    const said: string[] = [];
    const note = (text: string) => void said.push(text);
    const log = { debug: note, info: note, warn: note, error: note };
    const bot = botWith((bot) => {
      const flow = bot.flow("order", async (c) => {
        await Promise.race([c.ask("Size?"), pause(t, 2_000)]);
        await c.reply("late");
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const t = testBot(bot, { log });
    const ann = t.user("ann");
    await ann.say("/order");
    await t.advance("1m");
    expect(ann.screen).toEqual(["Size?"]);
    expect(said).toContain("a flow went on without the wait at which it is");
  });

  test("after a race that its step has won is refused at the next wait", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await Promise.race([c.ask("Size?"), c.step("slow", () => pause(t, 2_000))]);
        await c.ask("Name?");
      });
      bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    expect(await t.client.chat(ann.address).flows.get("o1")).toMatchObject({ state: "failed" });
  });
});
