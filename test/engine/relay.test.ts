/** Sends from one chat's turn to another chat of the same bot. */
import { describe, expect, test } from "vitest";
import type { SqlRow, SqlValue } from "../../src/host/Host.ts";
import { type Code, type Lab, lab } from "./lab.ts";

const SUPPORT = { channel: "mock", chat: "support" };

function forwarding(more: Partial<Code> = {}): Lab {
  return lab({
    setup: (bot, l) => {
      bot.otherwise(async (ctx) => {
        const sent = await ctx.chatAt(SUPPORT).send(`from ann: ${ctx.text}`);
        l().notes.push({ status: sent.status, key: sent.key });
        await ctx.reply("passed on");
      });
    },
    ...more,
  });
}

/** Replaces the answers to relays: `undefined` lets the other chat answer. */
function relays(l: Lab, answer: (text: string, chat: string) => Promise<string> | undefined): void {
  const { runtime } = l.t;
  const call = runtime.call.bind(runtime);
  runtime.call = (kind, name, method, payload) => {
    if (method !== "relay") return call(kind, name, method, payload);
    const { content } = JSON.parse(payload) as { content: { text: string } };
    return answer(content.text, name) ?? call(kind, name, method, payload);
  };
}

const silence = () => new Promise<string>(() => {});

const inSupport = (l: Lab) =>
  l.platform.ledger.filter((entry) => entry.chat === "support").map((entry) => entry.text);

