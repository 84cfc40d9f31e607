/**
 * The flows of one chat: starts runs, gives them the events that they wait for, wakes them when their time
 * is over, and ends them. A run goes on inside the turn of the event that continues it, and what it comes to
 * is committed with that turn.
 *
 * @module
 */
import { ConfigError, RetryTurn } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { FlowRow, FlowState } from "../journal/FlowTable.ts";
import type { InboxRow } from "../journal/records.ts";
import { isRefusal } from "../journal/refusal.ts";
import type { Core } from "../objects/Core.ts";
import { errorText } from "../safety/redact.ts";
import { eventOf } from "../turns/burst.ts";
import type { Context } from "../turns/Context.ts";
import type { Turn } from "../turns/Turn.ts";
import { refuseTooLarge } from "../turns/tooLarge.ts";
import { RunTurn, type RunTurnParts } from "./RunTurn.ts";
import { CodeChanged, hookName, jsonOf, newMemory, WAKES, type Wake, waitOf } from "./records.ts";
import type { FlowOptions, StartedRun } from "./types.ts";
import type { Arrival, Ending } from "./Waits.ts";
import { insertWake } from "./wakes.ts";

/** Timers that fire in one commit. */
const SLICE = 100;
/** Active runs of one chat that an external event is offered to. */
const MAX_OFFERED = 50;
const DEFAULT_CANCEL = ["/cancel"];
const DEFAULT_CANCELLED = "Cancelled.";

/** How a run is started. */
export interface StartInput {
  flow: string;
  id: string;
  owner: string;
  input?: unknown;
  active?: "replace" | "keep" | undefined;
}

/** What became of a hook's call. `gone`: there is no such run any more. */
export type ResumeAnswer = "accepted" | "duplicate" | "gone";

/** The flows of one actor. */
export class Flows {
  readonly #core: Core;
  readonly #parts: RunTurnParts;
  readonly #kick: () => void;
  /** Tells error listeners of a run that ended outside a failing turn. */
  readonly #announce: (turn: Turn, error: unknown) => Promise<void>;

  constructor(
    parts: RunTurnParts,
    kick: () => void,
    announce: (turn: Turn, error: unknown) => Promise<void>,
  ) {
    this.#core = parts.core;
    this.#parts = parts;
    this.#kick = kick;
    this.#announce = announce;
  }

  /**
   * Records a run; it begins as a turn of its own, behind what waits already.
   * @throws {ConfigError} for a flow that the bot does not have
   */
  start(start: StartInput): StartedRun {
    const { journal, bot } = this.#core;
    const { flow, id } = start;
    const definition = bot.flowOf(flow);
    if (definition === undefined) {
      throw new ConfigError(`the bot has no flow "${flow}"; define it with bot.flow(…)`);
    }
    const input = jsonOf(start.input);
    refuseTooLarge(`the input of flow "${flow}"`, input ?? "");
    const begin = () => this.#begin({ ...start, input }, definition.version);
    const started = journal.commit("flow.start", begin);
    if (started) this.#kick();
    return { id, started };
  }

  /** Records a run and the event that begins it. Call inside a commit. Returns whether it is a new one. */
  #begin(start: StartInput & { input: string | null }, version: number): boolean {
    const { journal, host } = this.#core;
    const { flow, id, owner, input } = start;
    if (journal.flows.get(id) !== undefined) return false;
    const other = journal.flows.activeOf(owner);
    if (other?.owner === owner) {
      if (start.active === "keep") return false;
      this.#end(other, "cancelled", `replaced by ${id}`);
    }
    const now = this.#core.now();
    const seq = journal.nextSeq();
    journal.flows.insert({
      id,
      seq,
      flow,
      version,
      owner,
      state: "active",
      input,
      seed: `${host.uuid()}${host.uuid()}`,
      started_at: now,
      finished_at: null,
      wait: null,
      due_at: null,
      memory: JSON.stringify(newMemory()),
      result: null,
      error: null,
    });
    insertWake(this.#core, WAKES.start, `flow:${id}`, { run: id }, seq);
    return true;
  }

