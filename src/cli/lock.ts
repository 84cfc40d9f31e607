/**
 * Who runs on a state folder: two runtimes on the same databases would corrupt them. The note lies
 * beside the folder, so that clearing the state leaves it alone.
 *
 * @module
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { accepts } from "./ports.ts";

/** One run. */
export interface Run {
  /** The process of `npm start`. */
  pid: number;
  /** The process group of its runtime. */
  group?: number;
  port: number;
  /** Epoch milliseconds. */
  startedAt: number;
}

/** A run that has no open port yet may still be starting for this long, in ms. */
const STARTING_MS = 60_000;
/** How long a runtime whose `npm start` was killed is given to go, in ms. */
const DYING_MS = 5_000;

function fileOf(state: string): string {
  return `${state}.run.json`;
}

/** Notes that this process runs on a state folder. */
export function writeRun(state: string, run: Run): void {
  mkdirSync(dirname(state), { recursive: true });
  writeFileSync(fileOf(state), `${JSON.stringify(run)}\n`);
}

/** The run is over. */
export function removeRun(state: string): void {
  rmSync(fileOf(state), { force: true });
}

/**
 * The run that uses a state folder now. A note whose process is gone is none, as soon as its runtime is
 * gone as well.
 */
export async function currentRun(state: string): Promise<Run | undefined> {
  const run = readRun(state);
  if (run === undefined || run.pid === process.pid) return undefined;
  if (exists(run.pid)) {
    // Process ids come again; the port tells whether it is still that process.
    const starting = Date.now() - run.startedAt < STARTING_MS;
    return starting || (await accepts(run.port)) ? run : undefined;
  }
  const deadline = Date.now() + DYING_MS;
  while (run.group !== undefined && exists(-run.group) && (await accepts(run.port))) {
    if (Date.now() > deadline) return run;
    await delay(50);
  }
  return undefined;
}

function readRun(state: string): Run | undefined {
  try {
    const run = JSON.parse(readFileSync(fileOf(state), "utf8")) as Partial<Run>;
    if (typeof run.pid !== "number" || typeof run.port !== "number") return undefined;
    return { startedAt: 0, ...run, pid: run.pid, port: run.port };
  } catch {
    return undefined;
  }
}

/** Whether a process exists, or a process group where the number is negative. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
