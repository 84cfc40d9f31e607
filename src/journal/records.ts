/**
 * The records of the journal and the only ways that they may change. The tables below are behind every
 * `UPDATE` that moves a state; `transitions.ts` says each move in words.
 *
 * @module
 */

/** States of an inbox record. */
export type InboxState = "pending" | "processing" | "done" | "dead";

/** States of an outbox record. */
export type OutboxState =
  | "pending"
  | "sending"
  | "sent"
  | "failed"
  | "unknown"
  | "suppressed"
  | "dead";

/** Where an inbox record may move. Why, in words: `transitions.ts`, which no bundle carries. */
export const INBOX_MOVES: Readonly<Record<InboxState, readonly InboxState[]>> = {
  pending: ["processing", "done", "dead"],
  processing: ["processing", "pending", "done", "dead"],
  done: ["pending"],
  dead: ["pending"],
};

/** Where an outbox record may move. */
export const OUTBOX_MOVES: Readonly<Record<OutboxState, readonly OutboxState[]>> = {
  pending: ["sending", "suppressed", "dead"],
  sending: ["sent", "failed", "unknown", "dead"],
  sent: ["dead"],
  failed: ["sending", "sent", "unknown", "suppressed", "dead"],
  unknown: ["sent", "sending", "suppressed", "dead"],
  suppressed: [],
  dead: ["pending"],
};

/** A change of state that no table permits: a bug, never the user's fault. */
export class IllegalTransitionError extends Error {
  constructor(record: string, from: string, to: string) {
    super(`${record} must not move from ${from} to ${to}`);
    this.name = "IllegalTransitionError";
  }
}

/** @throws {IllegalTransitionError} unless the table permits the move */
export function enforceInbox(from: InboxState, to: InboxState): void {
  if (!INBOX_MOVES[from].includes(to))
    throw new IllegalTransitionError("an inbox record", from, to);
}

/** @throws {IllegalTransitionError} unless the table permits the move */
export function enforceOutbox(from: OutboxState, to: OutboxState): void {
  if (!OUTBOX_MOVES[from].includes(to))
    throw new IllegalTransitionError("an outbox record", from, to);
}

/** States in which an outbox record needs nothing more by itself. */
export function isFinal(state: OutboxState): boolean {
  return state === "sent" || state === "suppressed" || state === "dead";
}

/** What a record still has to announce; bits of `owed`. */
export const OWES = { ambiguous: 1, dead: 2, afterSend: 4 } as const;

/** Bits of an inbox record's `flags`. */
export const FLAG = {
  /** An explicit long retry: later events may pass. */
  parked: 1,
  /** Its state was committed once: a replay must not apply it again. */
  applied: 2,
  /** A newer message of its sender stopped its turn: it is not run again. */
  interrupted: 4,
  /** The handler refused it (`nack`): a redelivery brings its next run forward. */
  nacked: 8,
  /** A run of a flow took it: a replay does not give it to the run again. */
  inRun: 16,
} as const;

/** How the error of a record begins that an operator gave up: nobody has to look at it any more. */
export const DISCARDED = "discarded by an operator";

/** One event, as journaled. */
export interface InboxRow {
  seq: number;
  id: string;
  semantic: string | null;
  kind: string;
  state: InboxState;
  /** Fences a run: incarnation and counter of the claim that owns the row. */
  claim: string | null;
  runs: number;
  stalled: number;
  /** High-water mark of recorded ordinals and steps at the last claim. */
  progress: number;
  /** Not before (epoch ms); null means now. */
  due_at: number | null;
  /** Bits of {@link FLAG}. */
  flags: number;
  received_at: number;
  finished_at: number | null;
  error: string | null;
  payload: string;
  /** Bits of {@link OWES}. */
  owed: number;
  /** 1 while unfinished or not yet announced: the predicate of the one hot index. */
  open: number;
}

/** One part of one intent, as journaled. */
export interface OutboxRow {
  /** The turn that it belongs to, or its own number where no turn made it. */
  turn: number;
  /** Order within the turn. */
  pos: number;
  /** Which call of the turn made it: `<n>`, `<step>/<n>`, `<n>~<fingerprint>`, `=<key>`; empty out of turn. */
  slot: string;
  /** 0 for the first part. */
  part: number;
  /** Explicit, relay or random key, on part 0; null where `<inbox id>:<slot>` is the key. */
  key: string | null;
  state: OutboxState;
  claim: string | null;
  attempts: number;
  /** How many attempts may have been sent since the last proof. */
  maybes: number;
  first_maybe_at: number | null;
  /** When somebody must look at this row; null while a live turn holds it, or never. */
  due_at: number | null;
  not_after: number | null;
  created_at: number;
  finished_at: number | null;
  /** Content after hooks, on part 0. */
  content: string | null;
  /** Of the content before hooks, on part 0. */
  fingerprint: string | null;
  /** The rendered platform call, without credentials. */
  request: string;
  marker: string | null;
  /** Counts markers: a new one is a new identity to the platform. */
  generation: number;
  receipt: string | null;
  error_kind: string | null;
  error: string | null;
  attempt_log: string | null;
  origin: "bot" | "runtime" | "relay";
  /** Bits of {@link OWES}. */
  owed: number;
  /** Where it goes, where that is not the actor's own chat. */
  address: string | null;
  /** Rare settings as JSON ({@link OutboxExtra}). */
  extra: string | null;
}

