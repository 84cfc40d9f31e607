import { afterEach, describe, expect, test } from "vitest";
import type { InboundEvent } from "../channels/events.ts";
import { MockPlatform } from "../testing/MockPlatform.ts";
import { mockProvider } from "../testing/MockProvider.ts";
import { type TestBot, testBot } from "../testing/TestBot.ts";
import { wallClock } from "../time/Clock.ts";
import { Bot } from "./Bot.ts";
import { AUDIO, DIRECT, FILE, GROUP, IMAGE, LOCATION, MENTION, TEXT, VIDEO } from "./matchers.ts";
import { Router } from "./Router.ts";

let t: TestBot | undefined;
afterEach(() => t?.close());

/** Sends events to a bot and returns what its handlers noted. */
async function run(
  setup: (bot: Bot, note: (what: string) => void) => void,
  ...events: (string | Partial<InboundEvent>)[]
): Promise<string[]> {
  const notes: string[] = [];
  const channel = mockProvider({ platform: new MockPlatform(wallClock, "blind") });
  const bot = new Bot({ id: "routes", channels: [channel] });
  setup(bot, (what) => notes.push(what));
  t?.close();
  t = testBot(bot);
  for (const event of events)
    await t.user("ann").send(typeof event === "string" ? { text: event } : event);
  for (const one of t.announced) if (one.kind === "error") throw one.event.error;
  return notes;
}

describe("handlers", () => {
  test("are tried in order of registration; the first that matches has the event for itself", async () => {
    const notes = await run(
      (bot, note) => {
        bot.when("b", () => note("b"));
        bot.when(/[ab]/, (ctx) => note(`pattern ${ctx.text}`));
        bot.when("a", () => note("too late"));
        bot.otherwise(() => note("nobody"));
      },
      "a",
      "b",
      "c",
    );
    expect(notes).toEqual(["pattern a", "b", "nobody"]);
  });

  test("pass on with next(), and go on after what follows is done", async () => {
    const notes = await run((bot, note) => {
      bot.use(async (_ctx, next) => {
        note("before");
        await next();
        note("after");
      });
      bot.when("a", (_ctx, next) => {
        note("first");
        return next();
      });
      bot.when("a", () => note("second"));
    }, "a");
    expect(notes).toEqual(["before", "first", "second", "after"]);
  });

  test("that do not call next() end the event there", async () => {
    const notes = await run(
      (bot, note) => {
        bot.use((ctx, next) => (ctx.text === "spam" ? undefined : next()));
        bot.otherwise((ctx) => note(ctx.text));
      },
      "spam",
      "ham",
    );
    expect(notes).toEqual(["ham"]);
  });

  test("registered with otherwise come last, wherever they stand", async () => {
    const notes = await run(
      (bot, note) => {
        bot.otherwise(() => note("otherwise"));
        bot.when("a", () => note("a"));
      },
      "a",
      "b",
    );
    expect(notes).toEqual(["a", "otherwise"]);
  });

  test("in a router run where the router is used, and what it does not take goes on", async () => {
    const notes = await run(
      (bot, note) => {
        const shop = new Router();
        shop.use((_ctx, next) => {
          note("shop");
          return next();
        });
        shop.command("buy", () => note("bought"));
        bot.when("early", () => note("early"));
        bot.use(shop);
        bot.otherwise(() => note("nobody"));
      },
      "early",
      "/buy",
      "hello",
    );
    expect(notes).toEqual(["early", "shop", "bought", "shop", "nobody"]);
  });
});

describe("a command", () => {
  const commands = (...texts: string[]) =>
    run(
      (bot, note) => {
        bot.command("start", (ctx) => note(`start [${ctx.match[1] ?? ""}]`));
        bot.otherwise((ctx) => note(ctx.text));
      },
      ...texts,
    );

  test("is taken with and without its bot's name, in any case, with what follows it", async () => {
    expect(await commands("/start", "/START now", "/start@my_bot a  b\nc")).toEqual([
      "start []",
      "start [now]",
      "start [a  b\nc]",
    ]);
  });

  test("is not taken from longer words or the middle of a text", async () => {
    const texts = ["/started", "please /start", "start", "/ start"];
    expect(await commands(...texts)).toEqual(texts);
  });

  test("is not taken from an edit", async () => {
    const notes = await run(
      (bot, note) => {
        bot.command("start", () => note("start"));
        bot.on("edited", (ctx) => note(`edited ${ctx.text}`));
        bot.otherwise(() => note("otherwise"));
      },
      { kind: "edited", text: "/start" },
    );
    expect(notes).toEqual(["edited /start"]);
  });
});

