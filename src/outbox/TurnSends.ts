/**
 * The sends of one run of one turn: ordinals per step scope, what earlier runs recorded, and what the
 * settle has to add.
 *
 * @module
 */

import { isRunSlot } from "../flows/records.ts";
import { PARTS_PER_INTENT } from "../journal/limits.ts";
import type { OutboxRow } from "../journal/records.ts";
import type { Draft } from "./draft.ts";
import { isPreviewSlot } from "./keys.ts";

/** A send that is recorded only when its turn settles. */
export interface SettledIntent {
  rows: OutboxRow[];
  kept: { id: string; value: string }[];
  /** Rows of a recorded send that this one replaces. */
  replaces: OutboxRow[];
}

/** A streamed answer that is not recorded yet. */
export interface OpenStream {
  readonly slot: string;
  /** Reads its source no further: its turn is over. */
  stop(): void;
  /** What becomes the message of what was said so far, or what becomes of what is shown. */
  remains(): Draft | "keep" | "remove";
}

/** The state of one run's sends. */
export class TurnSends {
  readonly seq: number;
  /** The inbox id: the front of every key. */
  readonly id: string;
  /** Sends on a closed context throw. */
  closed = false;
  /** None of them gets a record: the journal refuses writes, and the bot prefers to answer. */
  unjournaled = false;
  readonly settled: SettledIntent[] = [];
  /** Slots of what the run of a flow said: it stands, whatever becomes of the rest of the turn. */
  kept: ReadonlySet<string> | undefined;
  /** Told of each slot that this run uses, and of each send held back: a step records them. */
  onUse: (slot: string) => void = () => {};
  onSettled: (intent: SettledIntent) => void = () => {};
  /** Told of a send that is not on record, before it is; may refuse it by a throw. */
  onNew: (slot: string) => void = () => {};
  /** What the run of a flow recorded in earlier turns. */
  earlier: (slot: string) => OutboxRow | undefined = () => undefined;
  /** Told once a send of this run is committed. */
  onCommitted: () => void = () => {};
  /** Keeps the order of sends while `before` hooks run. */
  hooks: Promise<unknown> = Promise.resolve();
  /** Answers whose source is being read, or failed. */
  readonly streams = new Set<OpenStream>();
  /** Sends in progress, which the turn waits for. */
  readonly open = new Set<Promise<unknown>>();
  readonly #ordinals = new Map<string, number>();
  /** First parts that earlier runs recorded, by slot. */
  readonly #recorded = new Map<string, OutboxRow>();
  readonly #consumed = new Set<string>();
  #nextBase = 0;
  /** Whether this turn has any row, from this run or an earlier one. */
  hasRows: boolean;

  /** Whether one of them is the preview of an answer. */
  hasPreviews: boolean;

  /** A replay of a turn that was done: what is recorded is the answer, whatever is said now. */
  readonly settledBefore: boolean;

  constructor(seq: number, id: string, recorded: readonly OutboxRow[], settledBefore = false) {
    this.settledBefore = settledBefore;
    this.seq = seq;
    this.id = id;
    this.hasRows = recorded.length > 0;
    this.hasPreviews = recorded.some(({ slot }) => isPreviewSlot(slot));
    for (const row of recorded) {
      if (row.part === 0) this.#recorded.set(row.slot, row);
      this.#nextBase = Math.max(this.#nextBase, Math.floor(row.pos / PARTS_PER_INTENT) + 1);
    }
  }

  /** The slot of the next send in a step scope (empty for the turn itself). */
  nextSlot(scope: string): string {
    const n = this.#ordinals.get(scope) ?? 0;
    this.#ordinals.set(scope, n + 1);
    return scope === "" ? String(n) : `${scope}/${n}`;
  }

  /** The position of the next intent's first part. */
  nextPos(): number {
    this.hasRows = true;
    const pos = this.#nextBase * PARTS_PER_INTENT;
    this.#nextBase += 1;
    return pos;
  }

  /** What an earlier run, or this one, recorded in a slot. */
  recorded(slot: string): OutboxRow | undefined {
    return this.#recorded.get(slot) ?? this.earlier(slot);
  }

  /** Whether what is recorded in a slot is the answer, whatever is said now. */
  isFixed(slot: string): boolean {
    return this.settledBefore || isRunSlot(slot);
  }

  /** The row that replaced what a slot first said, if one did. */
  divergedFrom(slot: string): OutboxRow | undefined {
    for (const [name, row] of this.#recorded) if (name.startsWith(`${slot}~`)) return row;
    return undefined;
  }

  /** A row of the same step scope with the same content that this run has not asked for yet. */
  unconsumed(scope: string, fingerprint: string): OutboxRow | undefined {
    for (const [slot, row] of this.#recorded) {
      if (row.fingerprint !== fingerprint || this.#consumed.has(slot) || slot.startsWith("="))
        continue;
      const at = slot.lastIndexOf("/");
      if ((at < 0 ? "" : slot.slice(0, at)) === scope) return row;
    }
    return undefined;
  }

  /** Marks a slot as asked for by this run. */
  consume(slot: string): void {
    this.#consumed.add(slot);
    this.onUse(slot);
  }

  /** Holds a send back for the settle. */
  hold(intent: SettledIntent): void {
    this.settled.push(intent);
    const head = intent.rows[0];
    if (head !== undefined) this.record(head);
    this.onSettled(intent);
  }

  isConsumed(slot: string): boolean {
    return this.#consumed.has(slot);
  }

  /** Remembers what this run recorded. */
  record(head: OutboxRow): void {
    this.#recorded.set(head.slot, head);
    this.consume(head.slot);
  }
}
