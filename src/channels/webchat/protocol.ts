/**
 * What the page and the room say to each other: JSON texts over one WebSocket.
 *
 * 1. The page opens the socket and says `hello` with the number of the last entry that it has. The room
 *    answers with every later entry (`log`), then `ready`; nothing is sent before the `hello`.
 * 2. The page sends `msg` or `press` under an id of its own, the `cid`, and keeps it until `ack`. `nack`
 *    means "not yet": it sends the same again. The room answers any number of repeats with one entry.
 * 3. New entries arrive as `log` in rising order of `seq`; the page drops those that it has.
 *
 * `ping` is answered with `pong` by the runtime, without waking the room.
 *
 * @module
 */
import { fits } from "../../text/measure.ts";

/** The most code points of one text, either way. */
export const TEXT_LIMIT = 16_000;

/** How long a draft is shown that is not shown again, in ms. */
export const DRAFT_MS = 30_000;

/** The most bytes of a button's value. */
export const BUTTON_DATA_BYTES = 1_000;

/** Formatting over a text; offsets count UTF-16 units. The fields of `Span` in `src/text/`. */
export type WebSpan = {
  start: number;
  end: number;
  type: "bold" | "italic" | "strike" | "code" | "pre" | "link" | "quote";
  url?: string;
  lang?: string;
};

/** A text and its formatting. */
export type WebText = { text: string; spans?: WebSpan[] };

/** A file by its https address: images are shown, the others linked. */
export type WebMedia = {
  kind: "image" | "audio" | "video" | "file";
  url: string;
  name?: string;
  caption?: WebText;
};

/** A button: a value comes back as a press, a url is opened. */
export type WebButton = { text: string; value: string } | { text: string; url: string };

/** A message of the bot, as it is recorded and sent to the page. */
export type WebMessage = {
  text?: string;
  spans?: WebSpan[];
  media?: WebMedia[];
  buttons?: WebButton[][];
  replyTo?: string;
  silent?: true;
};

/** One thing that happened in a session. A user's message has its `cid` for an id, the bot's its `mid`. */
export type Entry =
  | { seq: number; at: number; kind: "user"; cid: string; text: string }
  | {
      seq: number;
      at: number;
      kind: "press";
      cid: string;
      mid: string;
      value: string;
      label?: string;
    }
  | { seq: number; at: number; kind: "bot"; mid: string; message: WebMessage }
  | { seq: number; at: number; kind: "edit"; mid: string; message: WebMessage }
  | { seq: number; at: number; kind: "remove"; mid: string };

/** What the room says. */
export type ServerFrame =
  /** `reset`: the page has entries that the room never had (its storage was restored); it starts anew. */
  | { t: "log"; entries: Entry[]; replay?: true; reset?: true }
  /** All that the page asked for by `hello` has been sent. */
  | { t: "ready"; seq: number }
  /** The bot's journal has it. */
  | { t: "ack"; cid: string; seq: number }
  /**
   * The bot's journal does not have it yet; send it again after `afterMs`. Once it is `stored`, later
   * messages may be sent meanwhile: the room keeps the order.
   */
  | { t: "nack"; cid: string; retry: true; afterMs: number; stored: boolean }
  /** It will never be accepted; sending it again is of no use. */
  | { t: "error"; code: FrameError; cid?: string }
  /** The bot is typing, for so long unless a message comes first. */
  | { t: "typing"; ms: number }
  /**
   * The bot is writing this: the first `keep` UTF-16 units of the last draft of the same id, then `text`.
   * It goes when the bot's next message comes, or after {@link DRAFT_MS} without another.
   */
  | { t: "draft"; id: string; keep: number; text: string; spans?: WebSpan[] }
  /** The bot repeated a send after a crash, and the room recognised its marker. */
  | { t: "repeat"; mid: string };

/** Why a frame is refused for good. */
export type FrameError = "malformed" | "unsupported" | "empty" | "too_long";

/** What the page says. */
export type ClientFrame =
  | { t: "hello"; lastSeq: number }
  | { t: "msg"; cid: string; text: string }
  | { t: "press"; cid: string; value: string; mid: string; label?: string };

/** Ids that pages make: no colon or slash, so that they cannot be taken for another kind of key. */
const CID = /^[A-Za-z0-9_-]{8,64}$/;
const MID = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_LABEL = 200;

/** Reads a frame of the page. Whatever comes out of a browser is untrusted. */
export function parseFrame(text: string): ClientFrame | Extract<ServerFrame, { t: "error" }> {
  let fields: Record<string, unknown>;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return { t: "error", code: "malformed" };
    fields = value as Record<string, unknown>;
  } catch {
    return { t: "error", code: "malformed" };
  }
  if (fields.t === "hello") {
    const { lastSeq } = fields;
    const usable = typeof lastSeq === "number" && Number.isSafeInteger(lastSeq) && lastSeq >= 0;
    return { t: "hello", lastSeq: usable ? lastSeq : 0 };
  }
  if (fields.t !== "msg" && fields.t !== "press") return { t: "error", code: "unsupported" };
  const { cid } = fields;
  if (typeof cid !== "string" || !CID.test(cid)) return { t: "error", code: "malformed" };
  return fields.t === "msg" ? parseMessage(cid, fields) : parsePress(cid, fields);
}

type Parsed = ReturnType<typeof parseFrame>;

function parseMessage(cid: string, fields: Record<string, unknown>): Parsed {
  const { text } = fields;
  if (typeof text !== "string") return { t: "error", code: "malformed", cid };
  if (text.trim() === "") return { t: "error", code: "empty", cid };
  if (!fits(text, TEXT_LIMIT, "codepoints")) return { t: "error", code: "too_long", cid };
  return { t: "msg", cid, text };
}

function parsePress(cid: string, fields: Record<string, unknown>): Parsed {
  const { value, mid, label } = fields;
  if (typeof value !== "string" || typeof mid !== "string" || !MID.test(mid)) {
    return { t: "error", code: "malformed", cid };
  }
  if (!fits(value, BUTTON_DATA_BYTES, "bytes")) return { t: "error", code: "too_long", cid };
  const frame: ClientFrame = { t: "press", cid, value, mid };
  if (typeof label === "string" && label !== "") frame.label = label.slice(0, MAX_LABEL);
  return frame;
}

/** A frame as text. */
export function encodeFrame(frame: ServerFrame): string {
  return JSON.stringify(frame);
}

/** What the channel calls on a room, by method. All JSON. */
export interface RoomCalls {
  deliver: { marker: string; message: WebMessage };
  edit: { id: string; message: WebMessage };
  remove: { id: string };
  typing: Record<string, never>;
  draft: { id: string; message: WebMessage };
}

/** What a room answers. A refusal proves that nothing was done. */
export type RoomAnswer =
  | { ok: true; id: string; seq: number }
  | { ok: false; kind: "not_found" | "payload_too_large" | "invalid_payload"; message: string };

/** Whether a link may be shown: nothing but the web. */
export function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url);
}
