/** Sends from one chat's turn to another chat of the same bot. */
import { describe, expect, test } from "vitest";
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
      const { runtime } = l.t;
      const call = runtime.call.bind(runtime);
      runtime.call = (kind, name, method, payload) =>
        method === "relay" ? new Promise(() => {}) : call(kind, name, method, payload);
      await l.receive([l.message("a", "help")]);
      for (const text of ["b", "c", "d"]) {
        await l.receive([l.message(text, text)]);
        await l.t.advance(20_000);
      }
      expect(l.notes).toEqual(Array(4).fill(["sent", 0]));
      expect(l.screen).toEqual(["help", "b", "c", "d"]);
    });
  }

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