  /** Offers a turn's event to the run that may wait for it. Resolves to whether it was taken. */
  async take(turn: Turn, ctx: Context): Promise<boolean> {
    const { journal, bot } = this.#core;
    if (!journal.hasFlows || turn.sends.unjournaled) return false;
    const { event } = ctx;
    const isCommand = event.kind === "message" && bot.isCommand(ctx.text);
    for (const row of this.#offered(event)) {
      // One that was offered it before may have taken its time.
      if (waitOf(row) === undefined || !this.#isActive(row)) continue;
      const options = bot.flowOf(row.flow, row.version)?.options ?? {};
      if (this.#isCancel(event, options)) {
        // With the turn, so that a crash in between cancels nothing else.
        turn.run = { commit: () => void this.#end(row, "cancelled", `ended by ${ctx.text}`) };
        const { cancelled = DEFAULT_CANCELLED } = options;
        if (cancelled !== null) await ctx.reply(cancelled);
        return true;
      }
      if (isCommand && options.commands === "cancel") {
        journal.commit("flow.end", () => this.#end(row, "cancelled", `ended by ${ctx.text}`));
        return false;
      }
      const arrival: Arrival = {
        kind: "event",
        candidate: { ctx, isCommand },
        at: turn.row.received_at,
      };
      if (await this.#go(turn, row, arrival)) return true;
    }
    return false;
  }

  /** Runs that an event is for: its own; the sender's and the one that takes everybody's messages; or all. */
  #offered({ kind, sender: from, data }: InboundEvent): FlowRow[] {
    const { flows } = this.#core.journal;
    if (kind === "timer") return [flows.get((data as Wake).run)].filter((row) => row !== undefined);
    if (kind === "event") return flows.active(Number.MAX_SAFE_INTEGER, MAX_OFFERED).reverse();
    if (kind !== "message" && kind !== "action") return [];
    const own = flows.activeOf(from?.id ?? "");
    const common = own === undefined || own.owner === "" ? undefined : flows.activeOf("");
    return [own, common].filter((row) => row !== undefined);
  }

  /** A turn of kind `timer`: a run begins, or its wait is over. */
  async wake(turn: Turn, event: InboundEvent): Promise<void> {
    const wake = event.data as Wake;
    const row = this.#core.journal.flows.get(wake.run);
    if (row === undefined || row.state !== "active") {
      // Its caller was told that it counts: somebody has to know that it came too late.
      if (event.type === WAKES.hook)
        throw new Error(`a hook was called, and its run ${wake.run} ended before it was taken`);
      return;
    }
    const wait = waitOf(row);
    const at = turn.row.received_at;
    if (event.type === WAKES.start) {
      if (wait === undefined) await this.#go(turn, row, undefined);
    } else if (event.type === WAKES.timeout) {
      // An answer was faster.
      if (wait === undefined || wait.n !== wake.wait) return;
      await this.#go(turn, row, { kind: "timeout", wait: wait.n, at });
    } else if (event.type === WAKES.hook && wake.hook !== undefined) {
      const { hook, payload = null } = wake;
      await this.#go(turn, row, { kind: "hook", hook, payload, at });
    }
  }

  /** Turns every wait whose time is over into an event, in one commit with taking its time away. */
  fire(): void {
    const { journal } = this.#core;
    const now = this.#core.now();
    if (!journal.hasFlows || journal.flows.due(now, 1).length === 0) return;
    journal.commit("flow.timers", () => {
      for (const row of journal.flows.due(now, SLICE)) {
        journal.flows.update(row, { due_at: null });
        const wait = waitOf(row);
        if (row.state !== "active" || wait === undefined) continue;
        const wake: Wake = { run: row.id, wait: wait.n };
        insertWake(this.#core, WAKES.timeout, `flow:${row.id}:${wait.n}`, wake);
      }
    });
    this.#kick();
  }

  /** A third party called a hook. */
  resume(run: string, hook: number, payload: unknown): ResumeAnswer {
    const { journal } = this.#core;
    const id = `flow:${run}:hook:${hook}`;
    if (!journal.exists()) return "gone";
    if (journal.inbox.byId(id) !== undefined) return "duplicate";
    const row = journal.flows.get(run);
    if (row?.state !== "active") return "gone";
    // The record of the call may be purged, what it brought is kept with its run.
    if (journal.side.step(row.seq, hookName(hook)) !== undefined) return "duplicate";
    refuseTooLarge("the payload of a hook", jsonOf(payload) ?? "");
    journal.commit("flow.hook", () =>
      insertWake(this.#core, WAKES.hook, id, { run, hook, payload }),
    );
    this.#kick();
    return "accepted";
  }

  /** Ends a run, for an operator or another part of the bot. Returns whether it could. */
  cancel(id: string, why = "cancelled by an operator"): boolean {
    const { journal } = this.#core;
    const row = journal.exists() ? journal.flows.get(id) : undefined;
    if (row?.state !== "active") return false;
    return journal.commit("flow.end", () => this.#end(row, "cancelled", why));
  }

  /** An event is given up: the run that it would have continued cannot go on. Call inside that commit. */
  died(row: InboxRow, why: string): void {
    const event = this.#core.journal.hasFlows ? eventOf(row) : undefined;
    if (event === undefined) return;
    const run = this.#offered(event).find((one) => this.#wouldTake(one, event));
    if (run !== undefined) this.#end(run, "failed", `its event ${row.id} is given up: ${why}`);
  }

  /** How far the runs got that an event is for: steps and answers on record. */
  reached(row: InboxRow): number {
    const event = eventOf(row);
    const runs = event === undefined ? [] : this.#offered(event);
    return runs.reduce((sum, { seq }) => sum + this.#core.journal.side.countSteps(seq), 0);
  }

  /** Whether a run may have been at work on an event. */
  #wouldTake(row: FlowRow, event: InboundEvent): boolean {
    const { bot } = this.#core;
    const wait = waitOf(row);
    if (event.kind === "timer") return true;
    if (wait === undefined || wait.kind === "sleep") return false;
    if (event.kind === "event")
      return wait.name.split(", ").some((one) => one.endsWith(`=event:${event.type}`));
    if (event.kind === "action" || !bot.isCommand(event.text ?? "")) return true;
    const options = bot.flowOf(row.flow, row.version)?.options ?? {};
    return options.commands === "cancel" || this.#isCancel(event, options);
  }

  /** Whether a sender's messages may be answers: then none of them stops another. */
  isTalking(sender: string | undefined): boolean {
    return (
      this.#core.journal.exists() && this.#core.journal.flows.activeOf(sender ?? "") !== undefined
    );
  }

  /** Continues a run. Resolves to whether the event was its own. @throws what the flow threw */
  async #go(turn: Turn, row: FlowRow, arrival: Arrival | undefined): Promise<boolean> {
    const { bot } = this.#core;
    const definition = bot.flowOf(row.flow, row.version);
    let ending: Ending = {
      end: "changed",
      why: `the bot has no version ${row.version} of it any more`,
    };
    if (definition !== undefined) {
      let execution: RunTurn;
      try {
        execution = new RunTurn(this.#parts, turn, row, arrival);
      } catch (error) {
        return this.#lost(
          turn,
          row,
          `run ${row.id} cannot be read: ${errorText(error, this.#core.host.env)}`,
        );
      }
      // The turn may be over before the function comes to anything: it ran too long.
      turn.run = {
        commit: (end) => void this.#end(row, "failed", `its turn ended first (${end})`),
      };
      ending = await execution.execute(definition.run);
      turn.run = undefined;
      const offered = arrival?.kind === "event";
      if (ending.end === "waits" && offered && !ending.taken) return false;
      // The disk refused a write: that passes, and the run with it must not.
      if (ending.end === "failed" && isRefusal(ending.error)) {
        // Whatever middleware makes of the error.
        turn.retry = { error: ending.error };
        throw new RetryTurn({ cause: ending.error });
      }
      if (ending.end !== "changed") {
        turn.run = { commit: () => execution.commit(ending, this.#core) };
        if (ending.end === "failed") throw ending.error;
        return true;
      }
    }
    const why = ending.end === "changed" ? ending.why : "";
    return this.#lost(
      turn,
      row,
      `the code of flow "${row.flow}" has changed under run ${row.id}: ${why}`,
      // Of the newest where this version is gone.
      definition?.options ?? bot.flowOf(row.flow)?.options,
    );
  }

  /** A run cannot go on: its code is not what it was, or its record is damaged. */
  async #lost(turn: Turn, row: FlowRow, why: string, options: FlowOptions = {}): Promise<boolean> {
    const { journal, host, bot } = this.#core;
    // Ended meanwhile by somebody else: there is nothing to fail or to begin anew.
    if (!this.#isActive(row)) return false;
    const restarts = options.onCodeChange === "restart";
    host.log.error(why, { run: row.id, restarts });
    this.#core.onTrouble();
    if (restarts) {
      const { flow, owner, input } = row;
      const version = bot.flowOf(flow)?.version ?? row.version;
      const again = { flow, id: `${row.id}+`, owner, input };
      // With the turn: its event is taken however often that runs.
      turn.run = {
        commit: () => void (this.#end(row, "failed", why) && this.#begin(again, version)),
      };
      return true;
    }
    journal.commit("flow.end", () => this.#end(row, "failed", why));
    await this.#announce(turn, new CodeChanged(why));
    return false;
  }

  #isCancel(event: InboundEvent, { cancel = DEFAULT_CANCEL }: FlowOptions): boolean {
    // In groups commands name their bot: /cancel@some_bot.
    const text = event.kind === "message" ? (event.text ?? "").trim().toLowerCase() : "";
    const said = text.replace(/^(\/\w+)@\w+$/, "$1");
    return said !== "" && cancel.some((word) => word.toLowerCase() === said);
  }

  #isActive({ id }: FlowRow): boolean {
    return this.#core.journal.flows.get(id)?.state === "active";
  }

  /** Ends a run, unless it is over: what ended first, and how, stays. Call inside a commit. */
  #end(row: FlowRow, state: FlowState, error: string): boolean {
    if (!this.#isActive(row)) return false;
    this.#core.journal.flows.update(row, {
      state,
      error: errorText(error, this.#core.host.env),
      finished_at: this.#core.now(),
      due_at: null,
    });
    return true;
  }
}
