/** Long messages: parts in order, whole, and what happens when one of them fails. */
import { describe, expect, test } from "vitest";
import { DeliveryError } from "../../src/index.ts";
import { type Lab, lab } from "./lab.ts";

const words = (count: number) => Array.from({ length: count }, (_u, n) => `word${n}`).join(" ");
const inWords = (texts: readonly string[]) =>
  texts.join(" ").split(/\s+/).filter(Boolean).join(" ");

function long(text: string, limit = 10): Lab {
  return lab({
    capabilities: { text: { limit, unit: "codepoints" } },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push(await ctx.reply(text).catch((error: unknown) => error));
      }),
  });
}

const THREE = "the first\n\nthe second\n\nthe third";
const parts = (l: Lab) => l.screen.map((text) => text.trim());

describe("a text of 9,000 characters", () => {
  const text = words(1_150);

  test("arrives whole, in order, in parts that the platform takes", async () => {
    const l = long(text, 4_096);
    await l.ann.say("hi");
    expect(text.length).toBeGreaterThan(9_000);
    expect(l.screen.length).toBe(3);
    expect(l.screen.every((part) => part.length <= 4_096)).toBe(true);
    expect(inWords(l.screen)).toBe(text);
    const result = l.notes[0] as {
      key: string;
      receipt: { primaryId: string; platformMessageIds: string[] };
    };
    expect(result.key).toBe("e1:0");
    expect(result.receipt).toMatchObject({
      primaryId: "m1",
      platformMessageIds: ["m1", "m2", "m3"],
    });
  });

  test("arrives whole and in order from a client, over refusals and rate limits", async () => {
    const l = long("", 4_096);
    l.platform.fault = ({ n }) =>
      n % 2 === 1
        ? { type: "refuse", kind: n % 3 === 0 ? "transient" : "rate_limit", retryAfterMs: 2_000 }
        : undefined;
    await l.client.enqueue(text);
    await l.t.idle();
    expect(inWords(l.screen)).toBe(text);
  });

  test("arrives whole and in order when the process dies before its parts", async () => {
    const l = long(text, 4_096);
    let left = 3;
    l.t.runtime.onProbe = ({ label, side }) => {
      const here = label === "outbox.markSending" && side === "before";
      if (here) left -= 1;
      return here && left >= 0;
    };
    await l.ann.say("hi");
    expect(left).toBeLessThan(0);
    expect(inWords(l.screen)).toBe(text);
    expect(l.screen).toHaveLength(3);
  });
});

describe("the parts of a message", () => {
  test("never overtake each other, however the first is delayed", async () => {
    const l = long(THREE);
    l.platform.failNext({ type: "refuse", kind: "transient", retryAfterMs: 40_000 });
    await l.ann.say("hi");
    expect(parts(l)).toEqual(["the first", "the second", "the third"]);
  });

  test("behind an unknown one are not held up for ever", async () => {
    const l = lab({
      capabilities: { text: { limit: 10, unit: "codepoints" } },
      durability: { outbox: { onAmbiguous: "skip" } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push((await ctx.reply(THREE)).status);
        }),
    });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    expect(parts(l)).toEqual(["the second", "the third"]);
    expect(l.notes).toEqual(["unknown"]);
  });

  test("have keys of their own, by which an operator finds each", async () => {
    const l = long(THREE);
    await l.ann.say("hi");
    expect((await l.client.outbox.list()).rows.map((row) => row.id)).toEqual([
      "e1:0#3",
      "e1:0#2",
      "e1:0",
    ]);
    expect(await l.client.outbox.get("e1:0#2")).toMatchObject({
      state: "sent",
      receipt: { platformMessageIds: ["m2"] },
    });
  });
});

describe("a message whose second part is refused for good", () => {
  const half = async () => {
    const l = long(THREE);
    l.platform.fault = ({ n }) =>
      n === 2 ? { type: "refuse", kind: "invalid_payload" } : undefined;
    await l.ann.say("hi");
    return l;
  };

  test("tells its handler what was said so far, and says no more", async () => {
    const l = await half();
    expect(l.notes).toEqual([expect.any(DeliveryError)]);
    expect(l.notes[0]).toMatchObject({ key: "e1:0", kind: "invalid_payload", sentParts: ["m1"] });
    expect(l.states).toEqual(["sent", "dead", "dead"]);
    expect(parts(l)).toEqual(["the first"]);
    expect(l.told("durability:dead").map((event) => event.id)).toEqual(["e1:0#2"]);
  });

  test("is completed by one retry of an operator, whichever part is named", async () => {
    for (const key of ["e1:0", "e1:0#2", "e1:0#3"]) {
      const l = await half();
      expect(await l.client.outbox.retry(key)).toBe(true);
      await l.t.idle();
      expect(parts(l)).toEqual(["the first", "the second", "the third"]);
    }
  });

  test("is completed by a retry although the process dies in it", async () => {
    const l = await half();
    l.t.crash.after("outbox.retry");
    await l.client.outbox.retry("e1:0").catch(() => {});
    await l.t.idle();
    expect(parts(l)).toEqual(["the first", "the second", "the third"]);
  });
});

test("a long message that an operator discards is discarded whole, and leaves no part open for ever", async () => {
  const l = long(THREE);
  l.platform.fault = () => ({ type: "refuse", kind: "transient", retryAfterMs: 600_000 });
  await l.ann.post({ text: "hi" });
  await l.t.advance("1m");
  expect(l.states).toEqual(["failed", "pending", "pending"]);
  expect(await l.client.outbox.discard("e1:0")).toBe(true);
  l.platform.fault = () => undefined;
  await l.t.advance("1h");
  expect(l.states).toEqual(["dead", "dead", "dead"]);
  expect(l.screen).toEqual([]);
});

test("a message of more parts than the journal takes is refused, not cut off in silence", async () => {
  const l = lab({
    capabilities: { text: { limit: 10, unit: "codepoints" } },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push(
          await ctx.enqueue("x ".repeat(5_500), { delay: "1h" }).catch((error: unknown) => error),
        );
      }),
  });
  await l.ann.say("hi");
  expect(l.notes).toEqual([expect.any(DeliveryError)]);
  expect(l.sends()).toEqual([]);
});
