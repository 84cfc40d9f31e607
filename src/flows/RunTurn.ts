/**
 * A run inside a turn: its sends are the turn's, in slots of their own; its steps and its state are the run's.
 *
 * @module
 */

import { TurnEndedError } from "../channels/errors.ts";
import type { FlowRow } from "../journal/FlowTable.ts";
import type { Core } from "../objects/Core.ts";
import { isPreviewSlot } from "../outbox/keys.ts";
import { errorText, redact } from "../safety/redact.ts";
import { Steps } from "../turns/Steps.ts";
import type { Turn } from "../turns/Turn.ts";
import { type ContextParts, TurnContext } from "../turns/TurnContext.ts";
import { TurnState } from "../turns/TurnState.ts";
import { refuseTooLarge } from "../turns/tooLarge.ts";
import { Run } from "./Run.ts";
import {
  hookName,
  isRunSlot,
  jsonOf,
  memoryOf,
  type RunMemory,
  resolutionName,
  runScope,
  valueFrom,
} from "./records.ts";
import type { FlowFunction } from "./types.ts";
import type { Arrival, Ending } from "./Waits.ts";

/** What runs stand on. */
export type RunTurnParts = ContextParts;

/** One execution of a run in one turn. */
export class RunTurn {
  readonly #turn: Turn;
  readonly #row: FlowRow;
  readonly #arrival: Arrival | undefined;
  readonly #run: Run;
  readonly #state: TurnState;
  /** Of its sends. */
  readonly #slots: string[] = [];

  constructor(parts: RunTurnParts, turn: Turn, row: FlowRow, arrival: Arrival | undefined) {
    const { core } = parts;
    const { journal } = core;
    this.#turn = turn;
    this.#row = row;
    this.#arrival = arrival;
    const { sends } = turn;
    const { sends: earlier, unsent } = memoryOf(row);
    // Several runs may be offered one event.
    const base = runScope(row.seq);
    sends.earlier = (slot) => {
      // What a stream had said when its source failed is on record, and its failure is what it came to.
      const place = unsent[slot] === undefined ? earlier[slot] : undefined;
      return place && journal.outbox.get(...place);
    };
    const record = (more: Iterable<[path: string, result: string]> = []) => {
      const { steps: failed } = this.#run.failures;
      const all = [...failed, ...more];
      if (all.length === 0) return;
      if (sends.closed) throw new TurnEndedError("the turn ended while this step ran");
      journal.commit("turn.step", () => this.#recordSteps(all, core));
      failed.clear();
    };
    const state: TurnState = new TurnState(
      (scope, key) => {
        const read = () => journal.side.readState(scope, key);
        return scope === "" ? this.#run.chatState.pinned(key, read) : read();
      },
      () => steps.recorder(),
      (write, by) => this.#run.chatState.noteWrite(write, by),
    );
    const steps: Steps = new Steps(
      {
        read: (path) => {
          const known = journal.side.step(row.seq, path);
          if (known === undefined) this.#run.newStep(path);
          return known;
        },
        record: (path, result) => record([[path, result]]),
        fail: (path, error, rest) => this.#run.failStep(path, error, rest),
      },
      state,
      (slots, settled) => turn.adopt(slots, settled),
      base,
    );
    this.#state = state;
    const { onUse, onSettled } = sends;
    sends.onUse = (slot) => {
      onUse(slot);
      steps.noteSend(slot);
      this.#slots.push(slot);
    };
    sends.onSettled = (intent) => {
      onSettled(intent);
      steps.noteSettled(intent);
    };
    sends.onNew = (slot) => {
      if (isRunSlot(slot)) this.#run.newSend(slot);
    };
    const ctx = new TurnContext(parts, turn.inside(steps, state));
    this.#run = new Run(
      {
        core,
        row,
        ctx,
        read: (name) => journal.side.step(row.seq, name),
        hasButtons: core.channel().capabilities.kinds.includes("buttons"),
        base,
        scope: () => steps.scope(),
        clean: (text) => redact(text, core.host.env),
        recordFailures: () => record(),
        attempt: async (fn) => {
          const writes = steps.recorder() ?? [];
          const before = writes.length;
          try {
            return await fn();
          } catch (error) {
            state.drop(writes.splice(before));
            throw error;
          }
        },
        isRecorded: (slot) => sends.recorded(slot) !== undefined,
        functionOf: (flow) => {
          const found = core.bot.flowOf(flow.name, flow.version)?.run;
          if (found === undefined) throw new Error(`the bot has no flow "${flow.name}"`);
          return found;
        },
      },
      arrival,
    );
  }

