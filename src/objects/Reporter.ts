/**
 * Reports of one chat to the Registry: off the hot path, at most one at a time, with whatever the
 * counters have gathered. A report that fails is made again by the next alarm.
 *
 * @module
 */
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { Core } from "./Core.ts";
import { type MetricValues, noMetrics } from "./Metrics.ts";
import { formatAddress } from "./names.ts";

/** How a chat stands, for lists across chats. */
export interface ChatReport {
  /** The chat's actor. */
  name: string;
  /** As `formatAddress` writes it. */
  address: string;
  /** What was counted since the last report. */
  metrics: Partial<MetricValues>;
  /** Records that need somebody: counted up to a cap. */
  dead: number;
  unknown: number;
  failed: number;
  /** When unfinished work is due next: epoch ms; a sweep wakes the chat if it slept past it. */
  dueAt?: number;
}

/** Counting stops here: an operator who has this many looks at a list. */
const COUNT_CAP = 100;
/** How long a report waits for its answer, in ms. */
const ANSWER_MS = 10_000;

/** The reports of one chat. */
export class Reporter {
  readonly #core: Core;
  #wanted = false;
  #running = false;
  #flushed = false;
  /** What the Registry was told last in this life about when work is due; `undefined`: of none. */
  #toldDue: number | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Something is dead, unknown, deferred or was recovered: report soon. */
  trouble(): void {
    this.#wanted = true;
    // After the current commit and what follows it, so that one report tells all of it.
    this.#core.host.keepAlive(Promise.resolve().then(() => this.#send()));
  }

  /**
   * Called by the alarm: reports what has gathered, and whether work is due that the Registry does not
   * know of, or no longer is; once per life also what an earlier one may have owed.
   */
  flush(): void {
    const owed = !this.#flushed && this.#core.journal.schema.has("trouble");
    if (owed || this.#isNews()) this.#wanted = true;
    this.#flushed = true;
    this.#core.host.keepAlive(this.#send());
  }

  /** A turn that runs since the last alarm, an orphan, a send for later: the sweep must know it. */
  #isNews(): boolean {
    const due = this.#core.journal.exists() ? this.#core.unfinished() : undefined;
    if (due === undefined) return this.#toldDue !== undefined;
    // What was told and came due just now is being done.
    return this.#toldDue === undefined || this.#toldDue + this.#core.watchdogMs < this.#core.now();
  }

  async #send(): Promise<void> {
    if (this.#running) return;
    const metrics = this.#core.metrics.take();
    if (metrics === undefined && !this.#wanted) return;
    const owed = this.#wanted;
    this.#wanted = false;
    this.#running = true;
    try {
      const report = this.#report(metrics ?? noMetrics());
      const { clock, actors } = this.#core.host;
      const name = registryOf(this.#core.name);
      const told = actors.call("Registry", name, "report", JSON.stringify(report));
      // An answer that never comes must not end the reports of this life.
      if ((await withDeadline(clock, ANSWER_MS, told)) === TIMED_OUT) {
        throw new Error("the Registry did not answer");
      }
      this.#toldDue = report.dueAt;
    } catch (error) {
      if (metrics !== undefined) this.#core.metrics.restore(metrics);
      if (owed) this.#retry();
      this.#core.host.log.debug("a report could not be made", { error: String(error) });
      return;
    } finally {
      this.#running = false;
    }
    // Trouble that came while the report was on its way is not in it.
    if (this.#wanted) await this.#send();
  }

  /** The next alarm may be days away: a report of trouble sets its own. */
  #retry(): void {
    this.#wanted = true;
    const { journal, alarm, watchdogMs } = this.#core;
    try {
      const at = this.#core.now() + watchdogMs;
      if (journal.exists() && alarm.isLaterThan(at))
        journal.commit("report.retry", () => alarm.arm(at));
    } catch (error) {
      this.#core.host.log.debug("the alarm could not be set", { error: String(error) });
    }
  }

  #report(metrics: MetricValues): ChatReport {
    const { journal, name } = this.#core;
    const counted = Object.fromEntries(Object.entries(metrics).filter(([, value]) => value !== 0));
    const exists = journal.exists();
    const dueAt = exists ? this.#core.unfinished() : undefined;
    return {
      name,
      address:
        exists && journal.identity() !== undefined ? formatAddress(this.#core.address()) : "",
      metrics: counted,
      dead: exists
        ? journal.outbox.countTrouble("dead", COUNT_CAP) +
          journal.inbox.countTrouble("dead", COUNT_CAP)
        : 0,
      unknown: exists ? journal.outbox.countTrouble("unknown", COUNT_CAP) : 0,
      failed: exists ? journal.inbox.countTrouble("failed", COUNT_CAP) : 0,
      ...(dueAt === undefined ? {} : { dueAt }),
    };
  }
}

/** Registry shards per bot: reports of a busy bot must not meet in one object. */
export const REGISTRY_SHARDS = 4;

/** The shard that a chat reports to. */
export function registryOf(actorName: string): string {
  let hash = 0;
  for (let at = 0; at < actorName.length; at += 1)
    hash = (hash * 31 + actorName.charCodeAt(at)) >>> 0;
  return `${actorName.split("/").slice(0, 3).join("/")}/${hash % REGISTRY_SHARDS}`;
}

/** All shards of a bot. */
export function registriesOf(prefix: string): string[] {
  return Array.from({ length: REGISTRY_SHARDS }, (_unused, shard) => `${prefix}/${shard}`);
}
