/**
 * Which open rows may be next: those that live turns wait for, and those whose time has come. Rows are
 * read in slices; relays that wait for another chat must not fill a slice and hide the rest.
 *
 * @module
 */
import type { OutboxPlace } from "../journal/OutboxTable.ts";
import { isOpen, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import type { Announcer } from "./Announcer.ts";
import { isRelay, targetOf } from "./relay.ts";

/** How many due rows one look reads. */
const SLICE = 32;

type DuePlace = OutboxPlace & { due_at: number };

/** The rows of one actor that could be sent. */
export class Candidates {
  readonly #core: Core;
  readonly #announcer: Announcer;
  /** Rows of live turns that somebody asked to deliver; everything else is found by its due time. */
  readonly #held = new Map<string, OutboxPlace>();
  /** The first row behind a full slice whose time is still to come. */
  #toCome: DuePlace | undefined;
  /** Whether something behind a full slice may have become ready: rows were written, or time has passed. */
  lookBehind = true;

  constructor(core: Core, announcer: Announcer) {
    this.#core = core;
    this.#announcer = announcer;
  }

  /** Rows that live turns deliver by themselves. */
  get held(): OutboxPlace[] {
    return [...this.#held.values()];
  }

  /** Delivers a row on behalf of a live turn. */
  hold(row: OutboxPlace): void {
    this.#held.set(placeKey(row), { turn: row.turn, pos: row.pos });
  }

  /** Whether a live turn delivers the row by itself. */
  isHeld(row: OutboxPlace): boolean {
    return this.#held.has(placeKey(row));
  }

  /** The turn is over: its rows are found by their due time from now on. */
  release(turn: number): void {
    for (const [key, place] of this.#held) if (place.turn === turn) this.#held.delete(key);
  }

  /** Open rows that may be next, oldest first. */
  read(strict: boolean): OutboxRow[] {
    const { outbox } = this.#core.journal;
    const now = this.#core.now();
    const rows = new Map<string, OutboxRow>();
    for (const [key, place] of this.#held) {
      const row = outbox.get(place.turn, place.pos);
      if (row === undefined || !isOpen(row)) this.#held.delete(key);
      else rows.set(key, row);
    }
    const due = outbox.due(now, SLICE);
    // Under strict order a row that is not due yet may be ahead of one that is.
    const ahead = strict ? outbox.waiting(SLICE) : [];
    for (const row of [...due, ...ahead, ...this.#behind(due, now)])
      if (isOpen(row)) rows.set(placeKey(row), row);
    // Over, but somebody has still to be told: beside the lane, so that no listener holds a send.
    for (const row of outbox.owing(now, SLICE)) if (!isOpen(row)) this.#announcer.pushSend(row);
    return [...rows.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  /** What a slice full of relays hides: the chat's own rows, and the first relay to each other chat. */
  #behind(slice: readonly OutboxRow[], now: number): OutboxRow[] {
    const targets = new Set(slice.filter(isRelay).map((row) => targetOf(this.#core, row.address)));
    if (slice.length < SLICE || targets.size === 0) {
      this.#toCome = undefined;
      return [];
    }
    if (!this.lookBehind) return [];
    const shown = new Set(slice.map(placeKey));
    const found: OutboxRow[] = [];
    let own = 0;
    const places = this.#places(now);
    this.#toCome = places.find((place) => place.due_at > now);
    for (const place of places) {
      if (place.due_at > now) break;
      if (shown.has(placeKey(place))) continue;
      const row = this.#core.journal.outbox.get(place.turn, place.pos);
      if (row === undefined || !isOpen(row)) continue;
      if (isRelay(row)) {
        const target = targetOf(this.#core, row.address);
        if (targets.has(target)) continue;
        targets.add(target);
      } else {
        own += 1;
        if (own > SLICE) break;
      }
      found.push(row);
    }
    // Where all go to one chat, a look at each that goes out would read all those behind it.
    this.lookBehind = found.length > 0 || targets.size > 1;
    return found;
  }

  /** Places and times of the rows due next. Relays that fill a slice hide no time that is still to come. */
  nextDue(): DuePlace[] {
    const places = this.#core.journal.outbox.nextDue(SLICE);
    return this.#toCome === undefined ? places : [...places, this.#toCome];
  }

  /** All due places, most overdue first, and some behind: narrow, since one content can be a megabyte. */
  #places(now: number): DuePlace[] {
    for (let limit = SLICE * 4; ; limit *= 4) {
      const places = this.#core.journal.outbox.nextDue(limit);
      if (places.length < limit || (places.at(-1)?.due_at ?? 0) > now) return places;
    }
  }
}

/** Names a place in memory. */
export function placeKey(row: OutboxPlace): string {
  return `${row.turn}.${row.pos}`;
}

/** Whether `a` was said before `b`. */
export function isBefore(a: OutboxPlace, b: OutboxPlace): boolean {
  return a.turn < b.turn || (a.turn === b.turn && a.pos < b.pos);
}
