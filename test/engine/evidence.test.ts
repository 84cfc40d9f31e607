/** The decision table of design §6, cell by cell: what a user sees, how often, and who is told. */
import { describe, expect, test } from "vitest";
import { ALL, causeOf, outcome, replying, SAID, trouble, UNSAID } from "./doubt.ts";

describe("on a keyed channel", () => {
  test.each(ALL)("one message is seen once and once only (%s)", async (cause) => {
    const l = replying("keyed");
    trouble(l, cause);
    expect(await outcome(l)).toEqual({
      calls: cause === "killed before" ? 1 : 2,
      markers: 1,
      copies: 1,
      state: "sent",
      told: [`${causeOf(cause)}: resent`],
      result: "sent",
    });
  });

  test("twelve lost answers in a row are repeated with one marker, told once, and end as sent", async () => {
    const l = replying("keyed");
    trouble(l, "answer lost", 12);
    expect(await outcome(l)).toEqual({
      calls: 13,
      markers: 1,
      copies: 1,
      state: "sent",
      told: ["no_answer: resent"],
      result: "sent",
    });
  });

  test("a message whose repeats are spent is unknown, not dead: the first may have arrived", async () => {
    const l = replying("keyed", { retries: 2 });
    trouble(l, "reset", 20);
    expect(await outcome(l)).toMatchObject({
      calls: 3,
      copies: 0,
      state: "unknown",
      result: "unknown",
    });
    expect(l.told("durability:dead")).toEqual([]);
  });

  describe("past the window of its marker", () => {
    const window = { markerWindowMs: 60_000 };

    test.each([
      ["skip", 0, "unknown"],
      ["resend-once", 1, "sent"],
    ] as const)(
      "the operator's choice for blind channels counts (%s)",
      async (noAnswer, copies, state) => {
        // Hung for 30 s: now + 30 s timeout + margin is past 60 s when the repeat comes.
        const l = replying("keyed", { onAmbiguous: { noAnswer } }, window);
        trouble(l, "hung");
        const seen = await outcome(l);
        expect(seen).toMatchObject({ copies, state });
        expect(seen.told).toEqual([noAnswer === "skip" ? "no_answer: held" : "no_answer: resent"]);
        // The old marker is worth nothing any more.
        expect(seen.markers).toBe(seen.calls);
      },
    );

    test.each([
      ["skip", 1],
      ["resend-once", 2],
    ] as const)(
      "that ends between two repeats, the old marker is not used any more (%s)",
      async (noAnswer, markers) => {
        const l = replying("keyed", { onAmbiguous: { noAnswer } }, { markerWindowMs: 120_000 });
        const start = l.now;
        const times = new Map<string, number>();
        l.platform.fault = ({ marker }) => {
          times.set(marker, l.now - start);
          return { type: "drop" };
        };
        expect(await outcome(l)).toMatchObject({ state: "unknown", told: ["no_answer: resent"] });
        expect(times.size).toBe(markers);
        // A call may take 30 s: the last under the first marker began that long before the end, and more.
        expect([...times.values()][0]).toBeLessThanOrEqual(85_000);
        expect([...times.values()][0]).toBeGreaterThan(20_000);
      },
    );

    test("a channel that can then be asked is asked, before anything is said again", async () => {
      const l = replying("keyed", {}, { ...window, afterWindow: "provable", settleAfterMs: 5_000 });
      const asked: string[] = [];
      l.deploy({
        capabilities: {
          delivery: { class: "keyed", ...window, afterWindow: "provable", settleAfterMs: 5_000 },
        },
        outbound: () => ({
          reconcile: async ({ marker }) => {
            asked.push(marker);
            return l.platform.reconcile(marker);
          },
        }),
        setup: (bot) => bot.otherwise((ctx) => ctx.reply("hello")),
      });
      trouble(l, "no answer");
      expect(await outcome(l)).toMatchObject({ calls: 1, copies: 1, state: "sent" });
      expect(asked).toHaveLength(1);
    });
  });
});

describe("on a provable channel", () => {
  test.each(SAID)("what arrived is found and not said again (%s)", async (cause) => {
    const l = replying("provable");
    trouble(l, cause);
    expect(await outcome(l)).toEqual({
      calls: 1,
      markers: 1,
      copies: 1,
      state: "sent",
      told: [`${causeOf(cause)}: looked up`],
      result: "sent",
    });
  });

  test.each(UNSAID)(
    "what did not arrive is said after the platform proved that it had not (%s)",
    async (cause) => {
      const l = replying("provable");
      trouble(l, cause);
      expect(await outcome(l)).toEqual({
        calls: cause === "killed before" ? 1 : 2,
        markers: 1,
        copies: 1,
        state: "sent",
        told: [`${causeOf(cause)}: looked up`],
        result: "sent",
      });
    },
  );

  test("the platform is given time to settle before it is asked", async () => {
    const l = replying("provable", {}, { settleAfterMs: 20_000 });
    const asked: number[] = [];
    const reconcile = l.platform.reconcile.bind(l.platform);
    l.platform.reconcile = (marker) => {
      asked.push(l.now);
      return reconcile(marker);
    };
    trouble(l, "answer lost");
    const from = l.now;
    await l.ann.say("hi");
    expect(asked).toEqual([from + 20_000]);
  });

  test.each(ALL)(
    "what the platform cannot tell stays unknown, and is neither lost sight of nor repeated (%s)",
    async (cause) => {
      const l = replying("provable");
      l.platform.healthy = () => false;
      trouble(l, cause);
      expect(await outcome(l)).toEqual({
        calls: cause === "killed before" ? 0 : 1,
        markers: cause === "killed before" ? 0 : 1,
        copies: SAID.includes(cause) ? 1 : 0,
        state: "unknown",
        told: [`${causeOf(cause)}: looked up`],
        result: "unknown",
      });
      expect((await l.client.outbox.list({ state: "unknown" })).rows).toHaveLength(1);
    },
  );

  test("is asked again while the platform cannot tell yet", async () => {
    const l = replying("provable");
    const until = l.now + 60_000;
    l.platform.healthy = () => l.now > until;
    trouble(l, "reset");
    expect(await outcome(l)).toMatchObject({ copies: 1, state: "sent", result: "sent" });
  });
});

test.each(["keyed", "provable", "blind"] as const)(
  "a refusal is no doubt: nobody is told, and it is said once (%s)",
  async (kind) => {
    const l = replying(kind);
    l.platform.failNext({ type: "refuse", kind: "transient" }, { type: "refuse", kind: "unknown" });
    expect(await outcome(l)).toEqual({
      calls: 3,
      markers: 1,
      copies: 1,
      state: "sent",
      told: [],
      result: "sent",
    });
  },
);
