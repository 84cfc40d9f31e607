/** From rows to what callers see: receipts, results, errors. @module */
import { type DeliveryError, deliveryErrorOf, type ErrorKind } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { type OutboxRow, readExtra } from "../journal/records.ts";
import type { Receipt, ReceiptPart } from "../turns/sends.ts";

interface StoredPart {
  id: string;
  kind: string;
  threadId?: string;
  replyToId?: string;
  at?: number;
}

/** The receipt of an intent's sent parts. */
export function receiptOf(rows: readonly OutboxRow[]): Receipt {
  const parts: ReceiptPart[] = [];
  let sentAt = 0;
  let status: Receipt["status"] = "sent";
  let address: Address | undefined;
  for (const row of rows) {
    if (row.receipt === null) continue;
    const stored = readReceipt(row.receipt);
    if (stored === undefined) continue;
    const { at, ...part } = stored;
    parts.push({ ...part, index: row.part });
    sentAt = Math.max(sentAt, at ?? 0);
    status = readExtra(row).delivery ?? status;
    if (row.address !== null) address = JSON.parse(row.address) as Address;
  }
  return {
    primaryId: parts[0]?.id ?? "",
    platformMessageIds: parts.map((part) => part.id),
    parts,
    sentAt,
    status,
    ...(address === undefined ? {} : { address }),
  };
}

function readReceipt(text: string): StoredPart | undefined {
  try {
    return JSON.parse(text) as StoredPart;
  } catch {
    return undefined;
  }
}

/** Why nothing was sent, where that is on record. */
export function reasonOf(rows: readonly OutboxRow[]): string | undefined {
  const suppressed = rows.find((row) => row.state === "suppressed");
  return suppressed && readExtra(suppressed).reason;
}

/** The error of a dead intent: the same on every replay. */
export function errorOf(rows: readonly OutboxRow[], key: string): DeliveryError {
  const dead = rows.find((row) => row.state === "dead");
  return deliveryErrorOf(dead?.error ?? "the send died", {
    kind: (dead?.error_kind ?? "unknown") as ErrorKind,
    key,
    sentParts: receiptOf(rows).platformMessageIds,
  });
}
