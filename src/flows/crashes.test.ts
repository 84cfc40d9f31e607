/** Flows under kills, deploys and other code: nothing is asked, done or said twice, and nothing stops for ever. */
import { describe, expect, test } from "vitest";
import { Bot, RetryTurn } from "../index.ts";
import { Chat } from "../objects/Chat.ts";
import {
  type CrashPoint,
  crashEverywhere,
  MockPlatform,
  mockProvider,
  type TestBot,
  testBot,
} from "../testing/index.ts";
import { seededRandom } from "../testing/random.ts";

function botWith(setup: (bot: Bot) => void): Bot {
  const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "keyed");
  const bot = new Bot({ id: "flows", channels: [mockProvider({ platform })] });
  setup(bot);
  return bot;
}

/** An order: three questions, a step, a payment from outside, a pause. Counts what it does to the world. */
function orderBot(world: { placed: string[]; hook?: string }): Bot {
  return botWith((bot) => {
    const order = bot.flow("order", async (c) => {
      const size = await c.ask("Size?", { choices: ["small", "large"] });
      const name = await c.ask("Name?", { timeout: "1h" });
      c.state.update<number>("orders", (n) => (n ?? 0) + 1);
      const id = await c.step("place", () => {
        const made = `${size} for ${name}`;
        world.placed.push(made);
        return made;
      });
      const paid = c.hook<number>("payment");
      world.hook = paid.token;
      await c.reply("Pay, please.");
      const { value } = await c.waitFor({ paid }, { timeout: "1d" });
      await Promise.all([c.reply(`${id}, ${value} paid`), c.step("ship", () => true)]);
      await c.sleep("2m");
      await c.reply("Enjoy!");
    });
    bot.command("order", (ctx) => ctx.start(order, undefined, { id: "o1" }));
    bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
  });
}

async function orders(
  t: TestBot,
  world: { hook?: string },
  between = async () => {},
): Promise<void> {
  const ann = t.user("ann");
  // A person answers what is asked.
  const asked = async (text: string) => {
    for (let tries = 0; ann.screen.at(-1) !== text && tries < 20; tries += 1) await t.advance("1m");
  };
  await ann.say("/order");
  await between();
  await asked("Size?");
  await ann.press("large");
  await between();
  await asked("Name?");
  await ann.say("Ann");
  await between();
  await asked("Pay, please.");
  // The third party repeats until it is told that it was taken.
  for (let tries = 0; ; tries += 1) {
    try {
      await t.client.resume(world.hook ?? "", 7);
      break;
    } catch (error) {
      if (tries === 5) throw error;
      await t.advance("1m");
    }
  }
  await t.idle();
  await between();
  await t.advance("10m");
  await t.idle();
}

const SAID = ["Size?", "Name?", "Pay, please.", "large for Ann, 7 paid", "Enjoy!"];

async function checked(
  t: TestBot,
  world: { placed: string[] },
  point?: CrashPoint,
  seeded = false,
): Promise<void> {
  const ann = t.user("ann");
  // Killed again and again a reply goes to the background, where a later one may pass it.
  if (point === undefined && seeded) expect([...ann.screen].sort()).toEqual([...SAID].sort());
  else expect(ann.screen).toEqual(SAID);
  // A process that dies between what a step does and its record does it again: nobody can know.
  const again = point?.label === "turn.step" && point.side === "before" && point.nth === 1 ? 2 : 1;
  expect(world.placed).toHaveLength(again);
  expect(await t.client.chat(ann.address).state.get("orders")).toBe(1);
  const { rows } = await t.client.chat(ann.address).flows.list();
  expect(rows.map((row) => row.state)).toEqual(["done"]);
}

describe("an order flow", () => {
  test("killed at every label: each question is asked once, the order placed once", async () => {
    let world: { placed: string[]; hook?: string } = { placed: [] };
    const { points } = await crashEverywhere(
      {
        bot: () => {
          world = { placed: [] };
          return orderBot(world);
        },
        run: (t) => orders(t, world),
      },
      (t, point) => checked(t, world, point),
    );
    const labels = new Set(points.map((point) => point.label));
    for (const label of ["flow.start", "flow.hook", "flow.timers", "turn.step", "turn.settle"])
      expect(labels).toContain(label);
  });

  test("killed at 200 seeded moments", async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const world: { placed: string[]; hook?: string } = { placed: [] };
      const t = testBot(orderBot(world), { seed });
      const random = seededRandom(seed);
      let steps = 0;
      t.runtime.onProbe = ({ kind, label, side }) => {
        // What a step did before its record is nobody's to know: not killed there.
        if (kind !== "ChatActor" || (label === "turn.step" && side === "before")) return false;
        steps += 1;
        return steps < 400 && random() < 0.04;
      };
      await orders(t, world);
      try {
        await checked(t, world, undefined, true);
      } catch (error) {
        if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
        throw error;
      } finally {
        t.close();
      }
    }
  });

  test("with a deploy of unrelated code after every message", async () => {
    const world: { placed: string[]; hook?: string } = { placed: [] };
    const t = testBot(orderBot(world));
    await orders(t, world, async () => {
      const bot = orderBot(world);
      bot.command("new", (ctx) => ctx.reply("new"));
      await deploy(t, bot);
    });
    await checked(t, world);
    t.close();
  });
});

/** Other code for the same chats. */
async function deploy(t: TestBot, bot: Bot): Promise<void> {
  const before = t.runtime.make;
  const seen = Object.create(bot, {
    channels: { value: [t.channel("mock")] },
    channel: { value: (connection: string) => t.channel(connection) },
  }) as Bot;
  // Methods of a class with private fields need their own object.
  const bound = new Proxy(seen, {
    get: (target, name) => {
      if (name === "channels" || name === "channel") return Reflect.get(target, name);
      const value = Reflect.get(bot, name) as unknown;
      return typeof value === "function" ? value.bind(bot) : value;
    },
  });
  t.runtime.make = (host, kind, name) =>
    kind === "ChatActor" ? new Chat(host, bound, name) : before(host, kind, name);
  await t.restart();
}

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
