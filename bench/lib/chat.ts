/** A chat of the Worker that can be looked into, written to one message at a time. @module */
import { Wired } from "./http.ts";
import type { Platform } from "./Platform.ts";
import { messageTo, type Served } from "./Served.ts";

/** The connection without a limit of messages in a second. */
const HOOK = "/webhooks/telegram/fast";

/** The moments of one pair that are seen outside the runtime. */
export interface Pair {
  /** From the webhook's first byte to the platform having the reply, in ms. */
  ms: number;
  /** Epoch ms: the webhook is written, the reply is there, the webhook is answered. */
  wroteAt: number;
  arrivedAt: number;
  answeredAt: number;
}

/** Writes to chats of one process, and knows how many turns it has caused. */
export class Writer {
  readonly #served: Served;
  readonly #platform: Platform;
  #wire: Wired | undefined;
  #turns = 0;

  constructor(served: Served, platform: Platform) {
    this.#served = served;
    this.#platform = platform;
  }

  /** The name of a chat's actor. */
  static nameOf(chat: number): string {
    return `main/production/bench/fast/${chat}`;
  }

  /** One message and its reply, to the end of the turn. */
  async pair(chat: number): Promise<Pair> {
    this.#wire ??= await Wired.open(this.#served.port);
    const { request, reply } = messageTo(HOOK, chat);
    const arrival = this.#platform.arrival(reply);
    const [began, wroteAt] = [performance.now(), Date.now()];
    const answered = this.#wire.send(request).then((status) => {
      if (status !== 200) throw new Error(`the webhook answered ${status}`);
      return Date.now();
    });
    const [{ at, epochMs }, answeredAt] = await Promise.all([arrival, answered]);
    this.#turns += 1;
    await this.#served.ask("settled", { name: Writer.nameOf(chat), count: this.#turns });
    return { ms: at - began, wroteAt, arrivedAt: epochMs, answeredAt };
  }

  /** The process was started again: connection and count begin anew. */
  restarted(): void {
    this.close();
    this.#turns = 0;
  }

  close(): void {
    this.#wire?.close();
    this.#wire = undefined;
  }
}
