import { describe, expect, test } from "vitest";
import { minutesDue, parseCron } from "./cron.ts";

/** Times of an expression within some days, as text. */
function times(expression: string, from: string, days = 1): string[] {
  const start = Date.parse(from);
  return minutesDue(parseCron(expression), start - 1, start + days * 86_400_000 - 1).map((at) =>
    new Date(at).toISOString().slice(0, 16),
  );
}

describe("an expression", () => {
  test.each([
    ["0 8 * * *", ["2026-01-05T08:00"]],
    ["30 8,20 * * *", ["2026-01-05T08:30", "2026-01-05T20:30"]],
    [
      "0 */6 * * *",
      ["2026-01-05T00:00", "2026-01-05T06:00", "2026-01-05T12:00", "2026-01-05T18:00"],
    ],
    ["15 9-11 * * *", ["2026-01-05T09:15", "2026-01-05T10:15", "2026-01-05T11:15"]],
    ["0 0-20/10 * * *", ["2026-01-05T00:00", "2026-01-05T10:00", "2026-01-05T20:00"]],
    ["0 8 * * mon", ["2026-01-05T08:00"]],
    ["0 8 * JAN 1-5", ["2026-01-05T08:00"]],
    ["0 8 * 2 *", []],
  ])("%s names these minutes of a Monday in January", (expression, wanted) => {
    expect(times(expression, "2026-01-05T00:00Z")).toEqual(wanted);
  });

  test.each(["0", "7", "sun"])("has Sunday as %s", (day) => {
    expect(times(`0 8 * * ${day}`, "2026-01-01T00:00Z", 7)).toEqual(["2026-01-04T08:00"]);
  });

  test.each(["fri-sun", "5-7", "FRI,sat,0"])("may end a range with Sunday: %s", (days) => {
    expect(times(`0 8 * * ${days}`, "2026-01-05T00:00Z", 7)).toEqual([
      "2026-01-09T08:00",
      "2026-01-10T08:00",
      "2026-01-11T08:00",
    ]);
  });

  test("with both kinds of days is met by either", () => {
    expect(times("0 8 13 * 5", "2026-01-10T00:00Z", 7)).toEqual([
      "2026-01-13T08:00",
      "2026-01-16T08:00",
    ]);
  });

  test("is in UTC, wherever the machine is", () => {
    const before = process.env.TZ;
    process.env.TZ = "Asia/Kolkata";
    try {
      expect(new Date(0).getHours()).toBe(5);
      expect(times("0 8 * * *", "2026-01-05T00:00Z")).toEqual(["2026-01-05T08:00"]);
    } finally {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    }
  });

  test("has the 29th of February in leap years only", () => {
    expect(times("0 0 29 2 *", "2027-01-01T00:00Z", 800)).toEqual(["2028-02-29T00:00"]);
  });

  test.each([
    ["", /has 1 field instead/],
    ["* * * *", /4 fields/],
    ["0 0 8 * * *", /6 fields/],
    ["@daily", /has 1 field instead/],
    ["5x * * * *", /"5x"/],
    ["5/10 * * * *", /"5\/10"/],
    ["60 * * * *", /60/],
    ["* 24 * * *", /24/],
    ["* * 0 * *", /0/],
    ["* * * 13 *", /13/],
    ["* * * * 8", /8/],
    ["*/0 * * * *", /0/],
    ["5-1 * * * *", /range/i],
    ["mon * * * *", /mon/],
    ["1, * * * *", /"1,"/],
    ["0 0 31 2,4 *", /no such date/],
  ])("%j is refused", (expression, why) => {
    expect(() => parseCron(expression)).toThrow(why);
  });
});

describe("the minutes between two times", () => {
  test("are those behind the first, up to the second", () => {
    const every = parseCron("* * * * *");
    expect(minutesDue(every, 60_000, 180_000)).toEqual([120_000, 180_000]);
    expect(minutesDue(every, 60_001, 179_999)).toEqual([120_000]);
    expect(minutesDue(every, 60_000, 60_000)).toEqual([]);
  });
});
