/**
 * What a client may do with one chat: each method is one call of the actor, JSON in and out.
 *
 * @module
 */
import type { Content } from "../channels/content.ts";
import { ConfigError } from "../channels/errors.ts";
import { type WireError, wireError } from "../channels/wireError.ts";
import type { Flows, ResumeAnswer, StartInput } from "../flows/Flows.ts";
import { listRuns, type RunListing, runRecord } from "../flows/listing.ts";
import type { RunRecord, StartedRun } from "../flows/types.ts";
import type { FlowState } from "../journal/FlowTable.ts";
import type { InboxFilter } from "../journal/InboxTable.ts";
import {
  type AttemptLogEntry,
  type InboxRow,
  isOpen,
  type OutboxRow,
  type OutboxState,
  readExtra,
} from "../journal/records.ts";
import type { Intent } from "../outbox/draft.ts";
import { encodeKey, explicitSlot, parseKey } from "../outbox/keys.ts";
import { publicKeyOf } from "../outbox/publicKey.ts";
import type { RelayInput } from "../outbox/relay.ts";
import { errorOf, reasonOf, receiptOf } from "../outbox/results.ts";
import type { InboxRecord, Listing, ListRow, OutboxRecord } from "../turns/Client.ts";
import type { EnqueueOptions } from "../turns/sends.ts";
import { refuseTooLarge } from "../turns/tooLarge.ts";
import type { ChatLog } from "./ChatLog.ts";
import type { Core } from "./Core.ts";
import type { Inbox } from "./Inbox.ts";
import type { MetricValues } from "./Metrics.ts";
import { formatAddress } from "./names.ts";
import type { Outbox } from "./Outbox.ts";
import { makeRef, pageSize, readCursor } from "./paging.ts";
import type { SideCalls } from "./SideCalls.ts";

/** A client's send. */
export interface SendInput {
  content: Content;
  options: EnqueueOptions;
  wait: boolean;
  origin?: "bot" | "runtime";
}

/** Methods of a chat, by name. */
export interface ChatMethods {
  send(input: SendInput): Promise<WireSend>;
  relay(input: RelayInput): Promise<{ key: string }>;
  edit(input: { id: string; content: Content }): Promise<null>;
  delete(input: { id: string }): Promise<null>;
  cancel(input: { key: string }): boolean;
  listInbox(input: { state?: InboxFilter; cursor?: string; limit?: number }): Listing<InboxFilter>;
  getInbox(input: { id: string }): InboxRecord | null;
  replay(input: { id: string }): boolean;
  discardEvent(input: { id: string }): boolean;
  listOutbox(input: { state?: OutboxState; cursor?: string; limit?: number }): Listing<OutboxState>;
  getOutbox(input: { key: string }): OutboxRecord | null;
  retry(input: { key: string }): boolean;
  discardSend(input: { key: string }): boolean;
  log(input: { after?: string; limit?: number }): unknown;
  readState(input: { key: string }): unknown;
  writeState(input: { key: string; value?: string }): null;
  startFlow(input: StartInput): StartedRun;
  resumeFlow(input: { run: string; hook: number; payload: unknown }): ResumeAnswer;
  cancelFlow(input: { id: string }): boolean;
  listFlows(input: { state?: FlowState; cursor?: string; limit?: number }): RunListing;
  getFlow(input: { id: string }): RunRecord | null;
  metrics(): MetricValues;
}

/** What a client's send comes back as. */
export interface WireSend {
  key: string;
  status: string;
  receipt?: unknown;
  reason?: string;
  error?: WireError;
}

/** The operations of one chat. */
export class Operations implements ChatMethods {
  readonly #core: Core;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #side: SideCalls;
  readonly #log: ChatLog;
  readonly #flows: () => Flows;

  constructor(
    core: Core,
    inbox: Inbox,
    outbox: Outbox,
    side: SideCalls,
    log: ChatLog,
    flows: () => Flows,
  ) {
    this.#core = core;
    this.#inbox = inbox;
    this.#outbox = outbox;
    this.#side = side;
    this.#log = log;
    this.#flows = flows;
  }

