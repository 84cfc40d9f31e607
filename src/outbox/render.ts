/**
 * From content to parts, and again at delivery where a deploy has changed the platform's limit.
 *
 * @module
 */
import type { RenderedPart } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { PayloadTooLargeError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { PARTS_PER_INTENT } from "../journal/limits.ts";
import { type OutboxRow, readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { forRender, type NormalContent, renderButtons } from "./content.ts";
import { fingerprintOf } from "./keys.ts";

/** Parts of an intent, and the button data that is too long for the platform. */
export interface Rendered {
  parts: RenderedPart[];
  kept: { id: string; value: string }[];
}

/**
 * Renders content for the chat's channel.
 * @throws {UnsupportedContentError} for a kind that the channel does not declare
 */
export function renderContent(
  core: Core,
  content: NormalContent,
  address: Address,
  place: string,
): Rendered {
  const channel = core.channel();
  const configured = channel.configure(core.host.env);
  const kept: Rendered["kept"] = [];
  const buttons =
    content.buttons === undefined
      ? undefined
      : renderButtons(content.buttons, channel.capabilities.buttonDataBytes, (value) => {
          const id = fingerprintOf(place, value);
          kept.push({ id, value });
          return id;
        });
  const target = { address, options: configured.ok ? configured.options : undefined };
  const parts = channel.outbound.render(forRender(content, buttons), target);
  if (parts.length > PARTS_PER_INTENT) {
    throw new PayloadTooLargeError(
      `this message would be ${parts.length} messages on ${channel.name}; ${PARTS_PER_INTENT} are allowed`,
    );
  }
  return { parts, kept };
}

/**
 * Renders an untouched row again, in case the code has changed since it was recorded. Returns the
 * fresh request; `"replaced"` when the intent now has other parts and its rows were rewritten;
 * `undefined` to keep what is recorded.
 */
export function resplit(core: Core, row: OutboxRow): JsonObject | "replaced" | undefined {
  const { outbox } = core.journal;
  const head = row.part === 0 ? row : outbox.partsOf(row)[0];
  if (head?.content == null) return undefined;
  const rows = outbox.partsOf(head);
  // Once a part may be out, another split would lose or repeat text.
  const untouched = rows.every(
    (one) => one.state === "pending" && one.attempts === 0 && one.first_maybe_at === null,
  );
  // What is shown of a streamed answer was split with it.
  const shown = rows.some((one) => readExtra(one).edits !== undefined);
  if (row.part !== 0 || !untouched || shown) return undefined;
  const address = row.address === null ? core.address() : (JSON.parse(row.address) as Address);
  let rendered: Rendered;
  try {
    const content = JSON.parse(head.content) as NormalContent;
    rendered = renderContent(core, content, address, `${head.turn}/${head.slot}`);
  } catch {
    return undefined;
  }
  const { parts, kept } = rendered;
  if (parts.length === 0) return undefined;
  const same =
    parts.length === rows.length &&
    parts.every((part, at) => JSON.stringify(part.request) === rows[at]?.request);
  if (same) return parts[0]?.request;
  core.journal.commit("outbox.resplit", () => {
    for (const old of rows.slice(1)) outbox.deleteRow(old.turn, old.pos);
    for (const { id, value } of kept) core.journal.side.keepButton(id, head.turn, value);
    outbox.update(head, { request: JSON.stringify(parts[0]?.request ?? {}) });
    for (const [index, part] of parts.entries()) {
      if (index === 0) continue;
      outbox.insert({
        ...head,
        pos: head.pos + index,
        part: index,
        key: null,
        content: null,
        fingerprint: null,
        due_at: null,
        request: JSON.stringify(part.request),
      });
    }
  });
  return "replaced";
}
