/**
 * The sweep of one Registry shard: wakes chats that slept past their time. After an outage there may be
 * thousands, so it goes slice by slice with pauses, a few wakes at a time, longest overdue first.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";
import { errorText } from "../safety/redact.ts";
import { backoffMs } from "../time/backoff.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { Claimed, RegistryTable } from "./RegistryTable.ts";

/** Chats that one slice wakes. */
export const SWEEP_SLICE = 50;
/** Wakes in flight at a time. */
export const SWEEP_LANES = 10;
/** How long a wake may take, in ms: a chat that hangs must not stop the sweep. */
export const WAKE_MS = 10_000;
/** Between two slices, in ms; up to as much again at random, so that shards do not go in step. */
export const PAUSE_MS = 2_000;
/** A woken chat has this long to report before it is woken again, in ms, and up to half as much more. */
const REPORT_MS = 60_000;
/** Until a chat that could not be woken is tried again. */
const BACKOFF = { baseMs: 60_000, capMs: 3_600_000 };

/** The sweep. */
export class WakeSweep {
  readonly #host: Host;
  readonly #table: RegistryTable;
  #running = false;

  constructor(host: Host, table: RegistryTable) {
    this.#host = host;
    this.#table = table;
  }

  /** Wakes one slice; what is left follows by alarm. Resolves to how many were woken. */
  async slice(): Promise<number> {
    // Each wake has a deadline, so this flag falls; and rows are held by the claim all the same.
    if (this.#running) return 0;
    this.#running = true;
    try {
      const claimed = this.#claim();
      const failed = await this.#wakeAll(claimed);
      this.#postpone(failed);
      return claimed.length - failed.length;
    } finally {
      this.#running = false;
    }
  }

  /** Goes on where a slice was not enough. Never throws: the cron's sweep is the next net. */
  async alarm(): Promise<void> {
    this.#table.alarm.fired();
    try {
      if (this.#running) this.#goOn("registry.rearm");
      else await this.slice();
    } catch (error) {
      this.#host.rethrowIfHalted(error);
      this.#host.log.error("the sweep of overdue chats failed", {
        error: errorText(error, this.#host.env),
      });
    }
  }

  /** Holds the longest overdue in one commit, together with the alarm that goes on behind them. */
  #claim(): Claimed[] {
    const due = this.#table.overdue(SWEEP_SLICE);
    if (due.length === 0) return [];
    return this.#table.commit("registry.claim", () => {
      const now = this.#host.clock.now();
      const claimed = due.map(({ name, tries }) => {
        const heldUntil = now + Math.ceil(REPORT_MS * (1 + this.#host.random() / 2));
        this.#table.hold(name, heldUntil);
        return { name, tries, heldUntil };
      });
      if (due.length === SWEEP_SLICE) this.#arm();
      return claimed;
    });
  }

  async #wakeAll(claimed: readonly Claimed[]): Promise<Claimed[]> {
    const waiting = [...claimed];
    const failed: Claimed[] = [];
    const lane = async () => {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
        if (!(await this.#wake(one))) failed.push(one);
      }
    };
    await Promise.all(Array.from({ length: SWEEP_LANES }, lane));
    return failed;
  }

  /** Any contact heals an alarm that was lost; this one also looks at what is due. */
  async #wake({ name, tries }: Claimed): Promise<boolean> {
    const { actors, clock, env, log } = this.#host;
    try {
      const woken = actors.call("ChatActor", name, "wake", "{}");
      if ((await withDeadline(clock, WAKE_MS, woken)) !== TIMED_OUT) return true;
      log.warn("a chat did not wake in time", { chat: name, tries: tries + 1 });
    } catch (error) {
      this.#host.rethrowIfHalted(error);
      const why = errorText(error, env);
      log.warn("a chat could not be woken", { chat: name, tries: tries + 1, error: why });
    }
    return false;
  }

  #postpone(failed: readonly Claimed[]): void {
    if (failed.length === 0) return;
    this.#table.commit("registry.postpone", () => {
      const now = this.#host.clock.now();
      for (const one of failed) {
        const wait = backoffMs(BACKOFF, one.tries + 1, this.#host.random());
        this.#table.postpone(one, now + wait);
      }
    });
  }

  #goOn(label: "registry.rearm"): void {
    this.#table.commit(label, () => this.#arm());
  }

  #arm(): void {
    const wait = PAUSE_MS * (1 + this.#host.random());
    this.#table.alarm.arm(this.#host.clock.now() + Math.ceil(wait));
  }
}
