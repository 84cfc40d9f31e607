/**
 * Answers that are held until a turn got somewhere (`ack`). Memory only: the event is journaled before
 * anybody waits, so a process that dies here costs a redelivery that is dropped as a duplicate.
 *
 * @module
 */
import { type Clock, TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { AckPolicy } from "../turns/busyOptions.ts";

/** How far a turn has got. */
export type AckStage = "dispatched" | "recorded" | "acked" | "nacked" | "ended";

/** What the platform is told. */
export type Ack = "ok" | "nacked";

/** The stage at which each policy answers; the end of a turn answers always. */
const ANSWERS: Record<AckPolicy, AckStage | undefined> = {
  after_receive_record: undefined,
  after_agent_dispatch: "dispatched",
  after_durable_send: "recorded",
  manual: "acked",
};

/** The held answers of one chat. */
export class Acks {
  readonly #clock: Clock;
  readonly #stage: AckStage | undefined;
  /** Those who wait, by inbox id. */
  #waiting: Map<string, ((ack: Ack) => void)[]> | undefined;
  /** Events that got far enough before anybody waited: of turns that run now. */
  #reached: Set<string> | undefined;

  constructor(clock: Clock, policy: AckPolicy) {
    this.#clock = clock;
    this.#stage = ANSWERS[policy];
  }

  /** Whether answers are held at all. */
  get holds(): boolean {
    return this.#stage !== undefined;
  }

  /**
   * Waits until an event's turn got as far as the policy asks, at most `limitMs`; then the answer is
   * success, since the event is journaled.
   */
  async wait(id: string, limitMs: number): Promise<Ack> {
    if (this.#reached?.has(id)) return "ok";
    let told: (ack: Ack) => void = () => {};
    const answer = new Promise<Ack>((resolve) => {
      told = resolve;
    });
    const waiting = this.#waiting ?? new Map<string, ((ack: Ack) => void)[]>();
    this.#waiting = waiting;
    waiting.set(id, [...(waiting.get(id) ?? []), told]);
    const ack = await withDeadline(this.#clock, limitMs, answer);
    if (ack !== TIMED_OUT) return ack;
    const left = (waiting.get(id) ?? []).filter((one) => one !== told);
    if (left.length === 0) waiting.delete(id);
    else waiting.set(id, left);
    return "ok";
  }

  /** A turn got somewhere. */
  note(id: string, stage: AckStage): void {
    if (this.#stage === undefined) return;
    const over = stage === "ended" || stage === "nacked";
    if (over) this.#reached?.delete(id);
    else if (stage === this.#stage || stage === "acked") {
      this.#reached ??= new Set();
      this.#reached.add(id);
    } else return;
    const ack = stage === "nacked" ? "nacked" : "ok";
    for (const tell of this.#waiting?.get(id) ?? []) tell(ack);
    this.#waiting?.delete(id);
  }
}
