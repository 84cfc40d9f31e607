/**
 * Outbox rows of the turns that run now, as they are on disk. An actor is the only writer of its rows, so
 * what it wrote in this life it need not read again: a reply would read its row six times.
 *
 * @module
 */
import type { OutboxRow } from "./records.ts";

/** Turns that are remembered, and rows of one: more than that is read from disk. */
const MAX_TURNS = 2;
const MAX_ROWS = 32;

/** Rows of a few turns, complete for each turn that is here. */
export class RecentRows {
  readonly #turns = new Map<number, OutboxRow[]>();
  /** Turns up to this number may have rows on disk that are not here. */
  #since = Number.POSITIVE_INFINITY;

  /** Turns above this number have no rows but those of this life. */
  since(turn: number): void {
    this.#since = turn;
  }

  /** A row was inserted. */
  add(row: OutboxRow): void {
    const known = this.#turns.get(row.turn);
    if (known !== undefined) {
      known.push({ ...row });
      if (known.length > MAX_ROWS) this.drop(row.turn);
      return;
    }
    if (row.turn <= this.#since) return;
    this.#turns.set(row.turn, [{ ...row }]);
    const [oldest] = this.#turns.keys();
    if (this.#turns.size > MAX_TURNS && oldest !== undefined) this.drop(oldest);
  }

  /** Copies of a turn's rows in order; `undefined` where the disk has to be asked. */
  rows(turn: number): OutboxRow[] | undefined {
    const known = this.#turns.get(turn);
    if (known === undefined) return turn > this.#since ? [] : undefined;
    return known.map((row) => ({ ...row })).sort((a, b) => a.pos - b.pos);
  }

  /** A row was changed. */
  patch(at: { turn: number; pos: number }, patch: Partial<OutboxRow>): void {
    const row = this.#turns.get(at.turn)?.find((one) => one.pos === at.pos);
    if (row !== undefined) Object.assign(row, patch);
  }

  /** Forgets a turn. */
  drop(turn: number): void {
    this.#turns.delete(turn);
    this.#since = Math.max(this.#since, turn);
  }

  /** Forgets all: what is on disk is not known any more. */
  clear(): void {
    for (const turn of [...this.#turns.keys()]) this.drop(turn);
  }
}
