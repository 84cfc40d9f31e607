/** The result of `sendBatch` from the results of its items. @module */
import { HoldfastError } from "../channels/errors.ts";
import { isRefusal } from "../journal/refusal.ts";
import type { Decided } from "../outbox/draft.ts";
import { errorOf, receiptOf } from "../outbox/results.ts";
import type { BatchResult } from "./sends.ts";

/** Waits for every item; never rejects. */
export async function batchOf(items: readonly Promise<Decided>[]): Promise<BatchResult> {
  const result: BatchResult = { status: "suppressed", keys: [], receipts: [] };
  const seen = new Set<string>();
  for (const settled of await Promise.allSettled(items)) {
    if (settled.status === "rejected") {
      seen.add("failed");
      const error =
        settled.reason instanceof Error ? settled.reason : new Error(String(settled.reason));
      // What passes by itself is not to be hidden by what does not.
      result.error = isRefusal(error) ? error : (result.error ?? error);
      result.stage ??= settled.reason instanceof HoldfastError ? "queue" : "unknown";
      continue;
    }
    const { key, outcome } = settled.value;
    result.keys.push(key);
    if (outcome.status === "sent") result.receipts.push(receiptOf(outcome.rows));
    if (outcome.status === "dead") {
      seen.add("failed");
      const error = errorOf(outcome.rows, key);
      if (error.sentParts.length > 0) result.receipts.push(receiptOf(outcome.rows));
      result.error ??= error;
      result.stage ??= "platform_send";
    } else {
      seen.add(outcome.status);
    }
  }
  if (seen.has("failed")) result.status = result.receipts.length > 0 ? "partial_failed" : "failed";
  else if (seen.has("unknown")) result.status = "unknown";
  else if (seen.has("deferred")) result.status = "deferred";
  else if (seen.has("sent")) result.status = "sent";
  return result;
}
