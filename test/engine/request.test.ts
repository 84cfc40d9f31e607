/** What exactly the platform is asked: fallbacks, moves, deploys between attempts, steps before a call. */
import { describe, expect, test } from "vitest";
import type { Outbound } from "../../src/channels/channel.ts";
import type { MockPlatform } from "../../src/testing/index.ts";
import { type Deploy, echoing, type Lab, lab, only } from "./lab.ts";

/** Channel code that writes texts in its own way. */
const writing =
  (style: string) =>
  (base: Outbound<MockPlatform>): Partial<Outbound<MockPlatform>> => ({
    render: (content, target) =>
      base.render(content, target).map((part) => ({
        ...part,
        request: { ...part.request, text: `${style}(${String(part.request.text)})` },
      })),
  });

const limit = (size: number) => ({ text: { limit: size, unit: "codepoints" as const } });

describe("a message whose formatting the platform refuses", () => {
  const refusal = { type: "refuse", kind: "invalid_payload", fallback: "plain" } as const;

  test("arrives as plain text under a new marker, and spends no attempt", async () => {
    const l = lab({ durability: { outbox: { retries: 0 } }, setup: echoing });
    const formats: unknown[] = [];
    l.t.channel("mock").outbound.send = async (request, io) => {
      formats.push(request.format);
      return l.platform.send("ann", String(request.text), [], io.marker);
    };
    l.t.channel("mock").outbound.render = (content, target) => [
      {
        kind: "text",
        request: { chat: target.address.chat, text: content.text ?? "", format: "markdown" },
      },
    ];
    l.platform.failNext(refusal);
    await l.ann.say("*hi*");
    expect(formats).toEqual(["markdown", "plain"]);
    expect(l.screen).toEqual(["ok *hi*"]);
    expect(new Set(l.platform.calls.map((call) => call.marker)).size).toBe(2);
    expect(only(l.sends()).attempts).toBe(0);
    expect(l.told("durability:ambiguous")).toEqual([]);
  });

  test("and then the plain text too, is dead: once is enough", async () => {
    const l = lab({ setup: echoing });
    l.platform.failNext(refusal, refusal, refusal);
    await l.ann.say("hi");
    expect(l.platform.calls).toHaveLength(2);
    expect(l.told("durability:dead")).toHaveLength(1);
  });

  test("arrives as plain text although the process dies in between", async () => {
    for (const side of ["before", "after"] as const) {
      const l = lab({ setup: echoing });
      l.platform.failNext(refusal);
      l.t.crash[side]("outbox.markFailed");
      await l.ann.say("hi");
      const told = l.told("durability:ambiguous");
      // Killed before the record, the refusal is unknown, and the operator is told.
      if (side === "after") expect(l.screen).toEqual(["ok hi"]);
      expect(told).toHaveLength(side === "before" ? 1 : 0);
    }
  });
});

describe("a chat that has moved", () => {
  test("gets the message at its new place, under a new marker, and no attempt is spent", async () => {
    const l = lab({ durability: { outbox: { retries: 0 } }, setup: echoing });
    l.platform.failNext({ type: "moved", to: "new-ann" });
    await l.ann.say("hi");
    expect(l.platform.calls.map((call) => call.chat)).toEqual(["ann", "new-ann"]);
    expect(new Set(l.platform.calls.map((call) => call.marker)).size).toBe(2);
    expect(l.platform.ledger.map((entry) => [entry.chat, entry.text])).toEqual([
      ["new-ann", "ok hi"],
    ]);
    expect(await l.client.outbox.get("e1:0")).toMatchObject({
      state: "sent",
      address: "mock/mock/new-ann",
      receipt: { address: { chat: "new-ann" } },
    });
    expect(only(l.sends()).attempts).toBe(0);
  });

  test("from pillar to post is given up in the end, and announced", async () => {
    const l = lab({ setup: echoing });
    l.platform.fault = (call) => ({ type: "moved", to: call.chat === "ann" ? "x" : "ann" });
    await l.ann.say("hi");
    expect(l.platform.calls.length).toBeLessThanOrEqual(5);
    expect(l.told("durability:dead")).toEqual([expect.objectContaining({ errorKind: "conflict" })]);
  });

  test("gets every part of a long message at its new place", async () => {
    const l = lab({
      capabilities: limit(10),
      setup: (bot) => bot.otherwise((ctx) => ctx.reply("the first\n\nthe second")),
    });
    l.platform.fault = (call) => (call.chat === "ann" ? { type: "moved", to: "new" } : undefined);
    await l.ann.say("hi");
    expect(l.platform.ledger.map((entry) => [entry.chat, entry.text.trim()])).toEqual([
      ["new", "the first"],
      ["new", "the second"],
    ]);
  });

  test("is not asked for at its old place by every message from then on", async () => {
    const l = lab({ setup: echoing });
    l.platform.fault = (call) => (call.chat === "ann" ? { type: "moved", to: "new" } : undefined);
    await l.ann.say("one");
    await l.ann.say("two");
    expect(l.platform.calls.map((call) => call.chat)).toEqual(["ann", "new", "new"]);
  });
});

