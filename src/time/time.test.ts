import { describe, expect, test } from "vitest";
import { VirtualClock } from "../testing/node/VirtualClock.ts";
import { backoffMs } from "./backoff.ts";
import { sleep, TIMED_OUT, withDeadline } from "./Clock.ts";
import { parseDuration } from "./duration.ts";

describe("a duration", () => {
  test.each([
    ["250ms", 250],
    ["15s", 15_000],
    ["1.5m", 90_000],
    ["12h", 43_200_000],
    ["7d", 604_800_000],
    [5, 5],
    [0, 0],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    "",
    "5",
    "5 s",
    "-5s",
    "5S",
    "1e3s",
    "5s ",
    "s",
    ".5s",
    "1w",
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    {},
  ])("%s is none", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe("a backoff", () => {
  const backoff = { baseMs: 1_000, capMs: 60_000 };

  test("doubles up to its cap, half fixed and half random", () => {
    for (const [retry, full] of [
      [1, 1_000],
      [2, 2_000],
      [3, 4_000],
      [6, 32_000],
      [7, 60_000],
      [100, 60_000],
      [5_000, 60_000],
    ] as const) {
      expect(backoffMs(backoff, retry, 0)).toBe(full / 2);
      expect(backoffMs(backoff, retry, 0.5)).toBe(full * 0.75);
      expect(backoffMs(backoff, retry, 0.999_999)).toBeLessThanOrEqual(full);
    }
  });

  test("of a retry that is none is that of the first", () => {
    expect(backoffMs(backoff, 0, 0)).toBe(500);
    expect(backoffMs(backoff, -3, 0)).toBe(500);
  });
});

describe("a deadline", () => {
  test("gives the result that came in time, or says that it was over", async () => {
    const clock = new VirtualClock(0);
    const results = Promise.all([
      withDeadline(
        clock,
        100,
        sleep(clock, 99).then(() => "in time"),
      ),
      withDeadline(
        clock,
        100,
        sleep(clock, 101).then(() => "late"),
      ),
      withDeadline(clock, 100, new Promise(() => {})),
    ]);
    await clock.advance(1_000);
    expect(await results).toEqual(["in time", TIMED_OUT, TIMED_OUT]);
  });

  test("passes a failure on, and swallows one that comes too late", async () => {
    const clock = new VirtualClock(0);
    const fail = (ms: number) => sleep(clock, ms).then(() => Promise.reject(new Error("no")));
    const seen = Promise.allSettled([
      withDeadline(clock, 100, fail(50)),
      withDeadline(clock, 100, fail(150)),
    ]);
    await clock.advance(1_000);
    expect((await seen).map((one) => one.status)).toEqual(["rejected", "fulfilled"]);
  });
});
