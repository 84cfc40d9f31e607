/**
 * What a run keeps besides its steps: where it waits, what came, and what it must not do twice. JSON.
 *
 * @module
 */
import type { Json } from "../channels/content.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { WireError } from "../channels/wireError.ts";
import type { FlowRow } from "../journal/FlowTable.ts";

/** Kinds of waits. */
export type WaitKind = "ask" | "waitFor" | "sleep";

/** The wait that a run is at. */
export interface WaitRecord {
  /** Its place: 0 for the first wait of the run. */
  n: number;
  kind: WaitKind;
  /** What is waited for, in words that a change of texts does not change. */
  name: string;
}

/** What ended a wait. */
export interface Resolution {
  k: WaitKind;
  n: string;
  /** When it came: epoch milliseconds. */
  at: number;
  /** Which alternative, where there are several. */
  key?: string;
  /** An event. */
  event?: InboundEvent;
  /** What a hook brought, and which. */
  payload?: unknown;
  hook?: number;
  /** Its time ran out. */
  timeout?: true;
}

/** What an answer is worth, or why it does not fit. */
export type Judgement = { value: unknown } | { reason: string };

/** What a run remembers from turn to turn. */
export interface RunMemory {
  /** What it did before each wait: sorted, so that parallel work may end in any order. */
  path: string[];
  /** Rows of its sends by slot: `[turn, pos]`. */
  sends: Record<string, [turn: number, pos: number]>;
  /** What answers were worth, by their waits: texts of choices and schemas may change. */
  judged: Record<string, Judgement>;
  /** Errors of sends that were never recorded, by slot. */
  unsent: Record<string, WireError>;
  /** How often each key of the chat's state was written and committed. */
  written: Record<string, number>;
  /** What each key was when the run first read it: JSON text, or null. */
  read: Record<string, string | null>;
}

/** A run before it did anything. */
export function newMemory(): RunMemory {
  return { path: [], sends: {}, judged: {}, unsent: {}, written: {}, read: {} };
}

/** The memory of a run. @throws when the record is damaged */
export function memoryOf(row: FlowRow): RunMemory {
  return { ...newMemory(), ...(JSON.parse(row.memory) as Partial<RunMemory>) };
}

/** The sends of a run; none where the record is damaged. */
export function sendsOf(row: FlowRow): [turn: number, pos: number][] {
  try {
    return Object.values(memoryOf(row).sends);
  } catch {
    return [];
  }
}

/** Stands for a wait whose record is damaged: the run ends at the next event that is for it. */
export const DAMAGED: WaitRecord = { n: -1, kind: "ask", name: "" };

/** The wait of a run; `undefined` while it has not come to its first. */
export function waitOf({ wait }: Pick<FlowRow, "wait">): WaitRecord | undefined {
  if (wait === null) return undefined;
  try {
    return JSON.parse(wait) as WaitRecord;
  } catch {
    return DAMAGED;
  }
}

/** The name under which the end of wait `n` is recorded beside the steps: no step's name begins so. */
export function resolutionName(n: number): string {
  return `~${n}`;
}

/** The name under which a hook's payload is recorded. */
export function hookName(n: number): string {
  return `~hook/${n}`;
}

/** The scope of a run's sends: no turn's own begins so. */
export function runScope(seq: number): string {
  return `@${seq.toString(36)}`;
}

/** Whether a send belongs to a run: what it said once is not said otherwise. */
export function isRunSlot(slot: string): boolean {
  return slot.startsWith("@");
}

/** The event types by which runs go on, of kind `timer`. */
export const WAKES = { start: "flow.start", timeout: "flow.timeout", hook: "flow.hook" } as const;

/** What such an event says. */
export interface Wake {
  run: string;
  /** The wait whose time is over. */
  wait?: number;
  /** The hook that was called, and with what. */
  hook?: number;
  payload?: unknown;
}

/** The code of a flow no longer does what it did in a run. */
export class CodeChanged extends Error {
  override readonly name: string = "CodeChanged";
}

/** What JSON keeps of a value. */
export function jsonOf(value: unknown): string | null {
  const text = JSON.stringify(value) as string | undefined;
  return text ?? null;
}

/** A value that a flow was started with, or gave. */
export function valueFrom(text: string | null): Json | undefined {
  return text === null ? undefined : (JSON.parse(text) as Json);
}
