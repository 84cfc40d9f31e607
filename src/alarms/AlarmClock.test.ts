import { describe, expect, test } from "vitest";
import type { Host } from "../host/Host.ts";
import { AlarmClock } from "./AlarmClock.ts";

/** An alarm clock whose writes are noted. Time is `now.at`. */
function clock(wanted?: number) {
  const now = { at: 100_000 };
  const set: number[] = [];
  const host = {
    clock: { now: () => now.at },
    setAlarm: (at: number) => void set.push(at),
    transaction: <T>(_label: string, fn: () => T) => fn(),
  } as unknown as Host;
  return { now, set, alarm: new AlarmClock(host, () => wanted) };
}

describe("the alarm", () => {
  test("is written once for many wishes, and again only for an earlier one", () => {
    const { set, alarm } = clock();
    for (const at of [200_000, 250_000, 200_000, 150_000, 160_000]) {
      alarm.commit("rows", () => alarm.arm(at));
    }
    expect(set).toEqual([200_000, 150_000]);
  });

  test("of a cold actor is set to what its rows want, if that is earlier: the copy is not known", () => {
    const { set, alarm } = clock(120_000);
    alarm.arm(200_000);
    expect(set).toEqual([120_000]);
  });

  test("never comes sooner than 10 ms from now, so that no bug makes it spin", () => {
    const { set, alarm } = clock();
    alarm.arm(0);
    expect(set).toEqual([100_010]);
  });

  test("that was rolled back with its rows is set again", () => {
    const { set, alarm } = clock();
    alarm.commit("rows", () => alarm.arm(200_000));
    const full = () =>
      alarm.commit("rows", () => {
        alarm.arm(150_000);
        throw new Error("the disk is full");
      });
    expect(full).toThrow("full");
    alarm.arm(150_000);
    expect(set).toEqual([200_000, 150_000, 150_000]);
  });

  test("that should have come more than five seconds ago is taken for lost", () => {
    const { now, set, alarm } = clock();
    alarm.commit("rows", () => alarm.arm(110_000));
    now.at = 114_000;
    alarm.arm(200_000);
    expect(set).toHaveLength(1);
    now.at = 115_001;
    expect(alarm.isLaterThan(200_000)).toBe(true);
    alarm.arm(200_000);
    expect(set).toEqual([110_000, 200_000]);
  });

  test("that has fired, or went with the storage, is set anew", () => {
    const { set, alarm } = clock();
    alarm.commit("rows", () => alarm.arm(200_000));
    alarm.fired();
    expect(alarm.isLaterThan(300_000)).toBe(true);
    alarm.commit("rows", () => alarm.arm(300_000));
    alarm.reset();
    alarm.arm(400_000);
    expect(set).toEqual([200_000, 300_000, 400_000]);
  });
});
