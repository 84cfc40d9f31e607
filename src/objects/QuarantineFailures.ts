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

  /** Counts failed groups. Resolves, by group, to whether it is in the quarantine now. */
  count(groups: readonly FailedGroup[]): boolean[] {
    const spilled = this.#store.commit("quarantine.count", () => {
      this.#store.host.sql.run(
        `DELETE FROM failures WHERE last_at < ?`,
        this.#store.now() - FORGET_MS,
      );
      return groups.map((group) => this.#countOne(group));
    });
    const { log } = this.#store.host;
    for (const [at, group] of groups.entries()) {
      if (spilled[at] !== true) continue;
      log.error("a chat cannot admit its events; they wait in the quarantine", {
        chat: group.name,
        items: group.request.items.length,
        error: group.error,
      });
    }
    return spilled;
  }

  #countOne(group: FailedGroup): boolean {
    const { sql } = this.#store.host;
    const [first] = group.request.items;
    if (first === undefined) return true;
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
    const enough =
      row !== undefined && row.count >= MIN_FAILURES && now - row.first_at >= MIN_AGE_MS;
    if (!behind && !enough) return false;
    if (!this.#quarantine.hasRoom(group.request.items.length)) {
      this.#store.host.log.error("the quarantine is full", { chat: group.name });
      return false;
    }
    sql.run(`DELETE FROM failures WHERE chat = ? AND id = ?`, group.name, id);
    this.#quarantine.put({ group, dueAt: now + 1_000, error: group.error });
    return true;
  }
}
