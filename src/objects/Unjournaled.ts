/**
 * Events that the journal would not take, where the bot would rather answer than be safe (`failOpen`):
 * each runs once, in memory, between the turns that have a record.
 *
 * @module
 */
import type { InboundEvent } from "../channels/events.ts";
import type { Admitted, ReceiveAnswer, ReceiveRequest } from "./Admission.ts";
import type { Core } from "./Core.ts";

/** Ids that are remembered, to recognise a redelivery. */
const REMEMBERED = 200;

/** The unjournaled events of one life of an actor. */
export class Unjournaled {
  readonly #core: Core;
  readonly #queue: InboundEvent[] = [];
  readonly #ids: string[] = [];

  constructor(core: Core) {
    this.#core = core;
  }

  /** The next one to run. */
  take(): InboundEvent | undefined {
    return this.#queue.shift();
  }

  /** Takes what the journal refused with `error`. */
  push(request: ReceiveRequest, error: unknown): ReceiveAnswer {
    const { host, metrics, journal, name } = this.#core;
    journal.identifyFrom(name, request);
    const results = request.items.map((item): Admitted => {
      // A status or a broken item is worth no answer to anybody.
      if (item.type !== "event") return "ignored";
      const { id } = item.event;
      if (this.#ids.includes(id)) return "duplicate";
      this.#ids.push(id);
      if (this.#ids.length > REMEMBERED) this.#ids.shift();
      metrics.count("inboundUnjournaled");
      host.log.error("an event runs without a record: the journal refused it (failOpen)", {
        id,
        error: String(error),
      });
      this.#queue.push(item.event);
      return "accepted";
    });
    return { ok: true, results };
  }
}
