/**
 * One run of one turn: its sends, its state, its steps, and how it may be stopped. Memory only: what
 * must survive is in rows.
 *
 * @module
 */
import { TurnEndedError } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import { FLAG, type InboxRow, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import type { TurnEnd } from "../objects/Outbox.ts";
import { type SettledIntent, TurnSends } from "../outbox/TurnSends.ts";
import type { Duration } from "../time/duration.ts";
import { type JoinedEvent, mergedEvent } from "./burst.ts";
import { Steps } from "./Steps.ts";
import { TurnState } from "./TurnState.ts";

/** A `nack`, or a `RetryTurn` that the handler threw. */
export interface RetryRequest {
  after?: Duration;
  error?: unknown;
}

/** What a turn that was stopped for a newer message resolves to. */
export const INTERRUPTED = Symbol("interrupted");

/** What a context needs of a turn, or of the run of a flow inside one. */
export type TurnParts = Pick<
  Turn,
  | "row"
  | "event"
  | "burst"
  | "sends"
  | "state"
  | "steps"
  | "signal"
  | "answered"
  | "retry"
  | "starts"
>;

/** One run of one turn. */
export class Turn {
  readonly row: InboxRow;
  readonly claim: string;
  /** What the bot sees: all that joined this turn as one. */
  readonly event: InboundEvent;
  /** What arrived, one by one. */
  readonly burst: readonly InboundEvent[];
  readonly sends: TurnSends;
  readonly state: TurnState;
  readonly steps: Steps;
  /** Made when the handler asks for its signal: a native object for each turn that few look at. */
  #abort: AbortController | undefined;
  #closedFor: { reason: unknown } | undefined;
  /** Set by `nack`: run again, whatever the handler does. */
  retry: RetryRequest | undefined;
  /** Resolves when a newer message of the sender stops this turn. */
  readonly interrupted: Promise<typeof INTERRUPTED>;
  /** Stops this turn for a newer message. */
  interrupt: () => void = () => {};
  /** Whether the button press was answered. */
  answered = false;
  /** How many flows it started: their ids are numbered. */
  starts = 0;
  /** A run of a flow that goes on in this turn: what it came to is committed with it. */
  run: { commit(end: TurnEnd): void } | undefined;

  constructor(
    core: Core,
    row: InboxRow,
    claim: string,
    event: JoinedEvent,
    recorded: readonly OutboxRow[],
    /** The journal refuses writes and `failOpen` is on: nothing of this run is recorded. */
    unjournaled = false,
  ) {
    const { journal } = core;
    this.interrupted = new Promise((resolve) => {
      this.interrupt = () => resolve(INTERRUPTED);
    });
    this.row = row;
    this.claim = claim;
    const { joined = [], newest: _newest, ...first } = event;
    this.event = mergedEvent(event);
    this.burst = [first, ...joined];
    this.sends = new TurnSends(row.seq, row.id, recorded, (row.flags & FLAG.applied) !== 0);
    this.sends.unjournaled = unjournaled;
    this.state = new TurnState(
      (scope, key) => journal.side.readState(scope, key),
      () => this.steps.recorder(),
    );
    this.steps = new Steps(
      {
        read: (path) => (unjournaled ? undefined : journal.side.step(row.seq, path)),
        record: (path, result) => {
          if (unjournaled) return;
          // What a closed turn would record, a later run could not tell from its own.
          if (this.sends.closed) throw new TurnEndedError("the turn ended while this step ran");
          journal.commit("turn.step", () =>
            journal.side.recordStep(row.seq, path, result, core.now()),
          );
        },
      },
      this.state,
      (slots, settled) => this.adopt(slots, settled),
    );
    this.sends.onUse = (slot) => this.steps.noteSend(slot);
    this.sends.onSettled = (intent) => this.steps.noteSettled(intent);
  }

  /** The same turn, with the steps and the state of a run. */
  inside(steps: Steps, state: TurnState): TurnParts {
    const turn = this;
    return {
      row: this.row,
      event: this.event,
      burst: this.burst,
      sends: this.sends,
      steps,
      state,
      get signal() {
        return turn.signal;
      },
      get answered() {
        return turn.answered;
      },
      set answered(value) {
        turn.answered = value;
      },
      get retry() {
        return turn.retry;
      },
      set retry(value) {
        turn.retry = value;
      },
      get starts() {
        return turn.starts;
      },
      set starts(value) {
        turn.starts = value;
      },
    };
  }

  /** Takes over what a recorded step said: it is not run again to say it. */
  adopt(slots: readonly string[], settled: readonly SettledIntent[]): void {
    for (const intent of settled) {
      const head = intent.rows[0];
      if (head !== undefined && this.sends.recorded(head.slot) === undefined)
        this.sends.hold(intent);
    }
    this.adoptSends(slots);
  }
  /** Delivers recorded sends on behalf of this run; filled in by whoever runs the turn. */
  adoptSends: (slots: readonly string[]) => void = () => {};

  /** No further sends: the turn is settled, timed out or interrupted. */
  close(reason?: unknown): void {
    this.sends.closed = true;
    if (reason === undefined) return;
    this.#closedFor = { reason };
    this.#abort?.abort(reason);
  }

  /** Aborts when the turn is timed out or interrupted. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#closedFor !== undefined) this.#abort.abort(this.#closedFor.reason);
    }
    return this.#abort.signal;
  }
}