/** What a record has that nobody has tried to send. */
export const UNTRIED = {
  state: "pending",
  claim: null,
  attempts: 0,
  maybes: 0,
  first_maybe_at: null,
  finished_at: null,
  marker: null,
  generation: 0,
  receipt: null,
  error_kind: null,
  error: null,
  attempt_log: null,
  owed: 0,
} as const satisfies Partial<OutboxRow>;

/** Rare settings of an outbox record. */
export interface OutboxExtra {
  /** Why it was suppressed. */
  reason?: string;
  /** Render again before the next attempt: an operator retries what other code refused. */
  rerender?: true;
  /** Rendered as plain text after the platform refused the formatting. */
  plain?: true;
  /** An operator accepted a possible duplicate: skip the lookup and send. */
  resend?: true;
  /** A blind repeat that waits for the channel's self test. */
  probe?: true;
  /** Unknown for good, as far as the runtime can tell: nothing more is tried by itself. */
  held?: true;
  /** Divergence: what replaces this row once it is proven unsent. */
  superseded?: true;
  /** Goes to another chat's actor, which delivers it. */
  relay?: true;
  /** Chat moves followed, so that two chats that point at each other end. */
  moves?: number;
  /** Lookups made since the last attempt. */
  lookups?: number;
  /** The marker's window ended before the send was settled: the channel's weaker class counts now. */
  windowOver?: true;
  /** Repeats on a channel that cannot tell, granted by policy. */
  resends?: number;
  /** Waits for rate limits in a row. */
  limited?: number;
  /** Whether the ambiguity was announced with which action. */
  action?: AmbiguousAction;
  /** Why it is ambiguous. */
  cause?: string;
  /** When a scheduled send was first due: its age counts from there. */
  at?: number;
  /** Last delivery status by the platform. */
  delivery?: "delivered" | "read" | "failed";
  /** About the preview of a streamed answer, not the answer itself: the preview, or what tidies up after it. */
  preview?: true;
  /** Of a preview: it goes where its answer does not come, however the turn ends. */
  remove?: true;
  /** Delivered by an edit of the preview at this place of the turn, where that was sent. */
  edits?: number;
  /** That message reads like this already. */
  same?: true;
  /** An edit of it may still be on its way: this one is repeated after it. */
  late?: true;
  /** Previews that are removed once this is sent. */
  strays?: number[];
  /** Removes the preview at this place of the turn. */
  deletes?: number;
}

/** What the runtime did about an ambiguous send. */
export type AmbiguousAction = "held" | "resent" | "looked up";

/** One attempt, for people; at most {@link ATTEMPT_LOG_LENGTH} are kept. */
export interface AttemptLogEntry {
  at: number;
  outcome: string;
  kind?: string;
  code?: string;
  message?: string;
}

/** How many attempts a record remembers. */
export const ATTEMPT_LOG_LENGTH = 20;

/** Whether a row still keeps the parts behind it waiting. */
export function isOpen(row: Pick<OutboxRow, "state" | "extra">): boolean {
  if (isFinal(row.state)) return false;
  return row.state !== "unknown" || readExtra(row).held !== true;
}

/** A row's rare settings; none where they cannot be read (`unreadable` says so and ends the row). */
export function readExtra(row: Pick<OutboxRow, "extra">): OutboxExtra {
  if (row.extra === null) return {};
  try {
    return JSON.parse(row.extra) as OutboxExtra;
  } catch {
    return {};
  }
}

/** Which column of an outbox row cannot be read, if one cannot. */
export function unreadable(row: OutboxRow): string | undefined {
  for (const name of [
    "request",
    "content",
    "extra",
    "address",
    "receipt",
    "attempt_log",
  ] as const) {
    const text = row[name];
    if (text === null) continue;
    try {
      JSON.parse(text);
    } catch {
      return name;
    }
  }
  return undefined;
}

/** A row's rare settings as its column holds them. */
export function writeExtra(extra: OutboxExtra): string | null {
  return Object.keys(extra).length === 0 ? null : JSON.stringify(extra);
}
