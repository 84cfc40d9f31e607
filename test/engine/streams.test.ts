/** Answers that are shown while they are written: what the chat sees of them, and what it is left with. */
import { describe, expect, test } from "vitest";
import type { StreamOptions } from "../../src/index.ts";
import { ModelStream } from "../../src/testing/index.ts";
import { splitText } from "../../src/text/split.ts";
import { type Code, lab, only } from "./lab.ts";
import { prose, streaming, words } from "./streamLab.ts";

const joined = (parts: readonly string[]) => words(parts.join(" "));

/** The most calls in any minute. */
function mostPerMinute(times: readonly number[]): number {
  return Math.max(...times.map((t) => times.filter((u) => u >= t && u < t + 60_000).length));
}

describe("an answer while it is written", () => {
  test("is seen to grow at the platform's pace, and is one message in the end", async () => {
    const l = streaming(prose(1_000), { model: { tokensPerSecond: 25 } });
    await l.ann.post({ text: "go" });
    await l.t.advance("1s");
    expect(l.screen).toEqual([]);
    await l.t.advance("4s");
    const early = only(l.screen);
    expect(words(prose(1_000)).startsWith(words(early))).toBe(true);
    await l.t.advance("2s");
    const later = only(l.screen);
    expect(later.length).toBeGreaterThan(early.length);
    await l.t.idle();
    expect(l.screen).toEqual([prose(1_000)]);
    expect(l.platform.ledger).toHaveLength(1);
    const { revisions } = l.platform;
    expect(revisions.length).toBeGreaterThan(5);
    // The last is the answer itself, which waits for nothing.
    for (const [n, one] of revisions.slice(0, -1).entries())
      expect(one.at - (revisions[n - 1]?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
  });

  test("that is whole before the first look costs what a reply costs", async () => {
    const l = streaming("short", {
      options: { buttons: [[{ text: "ok", url: "https://x.org" }]] },
    });
    await l.ann.say("go");
    expect(l.platform.calls).toHaveLength(1);
    expect(l.sends()).toHaveLength(1);
    expect(l.ann.buttons).toEqual(["ok"]);
  });

  test("resolves to the receipt of the message, which can be edited later", async () => {
    const results: unknown[] = [];
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const sent = await ctx.stream(new ModelStream(prose(600)));
          results.push(sent);
          await sent.edit("edited");
        }),
    });
    await l.ann.say("go");
    expect(results).toMatchObject([
      { status: "sent", receipt: { primaryId: "m1", platformMessageIds: ["m1"] } },
    ]);
    expect(l.screen).toEqual(["edited"]);
  });

  test("of 12,000 characters goes on in further messages, over refusals and a lost answer", async () => {
    for (const deliveryClass of ["keyed", "provable", "blind"] as const) {
      const l = streaming(prose(12_000), { class: deliveryClass });
      let lost = 0;
      l.platform.fault = ({ n, changes }) => {
        if (n % 9 === 4) return { type: "refuse", kind: "rate_limit", retryAfterMs: 3_000 };
        // The platform takes an edit, and its answer is lost.
        if (changes === undefined || n < 20 || lost > 0) return undefined;
        lost += 1;
        return { type: "acceptThenDrop" };
      };
      await l.ann.say("go");
      await l.t.advance("2m");
      expect(lost).toBe(1);
      expect(joined(l.screen)).toBe(words(prose(12_000)));
      expect(l.platform.ledger).toHaveLength(3);
      expect(l.told("durability:ambiguous")).toEqual([]);
      const edits = l.platform.calls.length;
      expect(edits).toBeGreaterThan(30);
      expect(mostPerMinute(l.platform.revisions.map(({ at }) => at))).toBeLessThanOrEqual(60);
      expect(new Set(l.states)).toEqual(new Set(["sent"]));
    }
  });

  test("whose first post was accepted and its answer lost: by class and policy, and announced", async () => {
    const expected = {
      // A repeat under the same marker is the same message.
      keyed: { messages: 1, action: "resent" },
      // It is looked up, found, and edited.
      provable: { messages: 1, action: "looked up" },
      // Nobody knows its id: the answer is a message of its own, and the stray is announced.
      blind: { messages: 2, action: "held" },
    };
    for (const [deliveryClass, { messages, action }] of Object.entries(expected)) {
      const l = streaming(prose(1_500), {
        class: deliveryClass as Code["class"] & string,
        // The answer is whole long before the repeat.
        durability: { outbox: { backoff: { baseMs: 60_000 } } },
      });
      l.platform.failNext({ type: "acceptThenDrop" });
      await l.ann.say("go");
      await l.t.advance("5m");
      await l.t.idle();
      expect([deliveryClass, l.platform.ledger.length]).toEqual([deliveryClass, messages]);
      expect(l.screen.at(-1)).toBe(prose(1_500));
      expect(l.told("durability:ambiguous")).toMatchObject([{ key: "e1:0!p0", action }]);
    }
  });

  test("whose complete part may be out is said again by policy only", async () => {
    const text = { limit: 300, unit: "codepoints" as const };
    for (const [policy, times] of [
      ["skip", 1],
      ["resend-once", 2],
    ] as const) {
      const l = streaming(prose(2_000), {
        capabilities: { text },
        durability: { outbox: { onAmbiguous: policy } },
        model: { tokensPerSecond: 200 },
      });
      l.platform.failNext({ type: "acceptThenDrop" });
      await l.ann.say("go");
      await l.t.advance("5m");
      const parts = splitText(prose(2_000), 300, "codepoints");
      expect(l.sends()[0]?.slot).toBe("0!p0");
      for (const [n, part] of parts.entries())
        expect(l.screen.filter((one) => one === part)).toHaveLength(n === 0 ? times : 1);
      expect(l.told("durability:ambiguous").length).toBeGreaterThanOrEqual(1);
    }
  });

  test("waits for its preview to be there, however slow the platform is", async () => {
    for (const deliveryClass of ["keyed", "blind"] as const) {
      const l = streaming(prose(400), { class: deliveryClass });
      l.platform.latency = () => 4_000;
      await l.ann.say("go");
      await l.t.idle();
      expect(l.screen).toEqual([prose(400)]);
      expect(l.platform.ledger).toHaveLength(1);
      expect(l.platform.revisions).toHaveLength(1);
    }
  });

  test("does not wait for a preview that was refused, and is not followed by it", async () => {
    const l = streaming(prose(400), { durability: { outbox: { backoff: { baseMs: 60_000 } } } });
    l.platform.failNext({ type: "refuse", kind: "transient" });
    await l.ann.say("go");
    const [answer] = l.platform.ledger;
    expect(l.now - (answer?.at ?? 0)).toBeLessThan(10_000);
    await l.t.advance("10m");
    expect(l.screen).toEqual([prose(400)]);
    expect(l.platform.ledger).toHaveLength(1);
  });

  test("in a group keeps the group's pace, and `every` may only slow it down", async () => {
    const pace = async (options: StreamOptions, group: boolean) => {
      const l = streaming(prose(4_000), {
        options,
        capabilities: { streaming: { everyMs: 1_000, groupEveryMs: 4_000 } },
      });
      const user = group ? l.t.user("ann", { chat: "g" }) : l.ann;
      await user.say("go");
      return l.platform.revisions.length;
    };
    // 20 s of text.
    expect(await pace({}, false)).toBeGreaterThanOrEqual(15);
    expect(await pace({ every: "10ms" }, false)).toBeLessThanOrEqual(20);
    expect(await pace({}, true)).toBeLessThanOrEqual(5);
    expect(await pace({ every: "8s" }, false)).toBeLessThanOrEqual(2);
  });

  test("on a platform without edits goes out once it is whole", async () => {
    const base = streaming("").bot.channels[0]?.capabilities;
    const { streaming: _streaming, ...capabilities } = base ?? {};
    const l = streaming(prose(1_000), {
      capabilities: { ...capabilities, streaming: undefined } as never,
    });
    await l.ann.say("go");
    expect(l.platform.calls.map((call) => call.text)).toEqual([prose(1_000)]);
  });
});
