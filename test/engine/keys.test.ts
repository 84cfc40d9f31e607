/** Explicit keys: said once per chat, replaced, cancelled. */
import { describe, expect, test } from "vitest";
import { echoing, type Lab, lab, only } from "./lab.ts";

/** Says "v1", "v2" … under one key, in one turn each. */
function keyed(durability: Parameters<typeof lab>[0]["durability"] = {}): Lab {
  let version = 0;
  return lab({
    durability,
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        version += 1;
        const said = await ctx
          .reply(`v${version}`, { idempotencyKey: "order:1" })
          .catch((error: unknown) => error);
        l().notes.push(said);
      }),
  });
}

describe("a key that is used again", () => {
  test("after it was sent is answered with the first receipt, and nothing is said", async () => {
    const l = keyed();
    await l.ann.say("a");
    await l.ann.say("b");
    expect(l.screen).toEqual(["v1"]);
    expect(l.notes).toMatchObject([
      { key: "order%3A1", status: "sent", receipt: { primaryId: "m1" } },
      { key: "order%3A1", status: "sent", receipt: { primaryId: "m1" } },
    ]);
    expect((await l.metrics()).outboxDeduped).toBe(1);
  });

  test("while it is open joins that delivery", async () => {
    const l = keyed();
    l.platform.failNext({ type: "refuse", kind: "transient", retryAfterMs: 5_000 });
    const outside = l.client.send("outside", { idempotencyKey: "order:1" });
    await l.ann.say("a");
    expect(await outside).toMatchObject({ status: "sent", receipt: { primaryId: "m1" } });
    expect(l.notes).toMatchObject([{ status: "sent", receipt: { primaryId: "m1" } }]);
    expect(l.screen).toEqual(["outside"]);
  });

  test("after it died throws the same error, and only an operator opens it again", async () => {
    const l = keyed();
    l.platform.failNext({ type: "refuse", kind: "recipient_unreachable" });
    await l.ann.say("a");
    await l.ann.say("b");
    expect(l.notes).toMatchObject([
      { kind: "recipient_unreachable" },
      { kind: "recipient_unreachable" },
    ]);
    expect(l.platform.calls).toHaveLength(1);
    await l.client.outbox.retry("order:1");
    await l.t.idle();
    expect(l.screen).toEqual(["v1"]);
  });

  test("after it became unknown is answered as unknown", async () => {
    const l = keyed({ outbox: { onAmbiguous: "skip" } });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("a");
    await l.ann.say("b");
    expect(l.notes).toMatchObject([{ status: "unknown" }, { status: "unknown" }]);
    expect(l.platform.calls).toHaveLength(1);
  });

  test("in another chat is another key", async () => {
    const l = keyed();
    await l.ann.say("a");
    await l.t.user("bob").say("b");
    expect(l.called).toEqual(["v1", "v2"]);
  });

  test("costs no ordinal: the sends beside it keep their keys over a replay", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          if (ctx.attempt === 1) await ctx.reply("only now", { idempotencyKey: "k" });
          l().notes.push((await ctx.reply("always")).key);
          if (ctx.attempt === 1) {
            await l().sleep(1);
            l().t.runtime.kill();
            await new Promise(() => {});
          }
        }),
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["e1:0", "e1:0"]);
    expect(l.screen).toEqual(["only now", "always"]);
  });

  test("with separators in it does not collide with another", async () => {
    const l = lab({ setup: () => {} });
    const names = ["a:1", "a%3A1", "a#2", "a", "a~b", "a/0", "=a"];
    for (const name of names) await l.client.enqueue(name, { idempotencyKey: name });
    await l.t.idle();
    expect(l.screen).toEqual(names);
    for (const name of ["a:1", "a", "a~b", "a/0", "=a"]) {
      expect(await l.client.outbox.get(name), name).toMatchObject({ content: { text: name } });
    }
  });

  test("with a number sign in it is found by its own name, and not taken for a part of another", async () => {
    const l = lab({ setup: () => {} });
    await l.client.enqueue("the twelfth", { idempotencyKey: "ticket#12", delay: "1h" });
    expect(await l.client.outbox.get("ticket#12")).toMatchObject({
      content: { text: "the twelfth" },
    });
    await l.client.enqueue("all", { idempotencyKey: "ticket", delay: "1h" });
    expect(await l.client.cancel("ticket#12")).toBe(true);
    await l.t.advance("2h");
    expect(l.screen).toEqual(["all"]);
  });

  test("twice in one turn, for when it settles, is said once and does not kill the turn", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          ctx.state.set("done", true);
          await ctx.enqueue("summary", { idempotencyKey: "k", when: "settled" });
          await ctx.enqueue("summary", { idempotencyKey: "k", when: "settled" });
        }),
    });
    await l.ann.say("hi");
    expect(l.told("durability:dead")).toEqual([]);
    expect(l.screen).toEqual(["summary"]);
    expect(l.t.state(l.ann, "done")).toBe(true);
  });

  test("first for when the turn settles and then at once is said once and does not kill the turn", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.enqueue("summary", { idempotencyKey: "k", when: "settled" });
          await ctx.reply("summary", { idempotencyKey: "k" });
        }),
    });
    await l.ann.say("hi");
    expect(l.told("durability:dead")).toEqual([]);
    expect(l.screen).toEqual(["summary"]);
    expect(await l.client.inbox.get("e1")).toMatchObject({ state: "done", runs: 1 });
  });

  test("by two calls at once, while a hook runs, is said once and fails neither", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.before("send", () => l().sleep(10));
      },
    });
    const both = Promise.allSettled([
      l.client.enqueue("hello", { idempotencyKey: "k" }),
      l.client.enqueue("hello", { idempotencyKey: "k" }),
    ]);
    await l.t.advance("1s");
    expect((await both).map((one) => one.status)).toEqual(["fulfilled", "fulfilled"]);
    await l.t.idle();
    expect(l.screen).toEqual(["hello"]);
  });
});

