/** What the parts of the benchmark have in common. @module */
import { setTimeout as delay } from "node:timers/promises";
import type { Platform } from "./Platform.ts";
import type { Served, Side } from "./Served.ts";
import { median } from "./stats.ts";

/** What a section runs with. */
export interface Bench {
  /** Smaller and fewer: shows that it works, and no figure to quote. */
  quick: boolean;
  /** Measured rounds; one more before them warms up. */
  rounds: number;
  platform: Platform;
  /** Progress. */
  say(text: string): void;
}

/** A figure beside its baseline. */
export interface Line {
  what: string;
  unit: string;
  /** One value for each round. */
  holdfast: readonly number[];
  baseline: readonly number[];
  /** The most, or the least, that the ratio may be. Left out: for information. */
  budget?: { most: number } | { least: number };
}

/** A table of the report. */
export interface Table {
  title: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

/** What a section found. */
export interface Result {
  title: string;
  /** How it was measured, for whoever judges whether it is fair. */
  how: string;
  lines: readonly Line[];
  tables?: readonly Table[];
}

/** A part of the benchmark. */
export interface Section {
  name: string;
  run(bench: Bench): Promise<Result>;
}

/** The ratio of a line: the median over the rounds of Holdfast's value to the baseline's of the same round. */
export function ratioOf(line: Line): number {
  return median(ratiosOf(line));
}

/** The ratio of each round. */
export function ratiosOf({ holdfast, baseline }: Line): number[] {
  return holdfast.map((value, at) => value / (baseline[at] ?? Number.NaN));
}

/** Whether a line keeps its budget; `undefined` where it has none. A figure that is none breaks it. */
export function keepsBudget(line: Line): boolean | undefined {
  if (line.budget === undefined) return undefined;
  const ratio = ratioOf(line);
  return "most" in line.budget ? ratio <= line.budget.most : ratio >= line.budget.least;
}

/** Measures both sides in turn, A B A B, after one round that warms up and is dropped. */
export async function inTurn<T>(
  bench: Bench,
  what: string,
  measure: (side: Side, round: number) => Promise<T>,
): Promise<Record<Side, T[]>> {
  const values: Record<Side, T[]> = { holdfast: [], bare: [] };
  for (let round = 0; round <= bench.rounds; round += 1) {
    bench.say(round === 0 ? `${what}: warming up` : `${what}: round ${round} of ${bench.rounds}`);
    for (const side of ["holdfast", "bare"] as const) {
      const value = await measure(side, round);
      if (round > 0) values[side].push(value);
    }
  }
  return values;
}

/** Between two looks at a process, in ms: more than its clock's tick of 10. */
const LOOK_MS = 30;
/** The longest that a process is waited for, in ms. */
const BUSY_MS = 3_000;

/** Waits until a process uses no processor time, so that what it left over costs the next one nothing. */
export async function quiet(served: Served): Promise<void> {
  const deadline = performance.now() + BUSY_MS;
  let last = served.cpuMs();
  do {
    await delay(LOOK_MS);
    const now = served.cpuMs();
    if (!(now > last)) return;
    last = now;
  } while (performance.now() < deadline);
}
