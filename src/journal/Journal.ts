/**
 * The journal of one chat: typed row access, and the one wrapper around transactions. Nothing above
 * this folder writes SQL.
 *
 * @module
 */
import type { AlarmClock } from "../alarms/AlarmClock.ts";
import type { Host, NotPromise } from "../host/Host.ts";
import { FlowTable } from "./FlowTable.ts";
import { InboxTable } from "./InboxTable.ts";
import type { CommitLabel } from "./labels.ts";
import { OutboxTable } from "./OutboxTable.ts";
import { SideTables } from "./SideTables.ts";
import { readMeta, SCHEMA_VERSION, Schema, writeMeta } from "./schema.ts";

/** Who this actor is; kept in a row because an alarm may wake it without its name. */
export interface Identity {
  /** The actor's full name. */
  name: string;
  connection: string;
  channel: string;
  /** The chat's address at the platform; changes when the platform renames the chat. */
  chat: string;
  thread?: string;
  /** What kind of chat it is, where an event has said so: groups have limits of their own. */
  kind?: "direct" | "group" | "broadcast";
  /** Version of the schema that wrote this. */
  v: number;
}

/** The fact since when an actor is told things, where that outlives all records: epoch milliseconds. */
export const SINCE = "since";

/** One chat's journal. */
export class Journal {
  readonly inbox: InboxTable;
  readonly outbox: OutboxTable;
  readonly side: SideTables;
  #flows: FlowTable | undefined;
  readonly schema: Schema;
  readonly #host: Host;
  readonly #alarm: AlarmClock;
  #identity: Identity | undefined;
  /** Whether the identity has still to be written. */
  #unsaved = false;
  #lastSeq = 0;
  #firstSeq: number | undefined;
  /** Facts that were written in this life. */
  readonly #facts = new Set<string>();
  /** The tables were made in this life, so that their bounds are known. */
  #born = false;

  constructor(host: Host, alarm: AlarmClock) {
    this.#host = host;
    this.#alarm = alarm;
    this.schema = new Schema(host);
    this.inbox = new InboxTable(host.sql, this.schema);
    this.outbox = new OutboxTable(host.sql, this.schema);
    this.side = new SideTables(host.sql, this.schema);
  }

  /**
   * Runs one labelled commit. What is known in memory follows the rows: a rollback forgets it.
   */
  commit<T>(label: CommitLabel, fn: () => NotPromise<T>): T {
    const before = { identity: this.#identity, unsaved: this.#unsaved };
    try {
      const value = this.#alarm.commit(label, () => {
        if (this.schema.ensure()) {
          this.inbox.born();
          this.outbox.born();
          this.#born = true;
        }
        const result = fn();
        // With the first rows, so that a call that records nothing leaves no storage behind.
        if (this.#unsaved && this.#identity !== undefined) {
          writeMeta(this.#host.sql, "actor", JSON.stringify(this.#identity));
        }
        return result;
      });
      this.#unsaved = false;
      return value;
    } catch (error) {
      this.schema.reset();
      this.#forgetRows();
      // A move that was not committed has not happened.
      this.#identity = before.identity;
      this.#unsaved = before.unsaved;
      throw error;
    }
  }

  /** Whether this chat ever had a run of a flow: most have none, and ask nothing more. */
  get hasFlows(): boolean {
    return this.schema.has("flows");
  }

  /** Runs of flows. */
  get flows(): FlowTable {
    this.#flows ??= new FlowTable(this.#host.sql, this.schema);
    return this.#flows;
  }

  /** Whether this actor has storage at all. */
  exists(): boolean {
    return this.schema.exists();
  }

  /** Who this actor is, if it was ever told. */
  identity(): Identity | undefined {
    if (this.#identity === undefined && this.schema.exists()) {
      const text = readMeta(this.#host.sql, "actor");
      if (text !== undefined) this.#identity = JSON.parse(text) as Identity;
    }
    return this.#identity;
  }

  /** Says who this actor is; written with the next commit unless it is known. */
  identify(identity: Omit<Identity, "v">): void {
    const known = this.identity();
    const same =
      known !== undefined &&
      known.chat === identity.chat &&
      known.thread === identity.thread &&
      known.kind === identity.kind;
    if (same) return;
    this.#identity = { ...identity, v: SCHEMA_VERSION };
    this.#unsaved = true;
  }

  /** Says it from what a platform delivered, unless it is known: an old name must not undo a move. */
  identifyFrom(
    name: string,
    from: {
      connection: string;
      channel: string;
      chat: { id: string; thread?: string; kind: NonNullable<Identity["kind"]> };
    },
  ): void {
    if (this.identity() !== undefined) return;
    const { connection, channel, chat } = from;
    this.identify({
      name,
      connection,
      channel,
      chat: chat.id,
      kind: chat.kind,
      ...(chat.thread === undefined ? {} : { thread: chat.thread }),
    });
  }

  /** The next sequence number: microseconds of the clock, or one more than the last. */
  nextSeq(): number {
    if (this.#lastSeq === 0) {
      this.#lastSeq = (this.#born || !this.exists() ? undefined : this.bounds()?.last) ?? 0;
      this.outbox.since(this.#lastSeq);
    }
    this.#lastSeq = Math.max(this.#host.clock.now() * 1_000, this.#lastSeq + 1);
    this.#firstSeq ??= this.#lastSeq;
    return this.#lastSeq;
  }

  /** A rare fact of this actor; asks nothing where the tables were made in this life and it is not written. */
  fact(key: string): string | undefined {
    if (!this.exists() || (this.#born && !this.#facts.has(key))) return undefined;
    return readMeta(this.#host.sql, key) || undefined;
  }

  /** Writes a rare fact; empty removes it. Call inside a commit. */
  setFact(key: string, value: string): void {
    this.#facts.add(key);
    writeMeta(this.#host.sql, key, value);
  }

  /** The lowest and the highest number of any record; `undefined` when there is none. */
  bounds(): { first: number; last: number } | undefined {
    const [row] = this.#host.sql.all<Record<"a" | "b" | "c" | "d", number | null>>(
      `SELECT (SELECT min(seq) FROM inbox) AS a, (SELECT max(seq) FROM inbox) AS b,
         (SELECT min(turn) FROM outbox) AS c, (SELECT max(turn) FROM outbox) AS d`,
    );
    const last = Math.max(row?.b ?? 0, row?.d ?? 0);
    if (last === 0) return undefined;
    return { first: Math.min(row?.a ?? last, row?.c ?? last), last };
  }

  /** A number that no record is below, where it is known without asking: all records are of this life. */
  floor(): number | undefined {
    return this.#born ? this.#firstSeq : undefined;
  }

  /** Whether there is no record. */
  isBare(): boolean {
    return this.bounds() === undefined;
  }

  /** Whether nothing at all is kept, so that the storage can go. Where a chat has moved to is kept. */
  isEmpty(): boolean {
    if (!this.isBare() || this.side.anyState()) return false;
    return ["forward", "forward_owed", SINCE].every((key) => this.fact(key) === undefined);
  }

  /** Forgets what it knew of storage that was deleted. */
  forget(): void {
    this.schema.reset();
    this.#forgetRows();
    this.#unsaved = this.#identity !== undefined;
  }

  #forgetRows(): void {
    this.inbox.forget();
    this.outbox.forget();
    this.#born = false;
  }
}
