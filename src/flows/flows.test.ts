/** Flows: a conversation as one function, which neither time nor a kill interrupts. */
import { describe, expect, test } from "vitest";
import { Bot, type BotOptions, FlowTimeoutError, type Hook, IMAGE, TEXT } from "../index.ts";
import { MockPlatform, mockProvider, type TestBot, testBot } from "../testing/index.ts";

type Setup = (bot: Bot, notes: unknown[]) => void;

/** A bot whose chats forget nothing when another code is deployed onto them. */
function made(setup: Setup, options: Partial<BotOptions> = {}): { t: TestBot; notes: unknown[] } {
  const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "blind");
  const bot = new Bot({ id: "flows", channels: [mockProvider({ platform })], ...options });
  const notes: unknown[] = [];
  setup(bot, notes);
  return { t: testBot(bot), notes };
}

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

describe("time", () => {
  test("an ask that nobody answers ends at its time, also after a restart", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c) => {
        try {
          await c.ask("Size?", { timeout: "10m" });
        } catch (error) {
          if (!(error instanceof FlowTimeoutError)) throw error;
          await c.reply("Another time.");
        }
      });
      bot.command("order", (ctx) => ctx.start(order));
    });
    const ann = t.user("ann");
    const begun = t.now;
    await ann.say("/order");
    await t.restart();
    await t.advance("9m");
    expect(ann.screen).toEqual(["Size?"]);
    await t.advance("2m");
    expect(ann.screen).toEqual(["Size?", "Another time."]);
    const said = t.platform().ledger.at(-1)?.at ?? 0;
    expect(said - begun - 600_000).toBeLessThan(1_000);
  });

  test("an answer and a timeout: the one that came first counts, and the other is nothing", async () => {
    for (const [answersAt, said] of [
      [599_000, "so small"],
      [600_500, "late"],
    ] as const) {
      const { t } = made((bot) => {
        const order = bot.flow("order", async (c) => {
          const size = await c.ask("Size?", { timeout: "10m" }).catch(() => undefined);
          await c.reply(size === undefined ? "late" : `so ${size}`);
        });
        bot.command("order", (ctx) => ctx.start(order));
      });
      const ann = t.user("ann");
      const begun = t.now;
      await ann.say("/order");
      await t.advance(begun + answersAt - t.now);
      await ann.say("small");
      await t.advance("1h");
      expect(ann.screen).toEqual(["Size?", said]);
    }
  });

  test("a run that sleeps for 30 days goes on, though records are kept for 7", async () => {
    const { t, notes } = made((bot, notes) => {
      const trial = bot.flow("trial", async (c) => {
        const plan = await c.step("plan", () => {
          notes.push("planned");
          return "pro";
        });
        await c.reply(`Trial of ${plan}.`);
        await c.sleep("30d");
        const more = await c.ask(`Keep ${plan}?`, { choices: ["yes", "no"] });
        await c.reply(`You said ${more}.`);
      });
      bot.command("trial", (ctx) => ctx.start(trial));
    });
    const ann = t.user("ann");
    await ann.say("/trial");
    for (let day = 0; day < 31; day += 1) await t.advance("1d");
    await t.restart();
    await ann.press("yes");
    expect(ann.screen).toEqual(["Trial of pro.", "Keep pro?", "You said yes."]);
    expect(notes).toEqual(["planned"]);
    // Once it is over, it is kept as long as any record, and then all of it goes.
    await t.advance("9d");
    expect(t.runtime.names("ChatActor").flatMap((name) => tables(t, name))).toEqual([]);
  });

  test("many runs that sleep cost one alarm", async () => {
    const { t } = made((bot) => {
      const nap = bot.flow("nap", async (c, minutes: number) => {
        await c.sleep(minutes * 60_000);
        await c.reply(`${minutes} minutes`);
      });
      bot.command("naps", async (ctx) => {
        for (let n = 1; n <= 30; n += 1)
          await ctx.start(nap, n, { id: `nap ${n}`, sender: `nobody ${n}` });
      });
    });
    const ann = t.user("ann");
    await ann.say("/naps");
    await t.advance("31m");
    expect(ann.screen).toEqual(Array.from({ length: 30 }, (_unused, n) => `${n + 1} minutes`));
  });
});

