/**
 * The client: what code outside a turn (listeners, cron, your own routes) may do with chats.
 *
 * @module
 */
import type { Content, Json } from "../channels/content.ts";
import type { ErrorKind } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type {
  Flow,
  RunRecord,
  RunRow,
  RunState,
  StartedRun,
  StartOptions,
} from "../flows/types.ts";
import type { InboxFilter } from "../journal/InboxTable.ts";
import type { AttemptLogEntry, InboxState, OutboxState } from "../journal/records.ts";
import type { MetricValues } from "../objects/Metrics.ts";
import type { EnqueueOptions, Receipt, SendOptions, SendResult } from "./sends.ts";

/** Which page of a list. */
export interface Page {
  /** From the last page; absent for the first. */
  cursor?: string | undefined;
  /** Rows per page, 1 to 200. Default 50. */
  limit?: number | undefined;
}

/** One record in a list. */
export interface ListRow<State extends string> {
  /** Opaque: what `replayInbound`, `retrySend` and `discard` take. */
  ref: string;
  /** The inbox id, or the outbox key. */
  id: string;
  key?: string;
  /** As `formatAddress` writes it. */
  address: string;
  state: State;
  /** The event's kind, or the send's error kind. */
  kind: string;
  error?: string;
  /** Epoch milliseconds. */
  at: number;
}

/** A page of records, newest first in each chat. */
export interface Listing<State extends string> {
  rows: ListRow<State>[];
  /** For the next page; absent on the last. A page may have fewer rows than asked for, even none. */
  cursor?: string;
  /** Chats, by address, that did not answer: their records are not on this page. Absent where all did. */
  unreachable?: string[];
}

/** A chat with something unfinished beyond its turn, as it reported itself. */
export interface UnfinishedChat {
  /** As `formatAddress` writes it. */
  address: string;
  /** Records that somebody has to look at, counted up to 100. `failed`: turns whose handler threw. */
  dead: number;
  unknown: number;
  failed: number;
  /** When work is due next: epoch milliseconds. Absent where none is. */
  dueAt?: number;
  /** When it reported: epoch milliseconds. */
  at: number;
}

/** A page of chats. */
export interface UnfinishedChats {
  rows: UnfinishedChat[];
  /** For the next page; absent on the last. */
  cursor?: string;
}

/** How many chats need a look. */
export interface ChatCounts {
  /** Chats with something unfinished beyond its turn. */
  unfinished: number;
  /** Of those, the ones that slept past the time of their work. */
  overdue: number;
}

/** Which dead sends {@link DurabilityClient.retryDead} tries again. */
export interface RetryDeadOptions extends Page {
  connection: string;
  /** Why they died. Default: `auth` and `permission`, what a wrong token does to everything. */
  kinds?: readonly ErrorKind[] | undefined;
}

/** What one slice of {@link DurabilityClient.retryDead} did. */
export interface RetriedDead {
  /** Sends that go out again. */
  retried: number;
  /** Dead sends of other kinds, and parts that went with their first. */
  skipped: number;
  /** Sends whose chat did not answer; trying again from the start does not double anything. */
  failed: { ref: string; error: string }[];
  /** As in a {@link Listing}. */
  unreachable?: string[];
  /** For the next slice; absent after the last. */
  cursor?: string;
}

/** One inbox record in full. */
export interface InboxRecord extends ListRow<InboxState | "failed"> {
  runs: number;
  receivedAt: number;
  finishedAt?: number;
  /** The event, as journaled. */
  event: unknown;
}

/** One outbox record (a part of a send) in full. */
export interface OutboxRecord extends ListRow<OutboxState> {
  key: string;
  attempts: number;
  /** When it is looked at next. */
  dueAt?: number;
  receipt?: Receipt;
  content?: unknown;
  attemptLog: AttemptLogEntry[];
  /** Why it was suppressed. */
  reason?: string;
}

/** One entry of the chat's event log. */
export interface LogEntry {
  /** Opaque, in order; for `log({ after })`. */
  cursor: string;
  at: number;
  type: "event" | "send";
  /** Of an event: its kind, such as `message`. */
  kind?: string;
  id: string;
  state: string;
  text?: string;
}

