import { describe, expect, test } from "vitest";
import { settingsOf } from "./options.ts";
import { planClaim } from "./poison.ts";

const settings = settingsOf({ inbox: { maxAttempts: 3, minAgeMs: 100_000 } }).inbox;
const row = (more: Partial<Parameters<typeof planClaim>[0]> = {}) => ({
  state: "processing" as const,
  runs: 1,
  stalled: 0,
  progress: 0,
  due_at: null,
  received_at: 0,
  ...more,
});

describe("a message that has started before", () => {
  test.each([
    [
      "its first start is free",
      row({ state: "pending", runs: 0 }),
      0,
      0,
      { do: "run", stalled: 0 },
    ],
    ["one crash is no reason to wait", row(), 0, 1_000, { do: "run", stalled: 1 }],
    [
      "a start that got further does not count",
      row({ runs: 2, stalled: 1, progress: 4 }),
      5,
      1_000,
      { do: "run", stalled: 1 },
    ],
    [
      "a start that got as far as the last counts",
      row({ runs: 2, progress: 4 }),
      4,
      1_000,
      { do: "run", stalled: 1 },
    ],
    [
      "its last start waits for the minimum age",
      row({ runs: 2, stalled: 1 }),
      0,
      1_000,
      { do: "wait", until: 100_500 },
    ],
    [
      "its last start may run once it is old enough",
      row({ runs: 2, stalled: 1, due_at: 90_000 }),
      0,
      100_000,
      { do: "run", stalled: 2 },
    ],
    [
      "a spent one that is young waits",
      row({ runs: 3, stalled: 2 }),
      0,
      99_999,
      { do: "wait", until: 100_500 },
    ],
    [
      "a spent one that is old enough dies",
      row({ runs: 3, stalled: 2 }),
      0,
      100_000,
      { do: "dead", stalled: 3 },
    ],
    [
      "one that gets further for ever dies at four times the limit",
      row({ runs: 12, progress: 4 }),
      5,
      200_000,
      { do: "dead", stalled: 0 },
    ],
    ["and not before", row({ runs: 11, progress: 4 }), 5, 200_000, { do: "run", stalled: 0 }],
  ])("%s", (_name, one, reached, now, plan) => {
    expect(planClaim(one, reached, now, settings, 0.5)).toMatchObject(plan);
  });

  test("waits longer each time between crashes, and not at all for a time that it has waited", () => {
    const many = settingsOf({ inbox: { maxAttempts: 50, minAgeMs: 0 } }).inbox;
    const waits = [2, 3, 4, 20].map((stalled) =>
      planClaim(row({ runs: stalled, stalled: stalled - 1 }), 0, 0, many, 0),
    );
    expect(waits).toEqual([500, 1_000, 2_000, 30_000].map((until) => ({ do: "wait", until })));
    expect(planClaim(row({ runs: 4, stalled: 3, due_at: 900 }), 0, 1_000, many, 0)).toEqual({
      do: "run",
      stalled: 4,
    });
  });
});
