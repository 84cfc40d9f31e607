/** Answers that do not come to their end, and answers that are asked for again. */
import { describe, expect, test } from "vitest";
import type { Context } from "../../src/index.ts";
import { ModelStream } from "../../src/testing/index.ts";
import { lab, only } from "./lab.ts";
import { prose, streaming, words } from "./streamLab.ts";

const busy = { concurrency: "interrupt" } as const;
const model = { tokensPerSecond: 25 };

describe("an interrupted answer", () => {
  const talk = async (l: ReturnType<typeof streaming>) => {
    await l.ann.post({ text: "first" });
    await l.t.advance("5s");
    const seen = only(l.screen);
    await l.ann.say("second");
    return seen;
  };
  const text = (asked: string) => (asked === "first" ? prose(4_000) : "second answer");

  test("is what was said of it, and its source is told to stop", async () => {
    const models: ModelStream[] = [];
    const l = lab({
      busy,
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const one = new ModelStream(text(ctx.text), model);
          models.push(one);
          await ctx.stream(one);
        }),
    });
    await l.ann.post({ text: "first" });
    await l.t.advance("5s");
    await l.ann.say("second");
    await l.t.advance("1m");
    expect(models.map(({ state }) => state)).toEqual(["cancelled", "done"]);
    const [first, second] = l.screen;
    expect(first?.length).toBeGreaterThan(100);
    expect(words(prose(4_000)).startsWith(words(first ?? "?"))).toBe(true);
    expect(second).toBe("second answer");
    expect(l.platform.ledger).toHaveLength(2);
    expect(new Set(l.states)).toEqual(new Set(["sent"]));
  });

  test("can be taken away", async () => {
    const l = streaming(text, { busy, model, options: { onInterrupt: "remove" } });
    await talk(l);
    expect(l.screen).toEqual(["second answer"]);
  });

  test("can be made another message", async () => {
    const onInterrupt = (said: string) => `${said} […]`;
    const l = streaming(text, { busy, model, options: { onInterrupt } });
    await talk(l);
    expect(l.screen[0]).toMatch(/^word1 .* \[…\]$/s);
    expect(l.screen[1]).toBe("second answer");
    expect(l.platform.ledger).toHaveLength(2);
  });

  test("can be made nothing", async () => {
    const l = streaming(text, { busy, model, options: { onInterrupt: () => " " } });
    await talk(l);
    expect(l.screen).toEqual(["second answer"]);
  });

  test("keeps what an earlier run has shown, where this run said nothing yet", async () => {
    let runs = 0;
    const l = lab({
      busy,
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          if (ctx.text === "second") return;
          runs += 1;
          const firstTokenMs = runs === 1 ? 300 : 600_000;
          await ctx.stream(new ModelStream(prose(4_000), { ...model, firstTokenMs }));
        }),
    });
    await l.ann.post({ text: "first" });
    await l.t.advance("5s");
    const seen = only(l.screen);
    l.t.runtime.kill();
    await l.t.advance("3m");
    await l.ann.say("second");
    await l.t.advance("1m");
    expect(runs).toBe(2);
    expect(l.screen).toEqual([seen]);
  });

  test("that is to be tried again is not made anything, and its function is not asked", async () => {
    const asked: string[] = [];
    let runs = 0;
    const l = lab({
      durability: { inbox: { retryHandlers: true } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          runs += 1;
          const fails = { afterTokens: 100, error: new Error("down") };
          await ctx.stream(new ModelStream(prose(900), runs === 1 ? { fails } : {}), {
            onInterrupt: (said) => {
              asked.push(said);
              return "never";
            },
          });
        }),
    });
    await l.ann.say("go");
    await l.t.advance("1m");
    expect(runs).toBe(2);
    expect(asked).toEqual([]);
    expect(l.screen).toEqual([prose(900)]);
  });

  test("before its first look leaves nothing where nothing was said", async () => {
    const l = streaming(text, { busy, model: { firstTokenMs: 60_000 } });
    await l.ann.post({ text: "first" });
    await l.t.advance("5s");
    await l.ann.say("second");
    await l.t.advance("5m");
    expect(l.screen).toEqual(["second answer"]);
  });
});