/** State of a chat or of one of its users: read now, written at once. */
export interface StateAccess {
  get<T = Json>(key: string): Promise<T | undefined>;
  set(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
}

/** One chat, from outside its turns. */
export interface ChatClient {
  /**
   * Sends and waits for delivery up to `outbox.inlineMaxMs`.
   * @throws {SendDeferredError} when the background has to go on; look its `key` up later
   * @throws {DeliveryError} when the send died
   */
  send(content: Content, options?: SendOptions): Promise<SendResult>;
  /** Records a send and returns at once. */
  enqueue(content: Content, options?: EnqueueOptions): Promise<SendResult>;
  /** Cancels a send that has not begun. Resolves to whether it did. */
  cancel(key: string): Promise<boolean>;
  /** Journals an external event; a second one with the same id is dropped. */
  sendEvent(event: { type: string; id: string; data?: unknown }): Promise<{ accepted: boolean }>;
  /**
   * Starts a run of a flow; it begins as a turn of its own. @throws {ConfigError} for an unknown flow
   */
  start<Input>(
    flow: Flow<Input, unknown>,
    ...input: undefined extends Input
      ? [input?: Input, options?: StartOptions]
      : [input: Input, options?: StartOptions]
  ): Promise<StartedRun>;
  /** Runs of flows. */
  readonly flows: {
    list(
      options?: Page & { state?: RunState | undefined },
    ): Promise<{ rows: RunRow[]; cursor?: string }>;
    get(id: string): Promise<RunRecord | undefined>;
    /** Ends a run that is active. Resolves to whether it was. */
    cancel(id: string): Promise<boolean>;
  };
  readonly state: StateAccess;
  readonly inbox: {
    list(
      options?: Page & { state?: InboxFilter | undefined },
    ): Promise<Listing<InboxState | "failed">>;
    get(id: string): Promise<InboxRecord | undefined>;
    /** Runs the event again. A done one re-sends nothing. */
    replay(id: string): Promise<boolean>;
  };
  readonly outbox: {
    list(options?: Page & { state?: OutboxState | undefined }): Promise<Listing<OutboxState>>;
    get(key: string): Promise<OutboxRecord | undefined>;
    /** Sends a dead, failed or unknown record again, with a fresh budget. */
    retry(key: string): Promise<boolean>;
    /** Gives a record up. */
    discard(key: string): Promise<boolean>;
  };
  /** The journal as an event log, oldest first. */
  log(options?: { after?: string | undefined; limit?: number | undefined }): Promise<LogEntry[]>;
  metrics(): Promise<MetricValues>;
}

/** Lists and operations across chats. */
export interface DurabilityClient {
  readonly inbox: {
    list(
      options: Page & { state: InboxFilter; chat?: Address | string | undefined },
    ): Promise<Listing<InboxState | "failed">>;
  };
  readonly outbox: {
    list(
      options: Page & { state: OutboxState; chat?: Address | string | undefined },
    ): Promise<Listing<OutboxState>>;
  };
  /** Chats with something dead, unknown, failed, deferred, scheduled or recovered. */
  chats(options?: Page & { connection?: string | undefined }): Promise<UnfinishedChats>;
  /** How many such chats there are. */
  counts(): Promise<ChatCounts>;
  /** One record in full, by its `ref`; `undefined` where it is gone. */
  record(ref: string): Promise<InboxRecord | OutboxRecord | undefined>;
  /** Runs an event again, by its `ref`. */
  replayInbound(ref: string): Promise<boolean>;
  /** Sends a dead, failed or unknown record again, by its `ref`. */
  retrySend(ref: string): Promise<boolean>;
  /** Gives a record up, by its `ref`. */
  discard(ref: string): Promise<boolean>;
  /** Sends again, slice by slice, what died of `auth` or `permission`, once the cause is mended. */
  retryDead(options: RetryDeadOptions): Promise<RetriedDead>;
  /**
   * Counters of all chats. Those of a chat arrive with its next report, at the latest a lease later; what
   * was counted since the last report of a process that was killed is not in them.
   */
  metrics(): Promise<MetricValues>;
}

/** The client. */
export interface Client {
  chat(address: Address | string): ChatClient;
  readonly durability: DurabilityClient;
  /**
   * Continues a run by the token of its hook. Resolves once that is committed; `accepted` is false where it
   * was before.
   *
   * @throws {HoldfastError} `hook_invalid` for a token that is not one, `hook_gone` where the run is over
   */
  resume(token: string, payload?: unknown): Promise<{ accepted: boolean }>;
  /** Replaces a sent message. Not journaled: repeating an edit is harmless. */
  edit(message: MessageRef, content: Content): Promise<void>;
}

/** A sent message: where, and the platform's id. */
export interface MessageRef {
  address: Address;
  id: string;
}
