/**
 * When a message reached which step. The runtime's clock ticks in whole milliseconds, so one message tells
 * little; the mean over many, which begin at any moment of a tick, is exact to a few hundredths.
 *
 * @module
 */
import { DurableHost } from "../../src/objects/DurableHost.ts";

/** Sums over the messages since the last {@link takeMarks}. */
export interface Mark {
  /** Milliseconds since the message came in, summed. */
  sum: number;
  count: number;
}

/** The step at which a message comes in: the others count from there. */
export const ORIGIN = "edge in";
/** Beside the steps: the sum of the epoch milliseconds at which messages came in. */
const EPOCH = "origin";

let origin = 0;
let settles = 0;
let marks = new Map<string, Mark>();

/** Notes that the message under way reached a step. */
export function mark(name: string): void {
  const now = Date.now();
  if (name === ORIGIN) {
    origin = now;
    add(EPOCH, now);
  }
  add(name, now - origin);
  if (name === "turn.settle after") settles += 1;
}

function add(name: string, ms: number): void {
  const known = marks.get(name);
  if (known === undefined) marks.set(name, { sum: ms, count: 1 });
  else {
    known.sum += ms;
    known.count += 1;
  }
}

/** How many turns have settled in this process. */
export function settled(): number {
  return settles;
}

/** The marks since the last call. */
export function takeMarks(): Record<string, Mark> {
  const taken = Object.fromEntries(marks);
  marks = new Map();
  return taken;
}

/** Lets every labelled step of every actor of this process be marked. */
export function markProbes(): void {
  const probe = DurableHost.prototype.probe;
  DurableHost.prototype.probe = function (this: DurableHost, label, side) {
    mark(`${label} ${side}`);
    probe.call(this, label, side);
  };
}
