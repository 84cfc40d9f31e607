/**
 * The storage of one session: its log, its commits and its one alarm.
 *
 * @module
 */
import { AlarmClock } from "../../alarms/AlarmClock.ts";
import type { Host, NotPromise } from "../../host/Host.ts";
import { LogTable } from "./LogTable.ts";

const DAY_MS = 86_400_000;

/**
 * How long an entry is kept, in ms. Longer than the 30 days that the outbox keeps a send of unknown
 * fate: whatever an operator retries meets its marker.
 */
export const RETENTION_MS = 35 * DAY_MS;

/** The attempts to hand messages to the bot that failed in a row, and when the next is due. */
export interface Retry {
  n: number;
  at?: number;
}

/** The log with its commits and its alarm. */
export class RoomStore {
  readonly log: LogTable;
  readonly #host: Host;
  readonly #alarm: AlarmClock;

  constructor(host: Host) {
    this.#host = host;
    this.log = new LogTable(host);
    this.#alarm = new AlarmClock(host, () => this.#wanted());
  }

  /** Runs one labelled commit, with the tables made where they are missing. */
  commit<T>(label: string, fn: () => NotPromise<T>): T {
    try {
      return this.#alarm.commit(label, () => {
        this.log.ensure();
        return fn();
      });
    } catch (error) {
      this.log.reset();
      throw error;
    }
  }

  /** After an insert, in its commit: the log stays short, and somebody comes to purge it. */
  grown(now: number): void {
    this.log.trim();
    this.arm(now + RETENTION_MS + DAY_MS);
  }

  /**
   * Makes sure that the object wakes by `at`. Call inside a commit. The armed time has a row of its
   * own, so that an object that has just come back to memory does not write the same alarm again with
   * every message; a time that has passed belongs to an alarm that was lost.
   */
  arm(at: number): void {
    const now = this.#host.clock.now();
    const armed = Number(this.log.meta("alarm") ?? 0);
    if (armed > now && armed <= at) return;
    const time = Math.min(at, this.#wanted() ?? at);
    this.#alarm.arm(time);
    this.log.setMeta("alarm", String(time));
  }

  /** The alarm fired: nothing is armed any more. First line of `alarm()`. */
  fired(): void {
    this.#alarm.fired();
  }

  /**
   * Deletes a slice of what is too old, then sets the next alarm, or deletes the storage where nothing
   * is left. Call without an await since the last look at what is open.
   * @returns how many messages expired that the bot never got
   */
  async purge(): Promise<number> {
    const now = this.#host.clock.now();
    const lost = this.commit("webchat.purge", () => {
      const purged = this.log.purge(now - RETENTION_MS);
      const next = purged.more ? now : this.#wanted();
      // Whatever the row says, the alarm that it names has just fired.
      this.log.setMeta("alarm", undefined);
      if (next !== undefined) this.arm(next);
      return purged.lost;
    });
    if (this.log.lastSeq() === 0) {
      const gone = this.#host.deleteAll();
      this.log.reset();
      this.#alarm.reset();
      await gone;
    }
    return lost;
  }

  /** What is noted about failed attempts. */
  retry(): Retry {
    const text = this.log.meta("retry");
    return text === undefined ? { n: 0 } : (JSON.parse(text) as Retry);
  }

  /** Notes a failed attempt and comes back for the next. Call inside a commit. */
  setRetry(n: number, at: number): void {
    this.log.setMeta("retry", JSON.stringify({ n, at } satisfies Retry));
    this.arm(at);
  }

  /** An attempt succeeded. Call inside a commit. */
  clearRetry(): void {
    if (this.log.meta("retry") !== undefined) this.log.setMeta("retry", undefined);
  }

  /** What the rows want to be woken for. The purge comes a day late, so that it comes once a day. */
  #wanted(): number | undefined {
    const oldest = this.log.oldestAt();
    if (oldest === undefined) return undefined;
    const retry = this.log.hasOpen(1) ? this.retry().at : undefined;
    return Math.min(oldest + RETENTION_MS + DAY_MS, retry ?? Number.POSITIVE_INFINITY);
  }
}