  async send(input: SendInput): Promise<WireSend> {
    const intent: Intent = {
      scope: "",
      content: input.content,
      options: input.options,
      wait: input.wait,
      origin: input.origin ?? "bot",
    };
    const { key, outcome, reason: known } = await this.#outbox.intend(intent);
    const reason = known ?? (outcome.status === "suppressed" ? reasonOf(outcome.rows) : undefined);
    const answer: WireSend = {
      key,
      status: outcome.status,
      ...(reason === undefined ? {} : { reason }),
    };
    if (outcome.status === "sent") answer.receipt = receiptOf(outcome.rows);
    if (outcome.status === "dead") answer.error = wireError(errorOf(outcome.rows, key));
    return answer;
  }

  /** Takes a send from another chat of the same bot: recorded once, delivered from here. */
  async relay(input: RelayInput): Promise<{ key: string }> {
    const own = this.#core.name.split("/").slice(0, 3).join("/");
    if (input.from.split("/").slice(0, 3).join("/") !== own) {
      throw new ConfigError("a relay goes to chats of the same bot only", { kind: "permission" });
    }
    const options = {
      idempotencyKey: input.key,
      ...(input.notAfter === undefined ? {} : { notAfter: input.notAfter }),
    };
    const intent: Intent = {
      scope: "",
      content: input.content as Content,
      options,
      wait: false,
      origin: "relay",
    };
    const { key } = await this.#outbox.intend(intent);
    return { key };
  }

  async edit(input: { id: string; content: Content }): Promise<null> {
    await this.#side.edit(input.id, input.content);
    return null;
  }

  async delete(input: { id: string }): Promise<null> {
    await this.#side.delete(input.id);
    return null;
  }

  cancel({ key }: { key: string }): boolean {
    const head = this.#headOf(key);
    return head !== undefined && this.#outbox.cancel(head);
  }

