/**
 * Whether an event may run once more. An event that keeps killing the process must end, or its chat
 * never goes on; an event that was merely there when neighbours crashed or a deploy rolled must not.
 * So starts count only when they reached nothing new, deaths wait for a minimum age, and replays
 * spread out.
 *
 * @module
 */
import type { InboxRow } from "../journal/records.ts";
import { backoffMs } from "../time/backoff.ts";
import type { Settings } from "./options.ts";

/** What to do with an event at its next claim. */
export type ClaimPlan =
  | { do: "run"; stalled: number }
  | { do: "wait"; until: number }
  | { do: "dead"; stalled: number; why: string };

/** Starts that are allowed in all, as a multiple of `maxAttempts`, however much progress each makes. */
const RUNS_FACTOR = 4;

/**
 * Plans the next claim of an event.
 *
 * @param reached how many ordinals and steps are recorded now: beyond `row.progress`, the last start got further
 */
export function planClaim(
  row: Pick<InboxRow, "state" | "runs" | "stalled" | "progress" | "due_at" | "received_at">,
  reached: number,
  now: number,
  settings: Settings["inbox"],
  random: number,
): ClaimPlan {
  // An operator's replay starts the count anew, and at once.
  if (row.runs === 0 || row.progress < 0) return { do: "run", stalled: 0 };
  const stalled = reached > row.progress ? row.stalled : row.stalled + 1;
  const { maxAttempts, minAgeMs, backoff } = settings;
  const matureAt = row.received_at + minAgeMs;
  const spent = stalled >= maxAttempts || row.runs >= RUNS_FACTOR * maxAttempts;
  if (spent && now >= matureAt) {
    return {
      do: "dead",
      stalled,
      why: `it started ${row.runs} times, ${stalled} of them without getting further`,
    };
  }
  // A due time that has passed is a wait that was already served.
  const waited = row.due_at !== null && row.due_at <= now;
  const last = stalled + 1 >= maxAttempts || row.runs + 1 >= RUNS_FACTOR * maxAttempts;
  if (last && now < matureAt) {
    return { do: "wait", until: matureAt + Math.ceil(random * backoff.baseMs) };
  }
  if (row.state === "processing" && stalled > 1 && !waited) {
    return { do: "wait", until: now + backoffMs(backoff, stalled - 1, random) };
  }
  return { do: "run", stalled };
}
