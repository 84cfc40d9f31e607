/**
 * Events that the journal would not take, where the bot would rather answer than be safe (`failOpen`):
 * each runs once, in memory, between the turns that have a record.
 *
 * @module
 */
import type { InboundItem } from "../channels/channel.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { Admission, Admitted, ReceiveAnswer, ReceiveRequest } from "./Admission.ts";
import type { Core } from "./Core.ts";

/** Ids that are remembered, to recognise a redelivery. */
const REMEMBERED = 200;

/** The unjournaled events of one life of an actor. */
export class Unjournaled {
  readonly #core: Core;
  readonly #admission: Admission;
  readonly #queue: InboundEvent[] = [];
  readonly #ids = new Set<string>();

  constructor(core: Core, admission: Admission) {
    this.#core = core;
    this.#admission = admission;
  }

  /** The next one to run. */
  take(): InboundEvent | undefined {
    return this.#queue.shift();
  }

  /** Whether an event ran, or will run, without a record. */
  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /**
   * Takes what the journal refused.
   * @throws that very error where only a record can keep the promise: bots that answer each other
   */
  push(request: ReceiveRequest, error: unknown): ReceiveAnswer {
    const { journal, name, settings } = this.#core;
    // A loop of bots is counted by its records; without any it would go on for ever.
    if (request.items.some((item) => this.#isBots(item))) throw error;
    const fresh = request.items.filter((item) => this.#sort(item) === "accepted").length;
    if (fresh > 0 && this.#queue.length + fresh > settings.inbox.maxPending) {
      return this.#admission.full(fresh);
    }
    journal.identifyFrom(name, request);
    return { ok: true, results: request.items.map((item) => this.#take(item, error)) };
  }

  #take(item: InboundItem, error: unknown): Admitted {
    const sorted = this.#sort(item);
    if (item.type !== "event" || sorted !== "accepted") return sorted;
    const { id } = item.event;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > REMEMBERED && oldest !== undefined) this.#ids.delete(oldest);
    this.#core.metrics.count("inboundUnjournaled");
    this.#core.host.log.error("an event runs without a record: the journal refused it (failOpen)", {
      id,
      error: String(error),
    });
    this.#queue.push(item.event);
    return "accepted";
  }

  #sort(item: InboundItem): Admitted {
    // A status or a broken item is worth no answer to anybody.
    if (item.type !== "event" || this.#admission.isOtherBot(item.event)) return "ignored";
    const { id, selfAuthored } = item.event;
    if (selfAuthored === true) return "echo";
    return this.#ids.has(id) || this.#isKnown(item.event) ? "duplicate" : "accepted";
  }

  #isBots(item: InboundItem): boolean {
    return (
      item.type === "event" && item.event.sender?.isBot === true && this.#sort(item) === "accepted"
    );
  }

  /** Its record may be older than the trouble. A journal that cannot even be read knows nothing. */
  #isKnown({ id, semanticKey }: InboundEvent): boolean {
    const { journal, host } = this.#core;
    try {
      return journal.exists() && journal.inbox.knows(id, semanticKey ?? null);
    } catch (error) {
      host.rethrowIfHalted(error);
      return false;
    }
  }
}