describe("a deploy of code that writes the message otherwise", () => {
  const code = (style: string, more: Partial<Deploy> = {}): Deploy => ({
    outbound: writing(style),
    setup: echoing,
    ...more,
  });

  test("after a try that may have arrived repeats the very same request", async () => {
    const l = lab({ class: "keyed", setup: echoing });
    l.deploy(code("old"));
    l.platform.failNext({ type: "acceptThenDrop" }, { type: "drop" });
    await l.ann.post({ text: "hi" });
    await l.t.advance(100);
    l.deploy(code("new"));
    await l.t.idle();
    expect(new Set(l.platform.calls.map((call) => `${call.text} ${call.marker}`))).toHaveLength(1);
    expect(l.screen).toEqual(["old(ok hi)"]);
  });

  test("after a lookup that proved that it had not arrived repeats the very same request, too", async () => {
    const l = lab({ class: "provable", setup: echoing });
    l.deploy(code("old"));
    l.platform.failNext({ type: "drop" });
    await l.ann.post({ text: "hi" });
    await l.t.advance(100);
    l.deploy(code("new"));
    await l.t.idle();
    expect(l.called).toEqual(["old(ok hi)", "old(ok hi)"]);
  });

  test("with a smaller limit cuts a message anew that was never tried", async () => {
    const l = lab({ capabilities: limit(100), setup: echoing });
    await l.client.enqueue("the first\n\nthe second\n\nthe third", { delay: "1h" });
    l.deploy({ capabilities: limit(10), setup: echoing });
    await l.t.advance("2h");
    expect(l.screen.map((text) => text.trim())).toEqual(["the first", "the second", "the third"]);
  });

  test("with a larger limit joins a message again that was never tried", async () => {
    const l = lab({ capabilities: limit(10), setup: echoing });
    await l.client.enqueue("the first\n\nthe second", { delay: "1h" });
    expect(l.states).toHaveLength(2);
    l.deploy({ capabilities: limit(100), setup: echoing });
    await l.t.advance("2h");
    expect(l.screen).toEqual(["the first\n\nthe second"]);
    expect(l.states).toEqual(["sent"]);
  });

  test("in the middle of a message loses none of its text", async () => {
    const words = "a b c d e f g h i j k";
    const l = lab({
      capabilities: limit(7),
      setup: (bot) => bot.otherwise((ctx) => ctx.reply(words)),
    });
    l.deploy({ capabilities: limit(7), setup: (bot) => bot.otherwise((ctx) => ctx.reply(words)) });
    l.platform.fault = ({ n }) =>
      n === 2 ? { type: "refuse", kind: "rate_limit", retryAfterMs: 60_000 } : undefined;
    await l.ann.post({ text: "hi" });
    await l.t.advance("1s");
    expect(l.states).toEqual(["sent", "failed", "pending"]);
    // The same number of parts, cut elsewhere: 4 + 4 + 3 words before, 5 + 5 + 1 after.
    l.deploy({ capabilities: limit(9), setup: (bot) => bot.otherwise((ctx) => ctx.reply(words)) });
    await l.t.idle();
    expect(l.screen.join(" ").split(/\s+/)).toEqual(words.split(" "));
  });

  test("with a smaller limit lets an operator's retry cut a message that was refused as too long", async () => {
    const l = lab({ capabilities: limit(100), setup: echoing });
    l.platform.fault = (call) =>
      call.text.length > 10 ? { type: "refuse", kind: "payload_too_large" } : undefined;
    await l.client.enqueue("the first\n\nthe second", { idempotencyKey: "k" });
    await l.t.idle();
    expect(l.states).toEqual(["dead"]);
    l.deploy({ capabilities: limit(10), setup: echoing });
    await l.client.outbox.retry("k");
    await l.t.idle();
    expect(l.screen.map((text) => text.trim())).toEqual(["the first", "the second"]);
  });
});

describe("a step before the call (tokens, uploads)", () => {
  /** A channel whose `prepare` fails `times` times. */
  const preparing = (times: number, how: "throws" | "refuses" | "hangs"): Lab => {
    const l = lab({ setup: echoing });
    let left = times;
    l.deploy({
      outbound: () => ({
        prepare: async (request) => {
          left -= 1;
          if (left < 0)
            return { ok: true, request: { ...request, text: `${String(request.text)} +token` } };
          if (how === "throws") throw new Error("no token");
          if (how === "hangs") return new Promise(() => {});
          return { ok: false, kind: "transient", evidence: "not_sent", message: "no token" };
        },
      }),
      setup: echoing,
    });
    return l;
  };

  test("is part of what is sent", async () => {
    const l = preparing(0, "throws");
    await l.ann.say("hi");
    expect(l.screen).toEqual(["ok hi +token"]);
  });

  test.each(["throws", "refuses", "hangs"] as const)(
    "that %s has sent nothing: it is tried again, and the message arrives once",
    async (how) => {
      const l = preparing(2, how);
      await l.ann.post({ text: "hi" });
      await l.t.advance("10m");
      expect(l.screen).toEqual(["ok hi +token"]);
      expect(only(l.sends())).toMatchObject({ state: "sent", attempts: 2, maybes: 0 });
    },
  );

  test("that never succeeds is given up after twelve retries, and announced", async () => {
    const l = lab({ setup: echoing });
    const dead: unknown[] = [];
    let tries = 0;
    l.deploy({
      outbound: () => ({
        prepare: async () => {
          tries += 1;
          throw new Error("no token");
        },
      }),
      setup: (bot) => {
        echoing(bot);
        bot.on("durability:dead", (event) => dead.push(event.errorKind));
      },
    });
    await l.ann.post({ text: "hi" });
    await l.t.advance("59m");
    expect(tries).toBe(13);
    expect(dead).toEqual(["transient"]);
  });

  test("that fails for good ends the send with its kind", async () => {
    const l = lab({ setup: echoing });
    const dead: unknown[] = [];
    l.deploy({
      outbound: () => ({
        prepare: async () => ({
          ok: false,
          kind: "auth",
          evidence: "not_sent",
          message: "token revoked",
        }),
      }),
      setup: (bot) => {
        echoing(bot);
        bot.on("durability:dead", (event) => dead.push(event.errorKind));
      },
    });
    await l.ann.say("hi");
    expect(dead).toEqual(["auth"]);
    expect(l.platform.calls).toEqual([]);
  });
});
