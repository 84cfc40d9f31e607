/**
 * Runs one claimed event: the bot's code in the middle, one commit at the end. Whatever way a turn
 * ends, that commit closes its sends, so that none is left where nothing looks.
 *
 * @module
 */
import { RetryTurn, TurnAbortedError } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { CommitLabel } from "../journal/labels.ts";
import { OPEN } from "../journal/OpenRecords.ts";
import { FLAG, type InboxRow } from "../journal/records.ts";
import { formatAddress } from "../objects/names.ts";
import type { TurnEnd } from "../objects/Outbox.ts";
import { TurnSends } from "../outbox/TurnSends.ts";
import { errorText } from "../safety/redact.ts";
import { backoffMs } from "../time/backoff.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import { parseDuration } from "../time/duration.ts";
import type { ListenerTools } from "./BotRuntime.ts";
import type { JoinedEvent } from "./burst.ts";
import { liveEvent } from "./media.ts";
import { INTERRUPTED, Turn } from "./Turn.ts";
import { type ContextParts, TurnContext } from "./TurnContext.ts";

/** A button press is answered after this, if the turn has not ended, in ms: platforms spin until then. */
const ANSWER_PRESS_MS = 10_000;
/** How long error listeners may take, in ms. */
const LISTENER_MS = 30_000;

/** How long the next turn waits for the handler of an interrupted one to return, in ms. */
const INTERRUPTED_MS = 5_000;

interface Ending {
  end: TurnEnd;
  error?: unknown;
  /** The handler of an interrupted turn, which may still run. */
  rest?: Promise<unknown>;
}

/** The label of the commit that ends a turn. */
const LABELS: Partial<Record<TurnEnd, CommitLabel>> = {
  settled: "turn.settle",
  aborted: "turn.abort",
  interrupted: "turn.interrupt",
};

/** Runs the turns of one chat. */
export class TurnRunner {
  readonly #parts: ContextParts;
  readonly #tools: () => ListenerTools;
  #running: Turn | undefined;

  constructor(parts: ContextParts, tools: () => ListenerTools) {
    this.#parts = parts;
    this.#tools = tools;
  }

  /** The record of the turn that runs. */
  get current(): InboxRow | undefined {
    return this.#running?.row;
  }