describe("outside", () => {
  const shop: Setup = (bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid = c.hook<{ sum: number }>("payment");
      notes.push(paid);
      await c.reply("Pay, please.");
      const got = await c.waitFor({ paid, word: TEXT }, { timeout: "1d" });
      await c.reply(got.key === "paid" ? `Thank you for ${got.value.sum}.` : got.value.text);
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  };

  test("a hook that is called five times continues its run once; a forged token does nothing", async () => {
    const { t, notes } = made(shop);
    const ann = t.user("ann");
    await ann.say("/pay");
    const { token, url } = notes[0] as Hook;
    expect(url).toBe(`https://bot.test/hooks/${token}`);
    const answers = [];
    for (let n = 0; n < 5; n += 1) answers.push(await t.client.resume(token, { sum: 7 }));
    await t.idle();
    expect(answers.map((one) => one.accepted)).toEqual([true, false, false, false, false]);
    expect(ann.screen).toEqual(["Pay, please.", "Thank you for 7."]);
    const forged = `${token.slice(0, -4)}AAAA`;
    await expect(t.client.resume(forged, { sum: 0 })).rejects.toMatchObject({
      code: "hook_invalid",
    });
    await expect(t.client.resume("x", {})).rejects.toMatchObject({ code: "hook_invalid" });
    // The same each time the function runs.
    expect(new Set(notes.map((one) => (one as Hook).token)).size).toBe(1);
  });

  test("a hook that is called before it is waited for is not lost; one of a run that is over is gone", async () => {
    const { t, notes } = made((bot, notes) => {
      const pay = bot.flow("pay", async (c) => {
        const paid = c.hook<number>("payment");
        notes.push(paid);
        const name = await c.ask("Name?");
        const { value } = await c.waitFor({ paid });
        await c.reply(`${name} paid ${value}`);
      });
      bot.command("pay", (ctx) => ctx.start(pay));
    });
    const ann = t.user("ann");
    await ann.say("/pay");
    const { token } = notes[0] as Hook;
    await t.client.resume(token, 5);
    await t.restart();
    await ann.say("Ann");
    expect(ann.screen.at(-1)).toBe("Ann paid 5");
    await ann.say("/pay");
    const second = notes.at(-1) as Hook;
    await ann.say("/cancel");
    await expect(t.client.resume(second.token, 5)).rejects.toMatchObject({ code: "hook_gone" });
  });

  test("an external event and an action are alternatives", async () => {
    const { t } = made((bot) => {
      const stop = bot.action("stop", (ctx, data: { why: string }) =>
        ctx.reply(`stop ${data.why}`),
      );
      const wait = bot.flow("wait", async (c) => {
        await c.reply({ text: "Waiting", buttons: [stop.button("Stop", { why: "bored" })] });
        const got = await c.waitFor({ stop, shipped: "event:shipped" });
        await c.reply(`${got.key} ${JSON.stringify(got.value)}`);
      });
      bot.command("wait", (ctx) => ctx.start(wait));
    });
    const ann = t.user("ann");
    await ann.say("/wait");
    await ann.press("Stop");
    expect(ann.screen.at(-1)).toBe('stop {"why":"bored"}');
    await ann.say("/wait");
    await t.client.chat(ann.address).sendEvent({ type: "shipped", id: "1", data: { box: 3 } });
    await t.idle();
    expect(ann.screen.at(-1)).toBe('shipped {"box":3}');
    await ann.press("Stop");
    expect(ann.screen.at(-1)).toBe("stop bored");
  });
});

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

  test("is shown to operators, step by step, and can be ended by them", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c, input: { shop: string }) => {
        await c.step("price", () => 7);
        await c.ask(`Size at ${input.shop}?`, { timeout: "1h" });
        await c.ask("Really?");
      });
      bot.command("order", (ctx) => ctx.start(order, { shop: "Luigi" }, { id: "o1" }));
    });
    const ann = t.user("ann");
    await ann.say("/order");
    await t.advance("1s");
    await ann.say("small");
    const { flows } = t.client.chat(ann.address);
    expect(await flows.get("o1")).toMatchObject({
      flow: "order",
      state: "active",
      waitsFor: "ask text",
      input: { shop: "Luigi" },
      history: [
        { kind: "step", name: "price", result: 7 },
        { kind: "send", result: "sent" },
        // It came, and what was said then.
        { kind: "send", result: "sent" },
        { kind: "ask", name: "text", result: "small" },
      ],
    });
    expect(await flows.cancel("o1")).toBe(true);
    expect(await flows.cancel("o1")).toBe(false);
    expect(await flows.list({ state: "cancelled" })).toMatchObject({ rows: [{ id: "o1" }] });
  });

  test("one run of a sender at a time: a second replaces the first, or is not started", async () => {
    const { t, notes } = made((bot, notes) => {
      const a = bot.flow("a", async (c) => void (await c.ask("A?")));
      const b = bot.flow("b", async (c) => void (await c.ask("B?")));
      bot.command("a", (ctx) => ctx.start(a));
      bot.command("b", (ctx) => ctx.start(b));
      bot.command("keep", async (ctx) => {
        notes.push((await ctx.start(a, undefined, { active: "keep" })).started);
      });
    });
    const ann = t.user("ann");
    await ann.say("/a");
    await ann.say("/b");
    await ann.say("/keep");
    expect(ann.screen).toEqual(["A?", "B?"]);
    expect(notes).toEqual([false]);
    const { rows } = await t.client.chat(ann.address).flows.list({ state: "active" });
    expect(rows.map((row) => row.flow)).toEqual(["b"]);
  });

  test("is started from outside, for everybody in the chat, once for each id", async () => {
    const { t } = made((bot) => {
      bot.flow("survey", async (c, topic: string) => {
        await c.reply(`noted: ${await c.ask(`How was ${topic}?`)}`);
      });
      bot.otherwise((ctx) => ctx.reply("?"));
    });
    const ann = t.user("ann");
    await ann.say("hello");
    const survey = { name: "survey", version: 1 };
    const chat = t.client.chat(ann.address);
    const start = () => chat.start<unknown>(survey, "lunch", { id: "s1" });
    expect([(await start()).started, (await start()).started]).toEqual([true, false]);
    await t.idle();
    await ann.say("good");
    expect(ann.screen).toEqual(["?", "How was lunch?", "noted: good"]);
    await expect(chat.start<unknown>({ name: "none", version: 1 }, 1)).rejects.toThrow(
      'the bot has no flow "none"',
    );
  });
});

/** Tables of a chat that have rows. */
function tables(t: TestBot, name: string): string[] {
  const storage = t.runtime.storage("ChatActor", name);
  return storage
    .all<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table'`, [])
    .map((row) => row.name)
    .filter((table) => storage.all(`SELECT 1 AS x FROM "${table}" LIMIT 1`, []).length > 0);
}
