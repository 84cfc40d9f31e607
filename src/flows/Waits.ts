/**
 * The waits of one execution: each is answered from the record, or by what arrived, or is where the run stops.
 * What the function did on the way is compared with what it did before.
 *
 * @module
 */
import { ConfigError, FlowTimeoutError } from "../channels/errors.ts";
import type { FlowRow } from "../journal/FlowTable.ts";
import type { Candidate } from "./alternatives.ts";
import {
  CodeChanged,
  DAMAGED,
  hookName,
  type Resolution,
  type RunMemory,
  resolutionName,
  type WaitKind,
  type WaitRecord,
  waitOf,
} from "./records.ts";

/** What may end the wait that a run is at. */
export type Arrival =
  | { kind: "event"; candidate: Candidate; at: number }
  | { kind: "timeout"; wait: number; at: number }
  | { kind: "hook"; hook: number; payload: unknown; at: number };

/** How an execution ended. */
export type Ending =
  /** At a wait; `taken`: the arrival was what it waited for. */
  | { end: "waits"; wait: WaitRecord; dueAt: number | undefined; taken: boolean }
  | { end: "done"; result: unknown }
  | { end: "failed"; error: unknown }
  | { end: "changed"; why: string };

/** One wait, as the function comes to it. */
export interface Waiting {
  kind: WaitKind;
  name: string;
  /** When it ends by time, as {@link Waits.now} counts. */
  dueAt: number | undefined;
  /** What it takes of an event. */
  accept?(candidate: Candidate): Pick<Resolution, "key" | "event"> | undefined;
  /** The hooks that end it. */
  hooks?: readonly { key: string; n: number }[] | undefined;
}

/** What the waits of an execution stand on. */
export interface WaitParts {
  /** The recorded end of a wait, or what a hook brought, as JSON text. */
  read(name: string): string | undefined;
  /** Whether a step runs. */
  inStep(): boolean;
  /** Ends the execution. */
  suspend(ending: Ending): void;
}

/** The waits of one execution. */
export class Waits {
  /** Those that ended in it, for the commit. */
  readonly ended: { n: number; resolution: Resolution }[] = [];
  /** What was done before each, for the next execution. */
  readonly path: string[];
  /** How many the function has come to. */
  count = 0;
  /** When what continued the run arrived. */
  now: number;
  /** The function stopped at one. */
  open = false;
  /** The function left one behind, or began two. */
  misuse: ConfigError | undefined;
  readonly #parts: WaitParts;
  readonly #before: readonly string[];
  readonly #at: WaitRecord | undefined;
  #arrival: Arrival | undefined;
  /** Hooks whose call ended a wait: it ends no other. */
  readonly #usedHooks = new Set<number>();
  /** What was done since the last wait. */
  #did: string[] = [];

  constructor(
    parts: WaitParts,
    row: FlowRow,
    { path }: Pick<RunMemory, "path">,
    arrival: Arrival | undefined,
  ) {
    this.#parts = parts;
    this.#before = path;
    this.path = [...path];
    this.#at = waitOf(row);
    if (this.#at === DAMAGED) throw new Error("the record of its wait is damaged");
    this.#arrival = arrival;
    this.now = row.started_at;
  }

  /** Whether everything that is done now was done before: nothing new may happen yet. */
  get replaying(): boolean {
    return this.#at !== undefined && this.count <= this.#at.n;
  }

  /** The function is over before it came to where the run is. */
  tooEarly(): Ending | undefined {
    const why = `it ends before wait ${(this.#at?.n ?? 0) + 1}, where this run is`;
    return this.replaying ? { end: "changed", why } : undefined;
  }

  /** Notes what the function does; what a step does is the step's, which is answered from its record. */
  note(what: string): void {
    if (!this.#parts.inStep()) this.#did.push(what);
  }

  /** Ends the execution: whatever the function makes of the error, this is other code. */
  changed(why: string): CodeChanged {
    this.#parts.suspend({ end: "changed", why });
    return new CodeChanged(why);
  }

  /** What is wrong with a wait that the function does not wait for. */
  left(): ConfigError {
    this.misuse ??= new ConfigError(
      "a flow waits for one thing at a time, and awaits it: give `waitFor` several alternatives, or a `timeout`",
    );
    return this.misuse;
  }

  /**
   * Comes to a wait: answers from the record, tries what arrived, or stops here for now.
   * @throws {FlowTimeoutError} when its time ran out, unless time is what it waits for
   */
  async come(wait: Waiting): Promise<Resolution> {
    const { kind, name, dueAt } = wait;
    if (this.#parts.inStep()) throw new ConfigError("a wait inside a step: do it beside the step");
    if (this.open) throw this.left();
    const n = this.count;
    this.#compare(n, `${kind} ${name}`);
    this.count += 1;
    this.#did = [];
    const known = this.#parts.read(resolutionName(n));
    const found = known === undefined ? this.#try(n, wait) : (JSON.parse(known) as Resolution);
    if (found === undefined) {
      this.open = true;
      const taken = this.ended.length > 0;
      // Some of what runs beside this may still be on its way; it is waited for by whoever executes.
      this.#parts.suspend({ end: "waits", wait: { n, kind, name }, dueAt, taken });
      return new Promise<never>(() => {});
    }
    this.now = Math.max(this.now, found.at);
    if (found.hook !== undefined) this.#usedHooks.add(found.hook);
    if (found.timeout === true && kind !== "sleep")
      throw new FlowTimeoutError(`no answer came in time (${kind} ${name})`);
    return found;
  }

  /** What ends wait `n`, if that is here; a called hook first, which may have come long before. */
  #try(n: number, { kind, name, accept, hooks = [] }: Waiting): Resolution | undefined {
    const arrival = this.#arrival;
    const resolved = (more: Partial<Resolution> | undefined): Resolution | undefined => {
      if (more === undefined) return undefined;
      const resolution = { k: kind, n: name, at: arrival?.at ?? this.now, ...more };
      this.ended.push({ n, resolution });
      return resolution;
    };
    for (const { key, n: hook } of hooks) {
      const called = this.#parts.read(hookName(hook));
      if (called !== undefined && !this.#usedHooks.has(hook))
        return resolved({ key, hook, payload: JSON.parse(called) });
    }
    const found = resolved(arrival && brought(arrival, n, accept, hooks));
    if (found !== undefined) this.#arrival = undefined;
    return found;
  }

  /** Compares what was done up to wait `n` with what the record says was done. @throws {CodeChanged} */
  #compare(n: number, wait: string): void {
    const here = [...this.#did].sort().concat(wait).join(" | ");
    const before = this.#before[n];
    this.path[n] = here;
    if (before !== undefined && before !== here)
      throw this.changed(`at wait ${n + 1} it did [${here}], and before it did [${before}]`);
  }
}

/** What an arrival brings to wait `n`, if it is for it. */
function brought(
  arrival: Arrival,
  n: number,
  accept: Waiting["accept"],
  hooks: readonly { key: string; n: number }[],
): Partial<Resolution> | undefined {
  if (arrival.kind === "timeout") return arrival.wait === n ? { timeout: true } : undefined;
  if (arrival.kind === "event") return accept?.(arrival.candidate);
  const { hook, payload } = arrival;
  const mine = hooks.find((one) => one.n === hook);
  return mine && { key: mine.key, hook, payload };
}