  /** Stops the turn of an event, if it is the one that runs: a newer message of its sender is here. */
  interrupt(seq: number): void {
    if (this.#running?.row.seq === seq) this.#running.interrupt();
  }

  /** Runs the bot for a claimed event and settles it. */
  async run(row: InboxRow, claim: string): Promise<void> {
    const { core, outbox, acks } = this.#parts;
    let turn: Turn;
    try {
      const event = this.#eventOf(row);
      const recorded = row.runs > 1 ? core.journal.outbox.ofTurn(row.seq) : [];
      turn = new Turn(core, row, claim, event, recorded);
      const { sends } = turn;
      turn.adoptSends = (slots) => outbox.adopt(sends, slots);
      sends.onCommitted = () => acks.note(row.id, "recorded");
      outbox.recover(recorded);
    } catch (error) {
      this.#unreadable(row, claim, error);
      return;
    }
    if (row.runs > 1) core.metrics.count("inboundReplayed");
    const context = new TurnContext(this.#parts, turn, turn);
    const cancelAnswer =
      turn.event.press === undefined
        ? undefined
        : core.host.clock.setTimer(ANSWER_PRESS_MS, () => core.host.keepAlive(context.answer()));
    this.#running = turn;
    acks.note(row.id, "dispatched");
    const ending = await this.#handle(turn, context);
    this.#running = undefined;
    cancelAnswer?.();
    if (turn.event.press !== undefined && !turn.answered) core.host.keepAlive(context.answer());
    if (ending.end === "failed" && !wantsRetry(turn, ending, core.settings.inbox.retryHandlers)) {
      await this.announceError(turn, ending.error);
    }
    this.#end(turn, ending);
    acks.note(row.id, turn.retry === undefined ? "ended" : "nacked");
    if (ending.rest !== undefined) await withDeadline(core.host.clock, INTERRUPTED_MS, ending.rest);
  }

  /** Runs the bot for an event that the journal would not take (`failOpen`): once, and best effort. */
  async runUnjournaled(event: InboundEvent): Promise<void> {
    const { core } = this.#parts;
    const claim = core.claim();
    const { id, kind } = event;
    const record = { seq: 0, id, semantic: null, kind, payload: "", receivedAt: core.now(), claim };
    const turn = new Turn(core, core.journal.inbox.fresh(record), claim, event, [], true);
    const context = new TurnContext(this.#parts, turn, turn);
    const ending = await this.#handle(turn, context);
    turn.close();
    if (ending.end === "failed") await this.announceError(turn, ending.error);
    const writes = ending.end === "settled" ? turn.state.writes() : [];
    if (writes.length === 0) return;
    try {
      core.journal.commit("state.write", () => core.journal.side.writeState(writes));
    } catch (error) {
      core.host.rethrowIfHalted(error);
      core.host.log.error("state of an unjournaled turn is lost", {
        id: event.id,
        error: errorText(error, core.host.env),
      });
    }
  }

  /**
   * Reads a record.
   * @throws when it is no event
   */
  #eventOf(row: InboxRow): JoinedEvent {
    const { core } = this.#parts;
    const event = JSON.parse(row.payload) as JoinedEvent;
    if (event.chat?.id === undefined) throw new Error("it names no chat");
    const channel = core.bot.channel(core.identity().connection);
    const live = (one: InboundEvent): InboundEvent => {
      const media = this.#parts.liveMedia(one.id);
      return media === undefined ? liveEvent(one, channel, core.now()) : { ...one, media };
    };
    const { joined, ...first } = event;
    return { ...live(first), ...(joined === undefined ? {} : { joined: joined.map(live) }) };
  }

  async #handle(turn: Turn, context: TurnContext): Promise<Ending> {
    const { core } = this.#parts;
    const limit = core.settings.inbox.turnTimeoutMs;
    try {
      core.host.probe("turn.handler", "before");
      const running = core.host.outlive(this.#runBot(turn, context));
      const done = await Promise.race([
        withDeadline(core.host.clock, limit, running),
        turn.interrupted,
      ]);
      if (done === INTERRUPTED) {
        turn.close(new TurnAbortedError("a newer message of the sender interrupts this turn"));
        return { end: "interrupted", rest: running.catch(() => undefined) };
      }
      if (done === TIMED_OUT) {
        const error = new TurnAbortedError(
          `the turn ran longer than inbox.turnTimeoutMs (${limit} ms)`,
        );
        turn.close(error);
        return { end: "aborted", error };
      }
      core.host.probe("turn.handler", "after");
      return { end: "settled" };
    } catch (error) {
      core.host.rethrowIfHalted(error);
      return { end: "failed", error };
    }
  }

  async #runBot(turn: Turn, context: TurnContext): Promise<void> {
    try {
      await this.#parts.core.bot.handle(context);
    } finally {
      // Sends that the handler did not await are part of the turn all the same.
      while (turn.sends.open.size > 0) await Promise.all(turn.sends.open);
    }
  }

  /** Tells error listeners of what went wrong in a turn. */
  async announceError(turn: Turn, error: unknown): Promise<void> {
    const { core } = this.#parts;
    core.host.log.error("a handler threw", {
      id: turn.row.id,
      error: errorText(error, core.host.env),
    });
    if (!core.bot.hasListener("error")) return;
    const event = { error, id: turn.row.id, chatId: formatAddress(core.address()) };
    try {
      const told = core.host.outlive(core.bot.announce("error", event, this.#tools()));
      await withDeadline(core.host.clock, LISTENER_MS, told);
    } catch (failure) {
      core.host.log.error("an error listener failed", {
        id: turn.row.id,
        error: errorText(failure, core.host.env),
      });
    }
  }

  #end(turn: Turn, ending: Ending): void {
    const { core } = this.#parts;
    const { retryHandlers } = core.settings.inbox;
    try {
      const retry = wantsRetry(turn, ending, retryHandlers);
      const written = retry ? this.#retry(turn, ending) : this.#finish(turn, ending);
      if (ending.end === "failed" || ending.end === "aborted") core.onTrouble();
      if (!written) {
        // Another run owns the event now: nothing of this one may be written.
        core.metrics.count("staleLeases");
        core.host.log.warn("a turn lost its claim; its results are dropped", { id: turn.row.id });
      }
    } finally {
      turn.close();
      this.#parts.outbox.released(turn.sends);
    }
  }

  #finish(turn: Turn, ending: Ending): boolean {
    const { core, outbox } = this.#parts;
    const { journal } = core;
    const settled = ending.end === "settled";
    const interrupted = ending.end === "interrupted";
    const label = LABELS[ending.end] ?? "turn.fail";
    return journal.commit(label, () => {
      const written = journal.inbox.moveIfClaimed(turn.row, turn.claim, "done", {
        finished_at: core.now(),
        open: 0,
        claim: null,
        // How it ended, whatever was stamped while it ran: a replay asks.
        flags:
          (turn.row.flags & ~FLAG.interrupted) |
          (interrupted ? FLAG.interrupted : 0) |
          (turn.run === undefined ? 0 : FLAG.inRun),
        error: settled || interrupted ? null : errorText(ending.error, core.host.env),
      });
      if (!written) return false;
      if (settled && (turn.row.flags & FLAG.applied) === 0)
        journal.side.writeState(turn.state.writes());
      outbox.closeTurn(turn.sends, ending.end);
      turn.run?.commit(ending.end);
      return true;
    });
  }

  /** Back in the queue: the same event, later. The state of this run is dropped. */
  #retry(turn: Turn, ending: Ending): boolean {
    const { core, outbox } = this.#parts;
    const { inbox } = core.settings;
    const asked =
      turn.retry?.after ?? (ending.error instanceof RetryTurn ? ending.error.after : undefined);
    const after = asked === undefined ? undefined : parseDuration(asked);
    const wait = after ?? backoffMs(inbox.backoff, turn.row.runs, core.host.random());
    const dueAt = core.now() + Math.ceil(wait);
    const parked = after !== undefined && after > inbox.backoff.capMs;
    core.host.log.info("a turn will run again", { id: turn.row.id, waitMs: Math.ceil(wait) });
    return core.journal.commit("turn.retry", () => {
      const written = core.journal.inbox.moveIfClaimed(turn.row, turn.claim, "pending", {
        due_at: dueAt,
        claim: null,
        open: parked ? OPEN.resting : OPEN.yes,
        flags:
          (turn.row.flags & ~FLAG.parked) |
          (parked ? FLAG.parked : 0) |
          (turn.retry === undefined ? 0 : FLAG.nacked),
      });
      if (written) {
        core.alarm.arm(dueAt);
        outbox.closeTurn(turn.sends, "retry");
      }
      return written;
    });
  }