describe("a text matcher", () => {
  test("by string takes the whole text, trimmed", async () => {
    const notes = await run(
      (bot, note) => {
        bot.when("yes", () => note("yes"));
        bot.otherwise((ctx) => note(`no: ${ctx.text}`));
      },
      " yes ",
      "yes!",
      "Yes",
    );
    expect(notes).toEqual(["yes", "no: yes!", "no: Yes"]);
  });

  test("by regular expression fills ctx.match for its own handler, however often it runs", async () => {
    const notes = await run(
      (bot, note) => {
        bot.when(/order (\d+)/g, (ctx, next) => {
          note(`order ${ctx.match[1]}`);
          return next();
        });
        bot.when(/(?<word>\w+)$/, async (ctx, next) => {
          await next();
          note(`last ${ctx.match.groups?.word}`);
        });
        bot.otherwise((ctx) => note(`none ${ctx.match.length}`));
      },
      "order 12 now",
      "order 34 now",
    );
    expect(notes).toEqual(["order 12", "none 2", "last now", "order 34", "none 2", "last now"]);
  });

  test("by predicate sees the whole context", async () => {
    const notes = await run(
      (bot, note) => {
        bot.when(
          (ctx) => ctx.sender?.id === "ann" && ctx.text.length > 3,
          () => note("long"),
        );
        bot.otherwise(() => note("short"));
      },
      "hey",
      "hello",
    );
    expect(notes).toEqual(["short", "long"]);
  });
});

describe("matchers", () => {
  const media = (kind: "image" | "audio" | "video" | "file") => ({
    media: [{ kind, ref: { id: "1" } }],
  });

  test("take what they name", async () => {
    const notes = await run(
      (bot, note) => {
        const named = { IMAGE, AUDIO, VIDEO, FILE, LOCATION, MENTION };
        for (const [name, matcher] of Object.entries(named)) bot.when(matcher, () => note(name));
        bot.when(TEXT, () => note("TEXT"));
        bot.otherwise(() => note("none"));
      },
      media("image"),
      media("audio"),
      media("video"),
      media("file"),
      { location: { latitude: 1, longitude: 2 } },
      { text: "@bot hi", mentioned: true },
      "hi",
      {},
    );
    expect(notes).toEqual([
      "IMAGE",
      "AUDIO",
      "VIDEO",
      "FILE",
      "LOCATION",
      "MENTION",
      "TEXT",
      "none",
    ]);
  });

  test("tell chats of two from groups", async () => {
    const setup = (bot: Bot, note: (what: string) => void) => {
      bot.when(DIRECT, () => note("direct"));
      bot.when(GROUP, () => note("group"));
    };
    expect(await run(setup, "hi")).toEqual(["direct"]);
    const notes: string[] = [];
    const bot = new Bot({
      id: "r",
      channels: [mockProvider({ platform: new MockPlatform(wallClock, "blind") })],
    });
    setup(bot, (what) => notes.push(what));
    t?.close();
    t = testBot(bot);
    await t.user("ann", { chat: "team" }).say("hi");
    expect(notes).toEqual(["group"]);
  });
});

describe("events that are no messages", () => {
  test("are turns of their own kind, and otherwise does not take them", async () => {
    const kinds = ["edited", "deleted", "reaction", "membership", "telegram:poll"] as const;
    const notes = await run(
      (bot, note) => {
        for (const kind of kinds) bot.on(kind, (ctx) => note(`on ${ctx.event.kind}`));
        bot.on("event:paid", (ctx) => note(`paid ${JSON.stringify(ctx.event.data)}`));
        bot.when(TEXT, () => note("wrong"));
        bot.otherwise(() => note("wrong"));
      },
      ...kinds.map((kind) => ({ kind, text: "x" })),
      { kind: "event", type: "paid", data: 5 },
      { kind: "event", type: "other" },
    );
    expect(notes).toEqual([...kinds.map((kind) => `on ${kind}`), "paid 5"]);
  });

  test("pass middleware like any other", async () => {
    const notes = await run(
      (bot, note) => {
        bot.use((ctx, next) => {
          note(`use ${ctx.event.kind}`);
          return next();
        });
        bot.on("reaction", () => note("reaction"));
      },
      { kind: "reaction" },
    );
    expect(notes).toEqual(["use reaction", "reaction"]);
  });
});

test("a press goes to the action that it names, and otherwise to otherwise", async () => {
  const notes = await run(
    (bot, note) => {
      bot.action("buy", (_ctx, data: { sku: string }) => note(`buy ${data.sku}`));
      bot.when(TEXT, () => note("wrong"));
      bot.otherwise((ctx) => note(`otherwise ${JSON.stringify(ctx.press)}`));
    },
    { kind: "action", press: { value: 'buy|{"sku":"s1"}' } },
    { kind: "action", press: { value: "sell" } },
  );
  expect(notes).toEqual(["buy s1", 'otherwise {"action":"sell"}']);
});
