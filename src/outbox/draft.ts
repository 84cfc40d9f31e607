/**
 * A send between being asked for and being recorded, and the rows that it becomes.
 *
 * @module
 */
import type { RenderedPart } from "../channels/channel.ts";
import type { Content } from "../channels/content.ts";
import type { Address } from "../channels/events.ts";
import { MAX_VALUE_LENGTH } from "../journal/limits.ts";
import { type OutboxExtra, type OutboxRow, UNTRIED, writeExtra } from "../journal/records.ts";
import { parseDuration } from "../time/duration.ts";
import type { EnqueueOptions } from "../turns/sends.ts";
import { byteLength, type NormalContent } from "./content.ts";
import type { Outcome } from "./Deliveries.ts";
import type { Rendered } from "./render.ts";
import type { TurnSends } from "./TurnSends.ts";

/** One call of `reply`, `send`, `enqueue` or a client. */
export interface Intent {
  /** The run that makes it; absent outside a turn. */
  sends?: TurnSends;
  /** The step that it is called in; empty for the turn itself. */
  scope: string;
  content: Content;
  options: EnqueueOptions;
  /** Whether the caller waits for the delivery. */
  wait: boolean;
  origin: OutboxRow["origin"];
  /** Another chat that it goes to; the content is rendered there. */
  relayTo?: Address;
}

/** What the caller gets. */
export interface Decided {
  key: string;
  outcome: Outcome;
  reason?: string;
}

/** A send on its way to being recorded. */
export interface Draft {
  intent: Intent;
  slot: string;
  key: string | null;
  publicKey: string;
  fingerprint: string;
  content: NormalContent;
  address: Address;
  intendedAt: number;
  /** The number of its turn, or its own. */
  turn?: number;
  /** The place of a recorded send that this one replaces. */
  pos?: number;
  /** Rows of a recorded send that this one replaces. */
  replaces?: OutboxRow[];
  vetoed?: string;
  /** Of a streamed answer: what the chat shows of these parts already. */
  shown?: (parts: readonly RenderedPart[]) => Shown;
}

/** What the chat shows of a streamed answer. */
export interface Shown {
  /** By part: the preview, where it has one. */
  parts: readonly (Pick<OutboxExtra, "edits" | "same" | "late"> | undefined)[];
  /** Places of previews that the answer does not use. */
  strays: number[];
}

function timeOf(value: number | Date | undefined): number | undefined {
  return value === undefined ? undefined : Math.ceil(Number(value));
}

/** The content of a row, unless it and the request together are more than a row may hold. */
function keptContent(content: NormalContent, request: unknown): string | null {
  const text = JSON.stringify(content);
  return byteLength(text) + byteLength(JSON.stringify(request)) > MAX_VALUE_LENGTH ? null : text;
}

/** The rows of a draft, one per part. */
export function rowsOf(draft: Draft, rendered: Rendered): OutboxRow[] {
  const { intent } = draft;
  const now = draft.intendedAt;
  const delay =
    intent.options.delay === undefined ? undefined : parseDuration(intent.options.delay);
  const at = timeOf(intent.options.at) ?? (delay === undefined ? undefined : now + delay);
  const turn = draft.turn ?? intent.sends?.seq ?? 0;
  const base = draft.pos ?? intent.sends?.nextPos() ?? 0;
  const suppressed = draft.vetoed !== undefined;
  const extra: OutboxExtra = {
    ...(at !== undefined && at > now ? { at } : {}),
    ...(suppressed ? { reason: draft.vetoed ?? "" } : {}),
    ...(intent.relayTo === undefined ? {} : { relay: true }),
  };
  // A live turn's watchdog covers what its handler waits for; anything else needs its own wake-up.
  const dueAt = suppressed || (intent.sends !== undefined && intent.wait) ? null : (at ?? now);
  const parts =
    rendered.parts.length > 0 ? rendered.parts : [{ kind: "other" as const, request: {} }];
  const { parts: previews = [], strays = [] } = draft.shown?.(rendered.parts) ?? {};
  const extraOf = (index: number): OutboxExtra => ({
    ...extra,
    ...previews[index],
    ...(strays.length > 0 && index === parts.length - 1 ? { strays } : {}),
  });
  return parts.map((part, index) => ({
    turn,
    pos: base + index,
    slot: draft.slot,
    part: index,
    key: index === 0 ? draft.key : null,
    ...UNTRIED,
    ...(suppressed ? { state: "suppressed" as const, finished_at: now } : {}),
    due_at: index === 0 ? dueAt : null,
    not_after: timeOf(intent.options.notAfter) ?? null,
    created_at: now,
    content: index === 0 ? keptContent(draft.content, part.request) : null,
    fingerprint: index === 0 ? draft.fingerprint : null,
    request: JSON.stringify(part.request),
    origin: intent.origin,
    address: intent.relayTo === undefined ? null : JSON.stringify(intent.relayTo),
    extra: writeExtra(extraOf(index)),
  }));
}
