/**
 * Which waiting messages become one turn: a sender's messages within a quiet time (`concurrency`
 * "burst"), those that wait behind a turn that they interrupt (`"interrupt"`), and the members of an album
 * always. Pure.
 *
 * @module
 */
import type { InboundEvent } from "../channels/events.ts";
import { MAX_VALUE_LENGTH } from "../journal/limits.ts";
import type { InboxRow } from "../journal/records.ts";
import type { BusySettings } from "./busyOptions.ts";

/** Members of an album arrive one by one: silence that ends it, and the longest wait, in ms. */
const ALBUM_QUIET_MS = 1_000;
const ALBUM_MAX_MS = 3_000;
/** The most messages of one turn. */
const MAX_MEMBERS = 32;

/** An event as the journal keeps it once others have joined it. */
export interface JoinedEvent extends InboundEvent {
  /** The later members, as they came. */
  joined?: InboundEvent[];
  /** The newest member is what is answered; absent: all of them. */
  newest?: true;
}

/** What a waiting message becomes. */
export interface BurstPlan {
  /** When its turn may begin: epoch milliseconds. */
  readyAt: number;
  /** Records behind it that join it. */
  members: InboxRow[];
  /** The payload of the joined record; `undefined` when nothing joins. */
  payload?: string;
}

type Pacing = Pick<BusySettings, "mode" | "quietMs" | "maxWaitMs">;

/** Whether a message waits for others before its turn. */
export function joins(event: InboundEvent, busy: Pacing): boolean {
  return keyOf(event, busy) !== undefined && quietOf(event, busy) > 0;
}

/** Whether a record may have to wait for others; cheap, since every claim asks. */
export function mayJoin(row: InboxRow, busy: Pacing): boolean {
  if (row.kind !== "message" || row.runs > 0) return false;
  return busy.mode !== "queue" || row.payload.includes('"groupId":"');
}

/** The silence that ends the burst of a message, in ms. */
export function quietOf(event: InboundEvent, busy: Pacing): number {
  const own = busy.mode === "burst" ? busy.quietMs : 0;
  return event.groupId === undefined ? own : Math.max(own, ALBUM_QUIET_MS);
}

/**
 * Plans the turn of a waiting message.
 *
 * @param head the oldest waiting message
 * @param behind open records behind it, in order
 */
export function planBurst(
  head: InboxRow,
  behind: readonly InboxRow[],
  busy: Pacing,
  now: number,
): BurstPlan {
  const first = eventOf(head);
  const key = first && keyOf(first, busy);
  if (first === undefined || key === undefined) return { readyAt: now, members: [] };
  const own = busy.mode === "burst" ? busy.maxWaitMs : 0;
  const longest = first.groupId === undefined ? own : Math.max(own, ALBUM_MAX_MS);
  const begun = head.received_at;
  const end = begun + longest;
  const newest = isNewestOnly(first, busy);
  const members: InboxRow[] = [];
  const events: InboundEvent[] = [];
  let size = head.payload.length;
  let last = begun;
  let quiet = quietOf(first, busy);
  let closed = false;
  for (const row of behind) {
    if (row.state !== "pending" || row.due_at !== null) continue;
    const event = row.runs === 0 ? eventOf(row) : undefined;
    const other = event && keyOf(event, busy);
    if (event === undefined || other !== key) {
      // A command, a press or a timer comes after what was said before it.
      closed = other === undefined && busy.mode !== "queue";
      if (closed) break;
      continue;
    }
    size += row.payload.length;
    const late = row.received_at - last > quiet || row.received_at > end;
    closed = (late && !newest) || members.length + 2 > MAX_MEMBERS || size * 3 > MAX_VALUE_LENGTH;
    if (closed) break;
    members.push(row);
    events.push(event);
    last = row.received_at;
    quiet = Math.max(quiet, quietOf(event, busy));
  }
  // A clock that jumped back must not silence the chat.
  const readyAt = closed || last > now ? now : Math.min(last + quiet, end);
  if (members.length === 0) return { readyAt, members };
  const joined: JoinedEvent = { ...first, joined: events, ...(newest ? { newest } : {}) };
  return { readyAt, members, payload: JSON.stringify(joined) };
}

/** Whether only the newest of several waiting messages is answered: it would have stopped the others. */
function isNewestOnly(event: InboundEvent, busy: Pacing): true | undefined {
  return busy.mode === "interrupt" && event.groupId === undefined ? true : undefined;
}

/** The event that the bot sees: texts one under the other, media in order; or the newest alone. */
export function mergedEvent(event: JoinedEvent): InboundEvent {
  const { joined = [], newest, ...first } = event;
  const last = joined.at(-1);
  if (last === undefined) return first;
  if (newest === true) return last;
  const all: readonly InboundEvent[] = [first, ...joined];
  const texts = all.map((one) => one.text ?? "").filter((text) => text !== "");
  const media = all.flatMap((one) => one.media ?? []);
  return {
    ...first,
    ...(texts.length === 0 ? {} : { text: texts.join("\n") }),
    ...(media.length === 0 ? {} : { media }),
    ...(all.some((one) => one.mentioned === true) ? { mentioned: true } : {}),
  };
}

/** What messages of one turn have in common; `undefined` for whatever stands alone. */
function keyOf(event: InboundEvent, busy: Pacing): string | undefined {
  if (event.kind !== "message" || event.text?.startsWith("/") === true) return undefined;
  const { groupId, sender } = event;
  if (busy.mode === "interrupt" && groupId === undefined) return senderKey(sender?.id);
  if (busy.mode === "burst") return senderKey(sender?.id) ?? albumKey(groupId);
  return albumKey(groupId);
}

/** Messages of nobody in particular, such as a channel's posts, stand alone. */
function senderKey(id: string | undefined): string | undefined {
  return id === undefined ? undefined : `sender ${id}`;
}

function albumKey(id: string | undefined): string | undefined {
  return id === undefined ? undefined : `album ${id}`;
}

/** The event of a record, unless it cannot be read. */
export function eventOf(row: Pick<InboxRow, "payload">): InboundEvent | undefined {
  try {
    return JSON.parse(row.payload) as InboundEvent;
  } catch {
    return undefined;
  }
}