  listInbox(input: { state?: InboxFilter; cursor?: string; limit?: number }): Listing<InboxFilter> {
    if (!this.#core.journal.exists()) return { rows: [] };
    const limit = pageSize(input.limit);
    const before =
      input.cursor === undefined ? Number.MAX_SAFE_INTEGER : readCursor(input.cursor).turn;
    const rows = this.#core.journal.inbox.list(input.state, before, limit);
    const last = rows.at(-1);
    return {
      rows: rows.map((row) => this.#inboxRow(row)),
      ...(rows.length === limit && last !== undefined ? { cursor: `${last.seq}.0` } : {}),
    };
  }

  getInbox({ id }: { id: string }): InboxRecord | null {
    const row = this.#core.journal.exists() ? this.#core.journal.inbox.byId(id) : undefined;
    if (row === undefined) return null;
    return {
      ...this.#inboxRow(row),
      runs: row.runs,
      receivedAt: row.received_at,
      ...(row.finished_at === null ? {} : { finishedAt: row.finished_at }),
      event: parseOr(row.payload),
    };
  }

  replay({ id }: { id: string }): boolean {
    const row = this.#core.journal.exists() ? this.#core.journal.inbox.byId(id) : undefined;
    return row !== undefined && this.#inbox.replay(row);
  }

  discardEvent({ id }: { id: string }): boolean {
    const row = this.#core.journal.exists() ? this.#core.journal.inbox.byId(id) : undefined;
    return row !== undefined && this.#inbox.discard(row);
  }

  listOutbox(input: {
    state?: OutboxState;
    cursor?: string;
    limit?: number;
  }): Listing<OutboxState> {
    if (!this.#core.journal.exists()) return { rows: [] };
    const limit = pageSize(input.limit);
    const before =
      input.cursor === undefined
        ? { turn: Number.MAX_SAFE_INTEGER, pos: 0 }
        : readCursor(input.cursor);
    const rows = this.#core.journal.outbox.list(input.state, before, limit);
    const last = rows.at(-1);
    return {
      rows: rows.map((row) => this.#outboxRow(row)),
      ...(rows.length === limit && last !== undefined
        ? { cursor: `${last.turn}.${last.pos}` }
        : {}),
    };
  }

  getOutbox({ key }: { key: string }): OutboxRecord | null {
    const row = this.#partOf(key);
    if (row === undefined) return null;
    const reason = readExtra(row).reason;
    const rows = row.part === 0 ? this.#core.journal.outbox.partsOf(row) : [row];
    return {
      ...this.#outboxRow(row),
      attempts: row.attempts,
      ...(row.due_at === null || !isOpen(row) ? {} : { dueAt: row.due_at }),
      ...(row.receipt === null ? {} : { receipt: receiptOf(rows) }),
      ...(row.content === null ? {} : { content: parseOr(row.content) }),
      attemptLog:
        row.attempt_log === null ? [] : (JSON.parse(row.attempt_log) as AttemptLogEntry[]),
      ...(reason === undefined ? {} : { reason }),
    };
  }

  retry({ key }: { key: string }): boolean {
    const head = this.#headOf(key);
    return head !== undefined && this.#outbox.retry(head);
  }

  discardSend({ key }: { key: string }): boolean {
    const row = this.#partOf(key);
    return row !== undefined && this.#outbox.discard(row);
  }

  log(input: { after?: string; limit?: number }): unknown {
    return this.#log.after(input.after, input.limit ?? 100);
  }

  readState({ key }: { key: string }): unknown {
    return {
      value: this.#core.journal.exists()
        ? (this.#core.journal.side.readState("", key) ?? null)
        : null,
    };
  }

  writeState({ key, value }: { key: string; value?: string }): null {
    if (value !== undefined) refuseTooLarge(`state "${key}"`, value);
    this.#core.journal.commit("state.write", () => {
      this.#core.journal.side.writeState([{ scope: "", key, value }]);
    });
    return null;
  }

  startFlow(input: StartInput): StartedRun {
    return this.#flows().start(input);
  }

  resumeFlow(input: { run: string; hook: number; payload: unknown }): ResumeAnswer {
    return this.#flows().resume(input.run, input.hook, input.payload);
  }

  cancelFlow({ id }: { id: string }): boolean {
    return this.#flows().cancel(id);
  }

  listFlows(input: { state?: FlowState; cursor?: string; limit?: number }): RunListing {
    return listRuns(this.#core.journal, input.state, input.cursor, pageSize(input.limit));
  }

  getFlow({ id }: { id: string }): RunRecord | null {
    return runRecord(this.#core.journal, id);
  }

  metrics(): MetricValues {
    return this.#core.metrics.total();
  }

  /** The part that a key names: an explicit or random key, or `<inbox id>:<slot>`, each with `#part`. */
  #named(key: string): { head: OutboxRow; part: number } | undefined {
    const { journal } = this.#core;
    if (!journal.exists()) return undefined;
    // As the bot gave it, first: a key of its own may look like another's part.
    const given = journal.outbox.byKey(encodeKey(key)) ?? journal.outbox.byKey(key);
    if (given !== undefined) return { head: given, part: 0 };
    const { head, part, inboxId, slot } = parseKey(key);
    const own = journal.outbox.byKey(head) ?? journal.outbox.byKey(encodeKey(head));
    if (own !== undefined) return { head: own, part };
    const event = inboxId === undefined ? undefined : journal.inbox.byId(inboxId);
    const found =
      event &&
      journal.outbox
        .ofTurn(event.seq)
        .find(
          (row) => row.part === 0 && (row.slot === slot || row.slot === explicitSlot(slot ?? "")),
        );
    return found && { head: found, part };
  }

  #headOf(key: string): OutboxRow | undefined {
    return this.#named(key)?.head;
  }

  #partOf(key: string): OutboxRow | undefined {
    const named = this.#named(key);
    return (
      named && this.#core.journal.outbox.partsOf(named.head).find((one) => one.part === named.part)
    );
  }

  /** The key of a row, as people see it. */
  keyOf(row: OutboxRow): string {
    return publicKeyOf(this.#core.journal, row);
  }

  #inboxRow(row: InboxRow): ListRow<InboxFilter> {
    return {
      ref: makeRef(this.#core.name, "in", row.id),
      id: row.id,
      address: formatAddress(this.#core.address()),
      state: row.state === "done" && row.error !== null ? "failed" : row.state,
      kind: row.kind,
      ...(row.error === null ? {} : { error: row.error }),
      at: row.finished_at ?? row.received_at,
    };
  }

  #outboxRow(row: OutboxRow): ListRow<OutboxState> & { key: string } {
    const key = this.keyOf(row);
    return {
      ref: makeRef(this.#core.name, "out", key),
      id: key,
      key,
      address: formatAddress(row.address === null ? this.#core.address() : JSON.parse(row.address)),
      state: row.state,
      kind: row.error_kind ?? "",
      ...(row.error === null ? {} : { error: row.error }),
      at: row.finished_at ?? row.created_at,
    };
  }
}

function parseOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
