/**
 * The one caller of `setAlarm`. An actor has a single alarm and every write of it is a billed row, so
 * a copy of the armed time is kept in memory and the alarm is only ever moved earlier, except by
 * `alarm()` itself. The copy is a cache: unknown in a cold actor, where `getAlarm()` in the
 * constructor lies (reference: durable-objects §1.4).
 *
 * @module
 */
import type { Host, NotPromise } from "../host/Host.ts";

/** Never sooner than this after now, so that no bug can make an alarm spin (§11). */
const FLOOR_MS = 10;
/** A copy this far in the past belongs to an alarm that never came. */
const LOST_AFTER_MS = 5_000;

/** Keeps the actor's alarm at the earliest time that anything needs. */
export class AlarmClock {
  readonly #host: Host;
  readonly #wanted: () => number | undefined;
  /** The time on disk; `undefined` when unknown, `Infinity` when there is none. */
  #armed: number | undefined;
  #pending: number | undefined;

  /**
   * @param wanted what the rows say: the earliest time at which something unheld is due
   */
  constructor(host: Host, wanted: () => number | undefined) {
    this.#host = host;
    this.#wanted = wanted;
  }

  /**
   * Runs one labelled commit. The armed copy follows the rows: it is set after the commit and untouched by
   * a rollback.
   */
  commit<T>(label: string, fn: () => NotPromise<T>): T {
    let value: T;
    try {
      value = this.#host.transaction(label, fn);
    } catch (error) {
      this.#pending = undefined;
      throw error;
    }
    if (this.#pending !== undefined) this.#armed = this.#pending;
    this.#pending = undefined;
    return value;
  }

  /** Makes sure that the actor wakes by `at`. Call inside the commit of the rows that need it. */
  arm(at: number): void {
    const now = this.#host.clock.now();
    const armed = this.#pending ?? this.#armed;
    if (armed !== undefined && armed <= at && armed >= now - LOST_AFTER_MS) return;
    const rows = armed === undefined ? this.#wanted() : undefined;
    const time = Math.max(Math.min(at, rows ?? at), now + FLOOR_MS);
    this.#host.setAlarm(time);
    this.#pending = time;
  }

  /** Whether waking by `at` needs a write. */
  isLaterThan(at: number): boolean {
    return (
      this.#armed === undefined ||
      this.#armed > at ||
      this.#armed < this.#host.clock.now() - LOST_AFTER_MS
    );
  }

  /** The alarm fired: nothing is armed any more. First line of `alarm()`. */
  fired(): void {
    this.#armed = Number.POSITIVE_INFINITY;
    this.#pending = undefined;
  }

  /** The copy is not to be trusted. */
  forget(): void {
    this.#armed = undefined;
    this.#pending = undefined;
  }

  /** All storage was deleted, the alarm with it. */
  reset(): void {
    this.#armed = Number.POSITIVE_INFINITY;
    this.#pending = undefined;
  }
}
