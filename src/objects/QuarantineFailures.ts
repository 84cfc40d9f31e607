/**
 * Counts how often a webhook's delivery failed, and decides when its chat has had enough chances: the
 * platform would hold up whatever comes behind it for as long as it redelivers.
 *
 * @module
 */
import { type ChatGroup, deliveryIdOf } from "./admit.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";
import type { Quarantine } from "./Quarantine.ts";

/** A delivery spills after this many failures … */
const MIN_FAILURES = 3;
/** … over at least this long, in ms: a deploy or a short outage must not spill. */
const MIN_AGE_MS = 600_000;
/** A count is forgotten this long after its last failure, in ms: longer than any platform's pause. */
const FORGET_MS = 7_200_000;

/** The platform is asked to wait at most this long between tries, in s; each doubles the one before. */
const WAIT_MAX_S = 30;
/** In place of a count. */
const SPILLED = 0;

/** What the method `failed` of a connection answers. */
export type FailureAnswer =
  /** Everything is in the quarantine: the platform may be told that it arrived. */
  { spilled: true } | { spilled: false; retryAfterSeconds: number };

/** A group that its chat did not admit. */
export interface FailedGroup extends ChatGroup {
  /** Redacted. */
  error: string;
}

interface FailureRow {
  count: number;
  first_at: number;
  [column: string]: number;
}

/** The counts of one connection. */
export class QuarantineFailures {
  readonly #store: ConnectionStore;
  readonly #quarantine: Quarantine;

  constructor(store: ConnectionStore, quarantine: Quarantine) {
    this.#store = store;
    this.#quarantine = quarantine;
  }

  /** Counts failed groups; what failed too often is in the quarantine afterwards. */
  count(groups: readonly FailedGroup[]): FailureAnswer {
    const counted = this.#store.commit("quarantine.count", () => {
      this.#store.host.sql.run(
        `DELETE FROM failures WHERE last_at < ?`,
        this.#store.now() - FORGET_MS,
      );
      return groups.map((group) => this.#countOne(group));
    });
    const { log } = this.#store.host;
    for (const [at, group] of groups.entries()) {
      if (counted[at] !== SPILLED) continue;
      log.error("a chat cannot admit its events; they wait in the quarantine", {
        chat: group.name,
        items: group.request.items.length,
        error: group.error,
      });
    }
    const waits = counted.map((count) => Math.min(WAIT_MAX_S, 2 ** (count - 1)));
    return counted.every((count) => count === SPILLED)
      ? { spilled: true }
      : { spilled: false, retryAfterSeconds: Math.ceil(Math.max(...waits)) };
  }

  /** How often the group failed, or {@link SPILLED}. */
  #countOne(group: FailedGroup): number {
    const { sql } = this.#store.host;
    const [first] = group.request.items;
    if (first === undefined) return SPILLED;
    const now = this.#store.now();
    const behind = this.#quarantine.has(group.name);
    const id = deliveryIdOf(first);
    const [row] = sql.all<FailureRow>(
      `INSERT INTO failures (chat, id, count, first_at, last_at) VALUES (?, ?, 1, ?, ?)
       ON CONFLICT (chat, id) DO UPDATE SET count = count + 1, last_at = excluded.last_at
       RETURNING count, first_at`,
      group.name,
      id,
      now,
      now,
    );
    const count = row?.count ?? 1;
    const enough = count >= MIN_FAILURES && now - (row?.first_at ?? now) >= MIN_AGE_MS;
    if (!behind && !enough) return count;
    if (!this.#quarantine.hasRoom(group.request.items.length)) {
      this.#store.host.log.error("the quarantine is full", { chat: group.name });
      return count;
    }
    sql.run(`DELETE FROM failures WHERE chat = ? AND id = ?`, group.name, id);
    this.#quarantine.put({ group, dueAt: now + 1_000, error: group.error });
    return SPILLED;
  }
}
