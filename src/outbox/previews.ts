/**
 * Rows about the preview of a streamed answer. The answer is a row like any other; where a preview was
 * sent, it goes out as an edit of that message, which may be repeated at will. What the preview leaves
 * behind is tidied up by rows of their own, so that a crash forgets none of it.
 *
 * @module
 */
import type { Capabilities, PartReceipt, SendResult } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { isRetryableKind } from "../channels/errors.ts";
import { PARTS_PER_INTENT } from "../journal/limits.ts";
import {
  isOpen,
  type OutboxExtra,
  type OutboxRow,
  readExtra,
  UNTRIED,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { PREVIEW } from "./keys.ts";
import type { ChannelCall } from "./platform.ts";
import type { Verdict } from "./verdict.ts";

const IN_DOUBT: SendResult = {
  ok: false,
  kind: "unknown",
  evidence: "maybe_sent",
  message: "the preview that says the same may have been sent",
};

/** The preview that a row edits or removes. */
export function previewOf(core: Core, row: OutboxRow): OutboxRow | undefined {
  if (row.extra === null) return undefined;
  const { edits, deletes } = readExtra(row);
  const pos = edits ?? deletes;
  return pos === undefined ? undefined : core.journal.outbox.get(row.turn, pos);
}

/** Whether a row has to wait until it is known what became of its preview. */
export function isBehindPreview(core: Core, row: OutboxRow): boolean {
  const preview = previewOf(core, row);
  return preview !== undefined && isOpen(preview);
}

/** Whether a row tidies up after a preview that nobody has. */
export function hasNothingToDo(core: Core, row: OutboxRow): boolean {
  const { preview, edits, deletes } = readExtra(row);
  const tidies = preview === true && (edits ?? deletes) !== undefined;
  return tidies && previewOf(core, row)?.state !== "sent";
}

/**
 * The call that changes a preview, where the row has one that was sent. One that may have been sent, and says
 * the same, counts as a first try: what follows is for the policy to say.
 */
export function changeOf(core: Core, row: OutboxRow, request: JsonObject): ChannelCall | undefined {
  const preview = previewOf(core, row);
  const { same, deletes } = readExtra(row);
  if (preview?.state === "unknown" && same && row.maybes === 0) return async () => IN_DOUBT;
  if (preview?.state !== "sent") return undefined;
  const receipt = JSON.parse(preview.receipt ?? "{}") as PartReceipt;
  if (same) return async () => ({ ok: true, receipt });
  return (outbound, io) => {
    const message = { id: receipt.id, address: io.address };
    return deletes === undefined
      ? outbound.revise?.(message, request, io)
      : outbound.delete?.(message, io);
  };
}

/** A change of a message that is there may be repeated whatever was heard of the last. */
export function changeCapabilities(core: Core, row: OutboxRow, of: Capabilities): Capabilities {
  const changes = previewOf(core, row)?.state === "sent";
  return changes ? { ...of, delivery: { class: "keyed" } } : of;
}

/**
 * What becomes of an answer whose edit was refused for good: it goes out as a message of its own, and the
 * preview is removed once that was accepted.
 */
export function afterRefusedEdit(
  row: OutboxRow,
  now: number,
  result: SendResult,
): Verdict | undefined {
  const { edits, same: _same, late: _late, strays = [], ...extra } = readExtra(row);
  if (edits === undefined || extra.preview || result.ok || result.evidence !== "not_sent")
    return undefined;
  if (isRetryableKind(result.kind, result.evidence)) return undefined;
  return {
    to: "failed",
    dueAt: now,
    // What may have come through was an edit: of the message to come nothing is out.
    patch: { error_kind: result.kind, error: result.message, first_maybe_at: null, maybes: 0 },
    extra: { ...extra, strays: [...strays, edits] },
    owes: row.owed,
    outcome: "refused",
  };
}

/**
 * Writes what an answer that was just sent leaves to do: previews to remove, and an edit to repeat that an
 * earlier one may overtake. Call in the commit that changed `row`.
 */
export function leaveBehind(core: Core, row: OutboxRow): void {
  if (row.state !== "sent" || row.extra === null) return;
  const { strays = [], late, edits, preview } = readExtra(row);
  if (preview) return;
  for (const deletes of strays) tidy(core, row, core.now(), { deletes });
  if (late && edits !== undefined)
    tidy(core, row, core.now() + core.settings.outbox.sendTimeoutMs, { edits });
}

/**
 * A part that went out as a message of its own stands behind every preview, so the part after it must not
 * become an edit of one. Call in the commit that changed `row`.
 */
export function breakAway(core: Core, row: OutboxRow, next: OutboxRow): void {
  if (next.extra === null || next.first_maybe_at !== null) return;
  if (row.state !== "sent" || previewOf(core, row)?.state === "sent") return;
  const { edits, same: _same, late: _late, strays = [], ...extra } = readExtra(next);
  if (edits === undefined) return;
  core.journal.outbox.update(next, { extra: writeExtra({ ...extra, strays: [...strays, edits] }) });
}

/** Gives a preview up that is not out yet: its answer is there. Call inside a commit. Returns whether it did. */
export function dropUnsent(core: Core, preview: OutboxRow, inFlight: boolean): boolean {
  const waits = preview.state === "pending" || preview.state === "failed";
  if (!waits || preview.first_maybe_at !== null || inFlight) return false;
  core.journal.outbox.move(preview, "suppressed", {
    due_at: null,
    finished_at: core.now(),
    extra: writeExtra({ ...readExtra(preview), reason: "no_preview" }),
  });
  return true;
}

/** Removes a preview whose answer never comes. Call inside a commit. */
export function removePreview(core: Core, preview: OutboxRow): void {
  tidy(core, preview, core.now(), { deletes: preview.pos });
}

/** Inserts a row that tidies up, unless it is there: in the positions of `row`'s intent, from the end. */
function tidy(
  core: Core,
  row: OutboxRow,
  dueAt: number,
  what: Pick<OutboxExtra, "edits" | "deletes">,
): void {
  const { outbox } = core.journal;
  if (what.deletes !== undefined && core.channel().outbound.delete === undefined) return;
  const slot = `${row.slot}${PREVIEW}${Object.keys(what)[0]}${row.part}.${Object.values(what)[0]}`;
  let pos = row.pos - (row.pos % PARTS_PER_INTENT) + PARTS_PER_INTENT - 1;
  for (; ; pos -= 1) {
    const there = outbox.get(row.turn, pos);
    if (there === undefined) break;
    if (there.slot === slot) return;
  }
  outbox.insert({
    ...row,
    ...UNTRIED,
    pos,
    slot,
    part: 0,
    key: null,
    due_at: dueAt,
    not_after: null,
    created_at: core.now(),
    content: null,
    fingerprint: null,
    origin: "runtime",
    extra: writeExtra({ preview: true, ...what }),
  });
  core.alarm.arm(dueAt);
}
