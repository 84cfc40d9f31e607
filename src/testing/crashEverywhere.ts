/**
 * Runs a scenario once to learn every labelled step it passes, then once more for each of them with the
 * process killed exactly there.
 *
 * @module
 */
import type { ProbeSide } from "../host/Host.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { TestBot, type TestBotOptions } from "./TestBot.ts";

/** What to run. */
export interface CrashScenario {
  /** Makes the bot: afresh for each run, so that nothing leaks between them. */
  bot: () => BotRuntime;
  /** What the users do. */
  run: (t: TestBot) => Promise<void>;
  options?: TestBotOptions | undefined;
}

/** Where a run was killed; absent for the run without a crash. */
export interface CrashPoint {
  label: string;
  side: ProbeSide;
  /** Which time the label was reached. */
  nth: number;
}

/** What was run. */
export interface CrashReport {
  /** Every point that was tried. */
  points: CrashPoint[];
}

/** Enough for any bot test, and an end for a scenario that never stops. */
const MAX_POINTS = 5_000;

/**
 * Kills the process at every labelled step of a scenario, one run each, lets the bot recover without
 * further traffic, and calls `assert` after every run.
 *
 * @throws the first failure of `assert`, with the crash point in its message
 */
export async function crashEverywhere(
  scenario: CrashScenario,
  assert: (t: TestBot, point?: CrashPoint) => void | Promise<void>,
): Promise<CrashReport> {
  const seen: CrashPoint[] = [];
  await once(scenario, assert, undefined, (point) => seen.push(point));
  if (seen.length > MAX_POINTS)
    throw new Error(`the scenario passes ${seen.length} points; ${MAX_POINTS} are allowed`);
  for (const point of seen) await once(scenario, assert, point, () => {});
  return { points: seen };
}

async function once(
  scenario: CrashScenario,
  assert: (t: TestBot, point?: CrashPoint) => void | Promise<void>,
  point: CrashPoint | undefined,
  see: (point: CrashPoint) => void,
): Promise<void> {
  const t = new TestBot(scenario.bot(), scenario.options);
  const counts = new Map<string, number>();
  t.runtime.onProbe = ({ kind, label, side }) => {
    if (kind !== "ChatActor") return false;
    const key = `${label} ${side}`;
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    see({ label, side, nth });
    return point !== undefined && point.label === label && point.side === side && point.nth === nth;
  };
  try {
    await scenario.run(t);
    await t.idle();
    await assert(t, point);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const where =
      point === undefined
        ? "without a crash"
        : `killed ${point.side} "${point.label}" (time ${point.nth})`;
    const { message } = error;
    error.message = `${where}: ${message}`;
    // Runners print the stack, which was made with the message as it was.
    if (error.stack !== undefined) error.stack = error.stack.replace(message, error.message);
    throw error;
  } finally {
    t.close();
  }
}