describe("onConflict: replace", () => {
  const remind = (l: Lab, text: string, delay: `${number}h`) =>
    l.client.enqueue(text, { idempotencyKey: "r", delay, onConflict: "replace" });

  test("moves a reminder that has not begun, to its new time and text", async () => {
    const l = lab({ setup: echoing });
    await remind(l, "at one", "1h");
    await remind(l, "at three", "3h");
    await l.t.advance("2h");
    expect(l.screen).toEqual([]);
    await l.t.advance("2h");
    expect(l.screen).toEqual(["at three"]);
    expect(l.states).toEqual(["sent"]);
  });

  test("by default keeps the one that waits", async () => {
    const l = lab({ setup: echoing });
    await l.client.enqueue("at one", { idempotencyKey: "r", delay: "1h" });
    await l.client.enqueue("at three", { idempotencyKey: "r", delay: "3h" });
    await l.t.advance("4h");
    expect(l.screen).toEqual(["at one"]);
  });

  test("says nothing more once it was said", async () => {
    const l = lab({ setup: echoing });
    await remind(l, "at one", "1h");
    await l.t.advance("1h");
    expect(await remind(l, "again", "1h")).toMatchObject({ status: "sent" });
    await l.t.advance("2h");
    expect(l.screen).toEqual(["at one"]);
  });

  test("does not replace what may have been said", async () => {
    const l = lab({ class: "keyed", setup: echoing });
    l.platform.fault = () => ({ type: "acceptThenDrop" });
    await l.client.enqueue("first", { idempotencyKey: "r" });
    await l.t.advance(100);
    await remind(l, "second", "1h");
    l.platform.fault = () => undefined;
    await l.t.advance("2h");
    expect(l.screen).toEqual(["first"]);
  });

  test("loses neither the old nor the new when the process dies in the middle", async () => {
    for (const side of ["before", "after"] as const) {
      for (const label of ["outbox.replace", "outbox.insert"]) {
        const l = lab({ setup: echoing });
        await remind(l, "old", "1h");
        l.t.crash[side](label);
        await remind(l, "new", "1h").catch(() => {});
        await l.t.advance("2h");
        expect(l.screen, `${side} ${label}`).toHaveLength(1);
      }
    }
  });

  test("schedules a reminder anew that was cancelled before", async () => {
    const l = lab({ setup: echoing });
    await remind(l, "old", "1h");
    expect(await l.client.cancel("r")).toBe(true);
    await remind(l, "new", "1h");
    await l.t.advance("2h");
    expect(l.screen).toEqual(["new"]);
  });
});

describe("cancel", () => {
  test("takes back a send that has not begun; it is listed as suppressed", async () => {
    const l = lab({ setup: echoing });
    const { key } = await l.client.enqueue("reminder", { delay: "1h" });
    expect(await l.client.cancel(key)).toBe(true);
    expect(await l.client.cancel(key)).toBe(false);
    await l.t.restart();
    await l.t.advance("2h");
    expect(l.screen).toEqual([]);
    expect(await l.client.outbox.get(key)).toMatchObject({
      state: "suppressed",
      reason: "cancelled",
    });
  });

  test("of a turn's own reminder works by the key that enqueue returned", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const { key } = await ctx.enqueue("reminder", { delay: "1h" });
          ctx.state.set("key", key);
        }),
    });
    await l.ann.say("hi");
    expect(await l.client.cancel(String(l.t.state(l.ann, "key")))).toBe(true);
    await l.t.advance("2h");
    expect(l.screen).toEqual([]);
  });

  test("says no to what was sent, may have been sent, or is being sent", async () => {
    const l = lab({ class: "keyed", setup: echoing });
    await l.client.enqueue("sent", { idempotencyKey: "sent" });
    await l.t.idle();
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.client.enqueue("maybe", { idempotencyKey: "maybe" });
    await l.t.advance(10);
    l.platform.latency = () => 5_000;
    await l.client.enqueue("flying", { idempotencyKey: "flying" });
    await l.t.advance(10);
    for (const key of ["sent", "maybe", "flying", "unheard of"]) {
      expect(await l.client.cancel(key), key).toBe(false);
    }
    await l.t.idle();
    expect([...l.screen].sort()).toEqual(["flying", "maybe", "sent"]);
  });

  test("answers the reply that waits for it", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push(await ctx.reply("hello", { idempotencyKey: "k" }));
        }),
    });
    l.platform.failNext({ type: "refuse", kind: "transient", retryAfterMs: 10_000 });
    await l.ann.post({ text: "hi" });
    await l.t.advance("1s");
    await l.client.cancel("k");
    await l.t.idle();
    expect(only(l.notes)).toMatchObject({ status: "suppressed" });
    expect(l.screen).toEqual([]);
  });
});
