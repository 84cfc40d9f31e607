/**
 * The lane of the sends to other chats: one call in flight, beside the chat's own sends, because another
 * chat's silence must not hold this one. Relays to the same chat go in order: a later one waits for an
 * earlier one that is tried again, which costs little, since it goes to the same chat.
 *
 * @module
 */
import type { Address } from "../channels/events.ts";
import type { OutboxPlace } from "../journal/OutboxTable.ts";
import { isOpen, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { isBefore, placeKey } from "./Candidates.ts";
import { isRelay, targetOf } from "./relay.ts";

/** How many tried rows a fresh life reads, to learn which relays are ahead of others. */
const SLICE = 32;

type Tried = OutboxPlace & { target: string };

/** The relays of one actor. */
export class RelayLane {
  readonly #core: Core;
  /** The relay whose call is under way. */
  inFlight: OutboxPlace | undefined;
  /** Where relays go that were begun and may be open still. A fresh life reads them from the journal. */
  #tried: Map<string, Tried> | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Whether a new relay to `address` could go this instant. */
  isFree(address: Address): boolean {
    return this.inFlight === undefined && this.#ahead(JSON.stringify(address)) === undefined;
  }

  /** The relay that has to go before `row` may: an earlier one to the same chat, else `row`. */
  headOf(row: OutboxRow): OutboxRow {
    return this.#ahead(row.address, row) ?? row;
  }

  /**
   * Makes the call; `work` begins in this turn of the event loop.
   * @throws where the journal failed
   */
  async run(row: OutboxRow, work: () => Promise<void>): Promise<void> {
    this.inFlight = { turn: row.turn, pos: row.pos };
    try {
      this.#known().set(...this.#entry(row));
      await work();
      if (!isOpen(row)) this.#known().delete(placeKey(row));
    } finally {
      this.inFlight = undefined;
    }
  }

  /** The earliest open relay to an address that was begun, before a place or at all. */
  #ahead(address: string | null, place?: OutboxPlace): OutboxRow | undefined {
    const target = targetOf(this.#core, address);
    let first: OutboxRow | undefined;
    for (const [key, tried] of this.#known()) {
      if (tried.target !== target || (place && !isBefore(tried, place))) continue;
      const row = this.#core.journal.outbox.get(tried.turn, tried.pos);
      if (row === undefined || !isOpen(row)) this.#known().delete(key);
      else if (first === undefined || isBefore(row, first)) first = row;
    }
    return first;
  }

  #known(): Map<string, Tried> {
    this.#tried ??= new Map(
      this.#core.journal.outbox
        .waiting(SLICE)
        .filter(isRelay)
        .map((row) => this.#entry(row)),
    );
    return this.#tried;
  }

  #entry({ turn, pos, address }: OutboxRow): [string, Tried] {
    return [placeKey({ turn, pos }), { turn, pos, target: targetOf(this.#core, address) }];
  }
}
