/** Answers whose process dies while they are written: the chat gets all of it, once. */
import { describe, expect, test } from "vitest";
import { Bot } from "../../src/index.ts";
import {
  type CrashPoint,
  crashEverywhere,
  MockPlatform,
  ModelStream,
  mockProvider,
  type TestBot,
} from "../../src/testing/index.ts";
import { splitText } from "../../src/text/split.ts";
import { prose } from "./streamLab.ts";

const clock = { now: () => 0, setTimer: () => () => {} };

/** A bot whose answer takes several messages of 200 characters. */
function botOf(deliveryClass: "keyed" | "provable" | "blind", more: object = {}): Bot {
  const platform = new MockPlatform(clock, deliveryClass);
  const capabilities = { text: { limit: 200, unit: "codepoints" as const }, ...more };
  const bot = new Bot({
    id: "streams",
    channels: [mockProvider({ platform, capabilities })],
    durability: { inbox: { minAgeMs: 0 } },
  });
  bot.otherwise((ctx) => ctx.stream(new ModelStream(prose(500), { tokensPerSecond: 40 })));
  return bot;
}

const PARTS = splitText(prose(500), 200, "codepoints");

/**
 * The chat shows every part once. On a blind channel a part that may be out is not repeated, and a preview
 * that may be out is not found again: each such case was announced.
 */
function check(t: TestBot, point?: CrashPoint): void {
  const { screen } = t.user("ann");
  const doubts = t.announced.filter(({ kind }) => kind === "durability:ambiguous").length;
  const strays = [...screen];
  const missing = PARTS.filter((part) => {
    const at = strays.indexOf(part);
    if (at >= 0) strays.splice(at, 1);
    return at < 0;
  });
  if (t.platform().class !== "blind" || point === undefined)
    expect({ missing, strays }).toEqual({ missing: [], strays: [] });
  expect(missing.length + strays.length).toBeLessThanOrEqual(doubts);
  for (const stray of strays) expect(PARTS.some((part) => part.startsWith(stray))).toBe(true);
}

describe("an answer whose process is killed at every label", () => {
  for (const deliveryClass of ["keyed", "provable", "blind"] as const) {
    test(`on a ${deliveryClass} channel is complete, and nothing is said twice unannounced`, async () => {
      const { points } = await crashEverywhere(
        {
          bot: () => botOf(deliveryClass),
          run: async (t) => {
            await t.user("ann").say("go");
            await t.advance("10m");
          },
        },
        check,
      );
      expect(points.length).toBeGreaterThan(20);
    });
  }
});
