/** Days and times as people type them, all in UTC. @module */
import type { StandardSchema } from "holdfast";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Makes a schema of a function that reads a text, or gives `undefined` for what it cannot read. */
function reads<T>(read: (text: string) => T | undefined, complaint: string): StandardSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "reminders",
      validate: (value) => {
        const result = typeof value === "string" ? read(value.trim().toLowerCase()) : undefined;
        return result === undefined ? { issues: [{ message: complaint }] } : { value: result };
      },
    },
  };
}

/** The start of the day that `at` is in. Both are epoch milliseconds. */
export function dayOf(at: number): number {
  return at - (at % DAY_MS);
}

/** Reads `today`, `tomorrow` or `2026-03-14`, from today on. Gives the start of that day. */
export function daySchema(now: number): StandardSchema<number> {
  const today = dayOf(now);
  const read = (text: string): number | undefined => {
    if (text === "today") return today;
    if (text === "tomorrow") return today + DAY_MS;
    if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
    const day = Date.parse(`${text}T00:00:00Z`);
    // Some engines roll 30 February over into March.
    const exists = Number.isFinite(day) && new Date(day).toISOString().startsWith(text);
    return exists && day >= today ? day : undefined;
  };
  return reads(read, "Please say today, tomorrow, or a day to come such as 2026-03-14.");
}

/** Reads `9:30` as a moment of that day, after `now`. */
export function timeSchema(day: number, now: number): StandardSchema<number> {
  const read = (text: string): number | undefined => {
    const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
    if (hour === undefined || minute === undefined) return undefined;
    const at = day + Number(hour) * HOUR_MS + Number(minute) * 60_000;
    return at > now ? at : undefined;
  };
  return reads(read, "Please say a time to come such as 9:30.");
}

/** `2026-03-14 09:30`. */
export function shown(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace("T", " ");
}
