/**
 * Durations as people write them: `"15s"`, `"10m"`, `"7d"`, or milliseconds.
 *
 * @module
 */

/** Milliseconds, or a number with a unit: `ms`, `s`, `m`, `h`, `d`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration into milliseconds; `undefined` when it is not one, or negative. */
export function parseDuration(value: unknown): number | undefined {
  // Whole milliseconds: times are integers in the journal, and 4.1 minutes are not quite.
  if (typeof value === "number") {
    return Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;
  }
  if (typeof value !== "string") return undefined;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value);
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return unit === undefined ? undefined : Math.round(Number(match?.[1]) * unit);
}

/** What is said of a value that is not one. */
export function notADuration(value: unknown): string {
  return `"${String(value)}" is not a duration such as "90s", "10m" or "24h"`;
}