  /** A record that cannot be read ends alone; its chat goes on. */
  #unreadable(row: InboxRow, claim: string, error: unknown): void {
    const { core } = this.#parts;
    const owed = core.bot.hasListener("durability:dead") ? 2 : 0;
    core.metrics.count("inboundDead");
    core.host.log.error("an inbox record cannot be read", { id: row.id, error: String(error) });
    const sends = new TurnSends(row.seq, row.id, core.journal.outbox.ofTurn(row.seq));
    core.journal.commit("inbox.dead", () => {
      const written = core.journal.inbox.moveIfClaimed(row, claim, "dead", {
        finished_at: core.now(),
        claim: null,
        error: `unreadable record: ${errorText(error, core.host.env)}`,
        owed,
        open: owed === 0 ? 0 : 1,
      });
      if (written) this.#parts.outbox.closeTurn(sends, "dead");
    });
    this.#parts.acks.note(row.id, "ended");
    this.#parts.outbox.announcer.pushEvent(row.seq);
    this.#parts.outbox.kick();
  }
}

function wantsRetry(turn: Turn, ending: Ending, retryHandlers: boolean): boolean {
  if (ending.end === "aborted" || ending.end === "interrupted") return false;
  if (turn.retry !== undefined || ending.error instanceof RetryTurn) return true;
  if (ending.end !== "failed" || !retryHandlers) return false;
  const retryable = (ending.error as { retryable?: unknown } | null | undefined)?.retryable;
  return retryable !== false;
}