  /** Executes the run until it waits, ends or fails, and until nothing that it began is still on its way. */
  async execute(fn: FlowFunction<unknown, unknown, unknown>): Promise<Ending> {
    const { open } = this.#turn.sends;
    const ending = await this.#run.execute(fn, valueFrom(this.#row.input));
    while (open.size > 0) await Promise.all(open);
    if (ending.end === "failed") return ending;
    try {
      // Before the commit, which must not fail for ever.
      if (ending.end === "done")
        refuseTooLarge("the result of a flow", jsonOf(ending.result) ?? "");
      refuseTooLarge("what a run remembers of its waits", JSON.stringify(this.#run.memory));
    } catch (error) {
      return { end: "failed", error };
    }
    this.#turn.sends.kept = new Set(this.#slots);
    return ending;
  }

  #recordSteps(steps: Iterable<[path: string, result: string]>, core: Core): void {
    for (const [path, result] of steps)
      core.journal.side.recordStep(this.#row.seq, path, result, core.now());
  }

  /** Writes what the run came to. Call inside the commit that ends the turn. */
  commit(ending: Ending, core: Core): void {
    const { journal, alarm } = core;
    // Cancelled or replaced while it was executed: it is over.
    if (journal.flows.get(this.#row.id)?.state !== "active") return;
    const run = this.#run;
    const { side } = journal;
    this.#recordSteps(run.failures.steps, core);
    const arrival = this.#arrival;
    if (arrival?.kind === "hook")
      side.recordStep(
        this.#row.seq,
        hookName(arrival.hook),
        jsonOf(arrival.payload) ?? "null",
        arrival.at,
      );
    for (const { n, resolution } of run.waits.ended) {
      side.recordStep(this.#row.seq, resolutionName(n), JSON.stringify(resolution), resolution.at);
    }
    const memory: RunMemory = { ...run.memory, sends: { ...run.memory.sends } };
    for (const row of journal.outbox.ofTurn(this.#turn.row.seq)) {
      // Those with keys of their own, too: their rows must outlive the retention of their turn.
      const named = isRunSlot(row.slot) || row.slot.startsWith("=");
      if (row.part === 0 && named && !isPreviewSlot(row.slot))
        memory.sends[row.slot] = [row.turn, row.pos];
    }
    const failed = ending.end === "failed";
    // What middleware threw afterwards is the turn's failure and not the run's, which said it all.
    if (!failed) side.writeState(run.chatState.fresh(this.#state.writes()));
    const now = core.now();
    const over = ending.end !== "waits";
    journal.flows.update(this.#row, {
      memory: JSON.stringify(memory),
      ...(ending.end === "waits"
        ? { wait: JSON.stringify(ending.wait), due_at: ending.dueAt ?? null }
        : { due_at: null, finished_at: now, state: failed ? "failed" : "done" }),
      ...(ending.end === "done" ? { result: jsonOf(ending.result) } : {}),
      ...(ending.end === "failed" ? { error: errorText(ending.error, core.host.env) } : {}),
    });
    if (over || ending.dueAt === undefined) return;
    alarm.arm(ending.dueAt);
    // The sweep must know of it, should the alarm be lost.
    core.onTrouble();
  }
}