describe("an answer that its turn does not wait for", () => {
  test("whose time is over is what was said of it", async () => {
    const l = streaming(prose(9_000), { durability: { inbox: { turnTimeoutMs: 20_000 } }, model });
    await l.ann.say("go");
    await l.t.advance("1m");
    const said = only(l.screen);
    expect(said.length).toBeGreaterThan(1_500);
    expect(words(prose(9_000)).startsWith(words(said))).toBe(true);
    expect(l.model().state).toBe("cancelled");
  });

  test("that was whole, but for a last look that took too long, is recorded once", async () => {
    const l = streaming(prose(1_500), {
      durability: { inbox: { turnTimeoutMs: 20_000 }, outbox: { sendTimeoutMs: 25_000 } },
    });
    l.platform.latency = () => (l.platform.ledger.length === 0 ? 0 : 24_000);
    await l.ann.say("go");
    await l.t.advance("5m");
    expect(l.sends().filter(({ slot }) => slot === "0")).toHaveLength(1);
    expect(l.screen).toEqual([prose(1_500)]);
  });

  test("is not undone by an edit that was on its way as its time ran out", async () => {
    const l = streaming(prose(9_000), {
      durability: { inbox: { turnTimeoutMs: 20_000 }, outbox: { sendTimeoutMs: 5_000 } },
      model,
    });
    let late = "";
    l.platform.fault = ({ changes, text }) => {
      if (changes !== undefined && late === "" && text.length > 1_800) late = text;
      return undefined;
    };
    // The first such edit is done long after nobody waits for it any more.
    l.platform.latency = () => (late !== "" && l.platform.calls.at(-1)?.text === late ? 8_000 : 0);
    await l.ann.say("go");
    await l.t.advance("1m");
    const said = only(l.screen);
    expect(l.platform.revisions.some(({ text }) => text === late)).toBe(true);
    expect(said.length).toBeGreaterThan(late.length);
    expect(JSON.parse(l.sends().find(({ slot }) => slot === "0")?.request ?? "{}").text).toBe(said);
  });

  test("that is whole as its time runs out is said, where it was seen to grow", async () => {
    const l = streaming(prose(1_500), { durability: { inbox: { turnTimeoutMs: 9_000 } } });
    l.platform.fault = ({ text }) =>
      text.length > 1_000 && l.now - (l.platform.ledger[0]?.at ?? l.now) < 15_000
        ? { type: "refuse", kind: "rate_limit", retryAfterMs: 10_000 }
        : undefined;
    await l.ann.say("go");
    await l.t.advance("5m");
    expect(l.screen).toEqual([prose(1_500)]);
    expect(new Set(l.states)).toEqual(new Set(["sent"]));
  });

  test("is waited for, though its handler does not", async () => {
    const l = lab({
      setup: (bot) => bot.otherwise((ctx) => void ctx.stream(new ModelStream(prose(900)))),
    });
    await l.ann.say("go");
    expect(l.screen).toEqual([prose(900)]);
  });
});

describe("a source that fails", () => {
  const fails = { afterTokens: 300, error: new Error("the model is down") };

  test("leaves what was said, and its error to the handler", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx: Context) => {
          try {
            await ctx.stream(new ModelStream(prose(2_000), { fails }));
          } catch (error) {
            await ctx.reply(`Sorry: ${(error as Error).message}`);
          }
        }),
    });
    await l.ann.say("go");
    expect(l.screen).toEqual([prose(2_000).slice(0, 1_200).trimEnd(), "Sorry: the model is down"]);
    expect(l.told("error")).toEqual([]);
  });

  test("leaves nothing where it shall be removed", async () => {
    const l = streaming(prose(2_000), { model: { fails }, options: { onInterrupt: "remove" } });
    await l.ann.say("go");
    await l.t.idle();
    expect(l.screen).toEqual([]);
    expect(l.told("error")).toMatchObject([{ error: { message: "the model is down" } }]);
  });

  test("whose turn is tried again goes on in the same message", async () => {
    let tries = 0;
    const l = lab({
      durability: { inbox: { retryHandlers: true } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          tries += 1;
          const how = tries === 1 ? { fails } : {};
          await ctx.stream(new ModelStream(prose(2_000), how));
        }),
    });
    await l.ann.say("go");
    await l.t.advance("1m");
    expect(tries).toBe(2);
    expect(l.screen).toEqual([prose(2_000)]);
    expect(l.platform.ledger).toHaveLength(1);
  });
});

describe("an answer on record", () => {
  test("answers a second run, and the model is not asked again", async () => {
    let asked = 0;
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const source = new ModelStream(prose(2_000));
          await ctx.stream(source);
          if (source.state !== "unread") asked += 1;
          await ctx.reply("anything else?");
        }),
    });
    l.t.crash.before("turn.settle");
    await l.ann.say("go");
    await l.t.idle();
    expect(asked).toBe(1);
    expect(l.screen).toEqual([prose(2_000), "anything else?"]);
    expect(l.platform.ledger).toHaveLength(2);
  });

  test("answers a second call with its key, and that source is told so", async () => {
    const second = { cancelled: false };
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.stream(new ModelStream("one"), { idempotencyKey: "answer" });
          const source = new ReadableStream<string>({
            cancel: () => {
              second.cancelled = true;
            },
          });
          await ctx.stream(source, { idempotencyKey: "answer" });
        }),
    });
    await l.ann.say("go");
    expect(l.screen).toEqual(["one"]);
    expect(second.cancelled).toBe(true);
  });
});

describe("hooks", () => {
  test("see each look before the chat does, and the whole as the send it is", async () => {
    const seen: { preview: boolean; text: string }[] = [];
    const l = streaming(prose(1_000), {
      setup: (bot) => {
        bot.before("send", (send) => {
          const text = String((send.content as { text?: string }).text);
          seen.push({ preview: send.preview, text });
          send.content = text.toUpperCase();
        });
        bot.otherwise((ctx) => ctx.stream(new ModelStream(prose(1_000), model)));
      },
    });
    await l.ann.say("go");
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.filter(({ preview }) => !preview)).toEqual([
      { preview: false, text: prose(1_000) },
    ]);
    expect(l.platform.calls.every(({ text }) => text === text.toUpperCase())).toBe(true);
    expect(l.screen).toEqual([prose(1_000).toUpperCase()]);
  });

  test("that refuse the whole leave nothing of it", async () => {
    const l = streaming("", {
      setup: (bot) => {
        bot.before("send", (send) => {
          if (!send.preview) send.cancel("no");
        });
        bot.otherwise((ctx) => ctx.stream(new ModelStream(prose(1_000), model)));
      },
    });
    await l.ann.say("go");
    await l.t.idle();
    expect(l.platform.ledger).toMatchObject([{ deleted: true }]);
    expect(l.screen).toEqual([]);
  });
});
