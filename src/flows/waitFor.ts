/** Waits for the first of several things. @module */
import { ConfigError } from "../channels/errors.ts";
import type { Duration } from "../time/duration.ts";
import { answerOf, type Candidate, isHook, nameOf, take } from "./alternatives.ts";
import type { Resolution } from "./records.ts";
import type { Alternative, Hook } from "./types.ts";

/** What a wait needs of its run. */
export interface WaitIo {
  /** That much after what continued the run: epoch milliseconds. */
  later(duration: Duration): number;
  /** @throws {FlowTimeoutError} at `dueAt` */
  wait(
    name: string,
    dueAt: number | undefined,
    accept: (candidate: Candidate) => Pick<Resolution, "key" | "event"> | undefined,
    hooks?: readonly { key: string; n: number }[],
  ): Promise<Resolution>;
}

/** A hook with its place among the hooks of its run. */
export interface NumberedHook extends Hook {
  readonly number: number;
}

/** The first of several alternatives that comes, and what it brought. */
export async function waitForAny(
  io: WaitIo,
  alternatives: Record<string, Alternative>,
  timeout: Duration | undefined,
): Promise<{ key: string; value: unknown }> {
  const entries = Object.entries(alternatives);
  if (entries.length === 0) throw new ConfigError("waitFor needs at least one alternative");
  const name = entries.map(([key, one]) => nameOf(key, one)).join(", ");
  const dueAt = timeout === undefined ? undefined : io.later(timeout);
  const hooks = entries.flatMap(([key, one]) =>
    isHook(one) ? [{ key, n: (one as NumberedHook).number }] : [],
  );
  const first = (candidate: Candidate): Pick<Resolution, "key" | "event"> | undefined => {
    const { event } = candidate.ctx;
    for (const [key, one] of entries) {
      const taken = take(one, candidate);
      if (taken === undefined) continue;
      return { key, event: bringsData(one) ? { ...event, data: taken.value } : event };
    }
    return undefined;
  };
  const { key = "", event, payload } = await io.wait(name, dueAt, first, hooks);
  const one = alternatives[key];
  if (isHook(one)) return { key, value: payload };
  return { key, value: bringsData(one) ? event?.data : event && answerOf({ event }) };
}

/** Actions and external events bring data, messages bring themselves. */
function bringsData(one: Alternative | undefined): boolean {
  return typeof one === "string" || (typeof one === "object" && "button" in one);
}
