/**
 * What a send takes and gives: the public types of `reply`, `send`, `enqueue` and their results.
 *
 * @module
 */
import type { Content } from "../channels/content.ts";
import type { Address } from "../channels/events.ts";
import type { Duration } from "../time/duration.ts";

/** One part of a receipt. */
export interface ReceiptPart {
  /** The platform's message id. */
  id: string;
  kind: string;
  index: number;
  threadId?: string;
  replyToId?: string;
}

/** What the platform said of a message. */
export interface Receipt {
  /** Id of the first part: the one to edit or to quote. */
  primaryId: string;
  platformMessageIds: string[];
  parts: ReceiptPart[];
  /** Epoch milliseconds. */
  sentAt: number;
  status: "sent" | "delivered" | "read" | "failed";
  /** Where it went, where that is not this chat. */
  address?: Address;
}

/** How a send ended, as far as its caller waits. */
export type SendStatus = "sent" | "deferred" | "unknown" | "suppressed";

/** The result of a send. */
export interface SendResult {
  /** The outbox key: stable over replays; what lists and operators show. */
  key: string;
  /**
   * `deferred`: the inline budget is spent, the background goes on. `unknown`: it may have been sent,
   * and the channel cannot tell. `suppressed`: nothing was sent, on purpose (`reason`).
   */
  status: SendStatus;
  receipt?: Receipt;
  /** Why, where the status needs a word. */
  reason?: string;
  /** Replaces the sent message. Not journaled: repeating an edit is harmless. */
  edit(content: Content): Promise<void>;
  /** Deletes the sent message. */
  delete(): Promise<void>;
}

/** How durable one send is. */
export type Durability = "required" | "best_effort" | "disabled";

/** Options of a send. */
export interface SendOptions {
  /** Unique per chat; a second use is answered from the record and sends nothing. */
  idempotencyKey?: string | undefined;
  /**
   * `required`: no record, no call. `best_effort`: if the record cannot be written, send anyway.
   * `disabled`: no record. Default: recorded; content over `maxPayloadBytes` is sent without a record,
   * warned and counted.
   */
  durability?: Durability | undefined;
  /** Give up after this: epoch milliseconds or a date. */
  notAfter?: number | Date | undefined;
}

/** Options of a send that nobody waits for. */
export interface EnqueueOptions extends SendOptions {
  /** When to send: epoch milliseconds or a date. */
  at?: number | Date | undefined;
  /** How long to wait. */
  delay?: Duration | undefined;
  /** What a key that is already waiting does. Default `"keep"`. */
  onConflict?: "keep" | "replace" | undefined;
  /** `"settled"` records the send only when the turn settles; a turn that throws takes it back. */
  when?: "now" | "settled" | undefined;
}

/** The result of `sendBatch`, which never throws for delivery. */
export interface BatchResult {
  status: "sent" | "suppressed" | "deferred" | "unknown" | "partial_failed" | "failed";
  keys: string[];
  /** Receipts so far, in order. */
  receipts: Receipt[];
  /** The first failure. */
  error?: Error;
  /** Where it failed: before the platform, at it, or unknown. */
  stage?: "queue" | "platform_send" | "unknown";
}

/** What a `before("send")` hook sees and may change. */
export interface OutgoingSend {
  readonly key: string;
  readonly address: Address;
  content: Content;
  readonly origin: "bot" | "runtime" | "relay";
  /**
   * Whether this only shows an answer that is still being written (`ctx.stream`): the hook is asked again
   * for each look at it, and at last for the whole.
   */
  readonly preview: boolean;
  /** Stops the send; it is recorded as suppressed with this reason. */
  cancel(reason?: string): void;
}

/** What an `after("send")` listener gets. */
export interface SentEvent {
  key: string;
  address: Address;
  receipt: Receipt;
}