describe("a relay", () => {
  test("is recorded here, delivered by the other chat, and resolves deferred", async () => {
    const l = forwarding({ durability: { outbox: { onDeferred: "throw" } } });
    await l.ann.say("help");
    await l.t.idle();
    expect(l.notes).toEqual([{ status: "deferred", key: expect.stringMatching(/:0$/) }]);
    expect(inSupport(l)).toEqual(["from ann: help"]);
    expect(l.screen).toEqual(["passed on"]);
    expect(l.sends().map((row) => [row.origin, row.state])).toEqual([
      ["relay", "sent"],
      ["bot", "sent"],
    ]);
    const { rows } = await l.t.client.chat(SUPPORT).outbox.list();
    expect(rows[0]?.key).toContain(encodeURIComponent(l.actor()).slice(0, 4));
  });

  for (const label of ["outbox.insert", "relay.call", "outbox.markSent", "turn.settle"]) {
    for (const side of ["before", "after"] as const) {
      for (const kind of ["blind", "keyed"] as const) {
        test(`killed ${side} ${label} on a ${kind} channel: the other chat hears it once`, async () => {
          const l = forwarding({ class: kind });
          l.t.crash[side](label);
          await l.ann.say("help").catch(() => undefined);
          await l.t.idle();
          await l.t.advance("1h");
          expect(inSupport(l)).toEqual(["from ann: help"]);
        });
      }
    }
  }

  for (const order of ["inline", "strict"] as const) {
    test(`a chat that does not answer holds up no reply here (order ${order})`, async () => {
      const l = lab({
        durability: { outbox: { order } },
        setup: (bot, l) =>
          bot.otherwise(async (ctx) => {
            if (ctx.text === "help") void ctx.chatAt(SUPPORT).send("help");
            const asked = l().now;
            const sent = await ctx.reply(ctx.text);
            l().notes.push([sent.status, l().now - asked]);
          }),
      });
      relays(l, silence);
      await l.receive([l.message("a", "help")]);
      for (const text of ["b", "c", "d"]) {
        await l.receive([l.message(text, text)]);
        await l.t.advance(20_000);
      }
      expect(l.notes).toEqual(Array(4).fill(["sent", 0]));
      expect(l.screen).toEqual(["help", "b", "c", "d"]);
    });
  }

  for (const order of ["inline", "strict"] as const) {
    test(`to one chat they go in order, also behind one that is tried again (order ${order})`, async () => {
      const l = lab({
        class: "keyed",
        durability: { outbox: { order } },
        setup: (bot) =>
          bot.otherwise(async (ctx) => {
            for (const n of [1, 2]) await ctx.chatAt(SUPPORT).send(`${ctx.text}${n}`);
          }),
      });
      let lost = 0;
      relays(l, () => {
        lost += 1;
        return lost > 6 ? undefined : Promise.reject(new Error("network connection lost"));
      });
      await l.receive([l.message("a", "a")]);
      await l.t.advance("20s");
      await l.receive([l.message("b", "b")]);
      await l.t.advance("10m");
      expect(inSupport(l)).toEqual(["a1", "a2", "b1", "b2"]);
    });
  }

  test("one that waits for another try is known to a fresh life: the next does not overtake it", async () => {
    const l = forwarding({ class: "keyed" });
    let lost = true;
    relays(l, () => (lost ? Promise.reject(new Error("network connection lost")) : undefined));
    await l.receive([l.message("a", "1")]);
    await l.t.advance("30s");
    l.t.runtime.kill();
    lost = false;
    await l.receive([l.message("b", "2")]);
    await l.t.advance("10m");
    expect(inSupport(l)).toEqual(["from ann: 1", "from ann: 2"]);
  });

  test("one call is under way at a time, also past the time that a turn waits for it", async () => {
    const l = forwarding({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const sent = await ctx.chatAt({ channel: "mock", chat: ctx.text }).send("hi");
          l().notes.push(sent.status);
          await ctx.reply("passed on");
        }),
    });
    let now = 0;
    const most: number[] = [];
    relays(l, () => {
      now += 1;
      most.push(now);
      l.t.runtime.clock.setTimer(30_000, () => {
        now -= 1;
      });
      return silence();
    });
    for (const chat of ["bob", "carl", "bob"]) {
      await l.receive([l.message(`${chat}${l.now}`, chat)]);
      await l.t.advance("16s");
    }
    await l.t.advance("2m");
    expect(Math.max(...most)).toBe(1);
    expect(most.length).toBeGreaterThan(2);
    expect(l.notes).toEqual(Array(3).fill("deferred"));
    expect(l.screen).toEqual(Array(3).fill("passed on"));
  });

  test("many that wait for a silent chat hide neither this chat's own sends nor those to others", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          if (ctx.text === "go") {
            for (let n = 0; n < 60; n += 1) void ctx.chatAt(SUPPORT).send(`${n}`);
            void ctx.chatAt({ channel: "mock", chat: "bob" }).send("hi");
          } else {
            await ctx.enqueue("own");
            await ctx.enqueue("later", { delay: "2m" });
          }
        }),
    });
    relays(l, (_text, name) => (name.endsWith("support") ? silence() : undefined));
    await l.receive([l.message("a", "go")]);
    await l.t.advance("20s");
    const asked = l.now;
    const alarms = l.t.runtime.alarmRuns;
    await l.receive([l.message("b", "x")]);
    await l.t.advance("15s");
    const said = l.platform.ledger.map(({ text, at }) => [text, at - asked]);
    expect(said).toEqual([
      ["own", 0],
      // The call to the silent chat ends after 30 s, and others pass.
      ["hi", 10_000],
    ]);
    const woken = l.t.runtime.alarmRuns - alarms;
    expect(woken, "no alarm for what only the other chat can end").toBeLessThan(5);
    await l.t.advance("3m");
    expect(l.platform.ledger.at(-1)).toMatchObject({ text: "later", at: asked + 120_000 });
  });

  test("many that wait for a silent chat do not tear a message of this chat apart", async () => {
    const pace = { burst: 2, perMs: 10_000 };
    const l = lab({
      capabilities: { pacing: { direct: pace, group: pace }, text: { limit: 10, unit: "utf16" } },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          for (const text of ["a", "b"]) await ctx.reply(text);
          await ctx.enqueue("the first\n\nthe other");
          for (let n = 0; n < 60; n += 1) void ctx.chatAt(SUPPORT).send(`${n}`);
        }),
    });
    relays(l, silence);
    const begun = l.now;
    await l.receive([l.message("a", "go")]);
    await l.t.advance("25s");
    expect(l.platform.ledger.map((entry) => entry.at - begun)).toEqual([0, 0, 20_000, 20_000]);
  });

  test("hundreds that waited for one chat go out without reading all of them for each", async () => {
    const l = lab({
      class: "keyed",
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          for (let n = 0; n < 200; n += 1) void ctx.chatAt(SUPPORT).send(String(n));
        }),
    });
    let calls = 0;
    relays(l, () => {
      calls += 1;
      return calls === 1 ? silence() : undefined;
    });
    await l.receive([l.message("a", "go")]);
    await l.t.advance("20s");
    const storage = l.t.runtime.storage("ChatActor", l.actor());
    const all = storage.all.bind(storage);
    let read = 0;
    storage.all = <R extends SqlRow>(query: string, params: readonly SqlValue[]) => {
      const rows = all<R>(query, params);
      read += rows.length;
      return rows;
    };
    await l.t.advance("1m");
    expect(inSupport(l)).toEqual(Array.from({ length: 200 }, (_unused, n) => String(n)));
    expect(read / 200).toBeLessThan(150);
  });

  test("a chat whose sends are hidden goes on as soon as those before it are out", async () => {
    const l = lab({
      class: "keyed",
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const to = (chat: string, count: number) => {
            for (let n = 0; n < count; n += 1)
              void ctx.chatAt({ channel: "mock", chat }).send(`${n}`);
          };
          to("support", 31);
          to("bob", 1);
          to("support", 10);
          to("bob", 5);
        }),
    });
    relays(l, (_text, name) => (name.endsWith("support") ? silence() : undefined));
    const begun = l.now;
    await l.receive([l.message("a", "go")]);
    await l.t.advance("32s");
    // The first call to the silent chat ends after 30 s.
    expect(l.platform.ledger.map((entry) => entry.at - begun)).toEqual(Array(6).fill(30_000));
  });

  test("this chat's own limit holds up no relay", async () => {
    const l = forwarding({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          void ctx.reply("own");
          await ctx.chatAt(SUPPORT).send("help");
        }),
    });
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 10_000 });
    await l.receive([l.message("a", "x")]);
    await l.t.advance("1s");
    expect(inSupport(l)).toEqual(["help"]);
    expect(l.screen).toEqual([]);
    await l.t.advance("1m");
    expect(l.screen).toEqual(["own"]);
  });

  test("relays to one chat keep their order", async () => {
    const l = lab({
      class: "keyed",
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          for (let n = 0; n < 40; n += 1) void ctx.chatAt(SUPPORT).send(String(n));
        }),
    });
    await l.ann.say("go");
    await l.t.advance("5m");
    expect(inSupport(l)).toEqual(Array.from({ length: 40 }, (_unused, n) => String(n)));
  });

  test("an answer that never comes is asked for again, under the same key", async () => {
    const l = forwarding();
    let lost = 0;
    l.t.runtime.onCall = (_kind, _name, method) => {
      if (method === "relay" && lost < 3) {
        lost += 1;
        throw new Error("network connection lost");
      }
    };
    await l.ann.say("help");
    await l.t.idle();
    await l.t.advance("5m");
    expect(lost).toBe(3);
    expect(inSupport(l)).toEqual(["from ann: help"]);
  });

  test("what the other chat cannot say is an error here", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.otherwise(async (ctx) => {
          const poll = { template: { name: "promo" } };
          await ctx
            .chatAt(SUPPORT)
            .send(poll)
            .catch((error: { kind: string }) => l().notes.push(error.kind));
        });
      },
      capabilities: { kinds: ["text"] },
    });
    await l.ann.say("x");
    await l.t.idle();
    expect(l.notes).toEqual(["unsupported_content"]);
  });

  test("an address of no connection of this bot is refused by name", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.otherwise((ctx) => {
          try {
            ctx.chatAt({ channel: "slack", chat: "C1" });
          } catch (error) {
            l().notes.push(String(error));
          }
        });
      },
    });
    await l.ann.say("x");
    await l.t.idle();
    expect(l.notes[0]).toContain('the bot has no connection "slack"');
  });

  test("another bot's chat takes nothing", async () => {
    const l = forwarding();
    const input = {
      key: "relay:x",
      from: "main/production/other-bot/mock/ann",
      content: { text: "spam", format: "plain" },
      identity: { connection: "mock", channel: "mock", chat: "ann" },
    };
    const answer = await l.t.runtime.call("ChatActor", l.actor(), "relay", JSON.stringify(input));
    expect(JSON.parse(answer)).toMatchObject({ error: { kind: "permission" } });
    expect(l.platform.ledger).toEqual([]);
  });

  test("to its own chat it is an ordinary send", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.otherwise(async (ctx) => {
          const sent = await ctx.chatAt(ctx.address).send("me");
          l().notes.push(sent.status);
        });
      },
    });
    await l.ann.say("x");
    await l.t.idle();
    expect(l.notes).toEqual(["sent"]);
  });

  test("a death in the other chat is announced there; after(send) is told once, by the other chat", async () => {
    const l = forwarding({
      setup: (bot, l) => {
        bot.after("send", (event) => {
          l().notes.push(`${event.address.chat}`);
        });
        bot.otherwise((ctx) => ctx.chatAt({ channel: "mock", chat: ctx.text }).send("hello"));
      },
    });
    await l.ann.say("bob");
    await l.t.idle();
    expect(l.notes).toEqual(["bob"]);
    l.platform.fault = () => ({ type: "refuse", kind: "recipient_unreachable" });
    await l.ann.say("carl");
    await l.t.idle();
    expect(l.told("durability:dead")).toMatchObject([{ chatId: "mock/mock/carl" }]);
  });
});
