/**
 * Content as Telegram's method calls. Formatting travels as entities, never as a parse mode: entities
 * need no escaping and cannot be misread.
 *
 * @module
 */
import type { MessageEntity } from "@grammyjs/types";
import { lengthIn } from "../../text/measure.ts";
import { type RichText, richText, type Span } from "../../text/richtext.ts";
import { splitRichText } from "../../text/split.ts";
import type { RenderedPart } from "../channel.ts";
import type { Json, JsonObject, PlainContent } from "../content.ts";
import { DeliveryError, PayloadTooLargeError, UnsupportedContentError } from "../errors.ts";
import type { Address } from "../events.ts";
import { targetFields } from "./address.ts";
import type { Upload } from "./call.ts";

/**
 * The most characters of a message after its entities are parsed (Bot API, sendMessage). They are code
 * points: a probe sent 4,096 characters outside the BMP and was refused at 4,097 (wayland#934).
 */
export const TEXT_LIMIT = 4_096;
/** The most characters of a caption (Bot API, sendPhoto). */
export const CAPTION_LIMIT = 1_024;
/** The most bytes of a photo that is uploaded, and of any other file (Bot API, sendPhoto, sendDocument). */
const PHOTO_BYTES = 10 * 2 ** 20;
const FILE_BYTES = 50 * 2 ** 20;

type Media = NonNullable<PlainContent["media"]>[number];
type Draft = {
  kind: RenderedPart["kind"];
  method: string;
  body: Record<string, Json>;
  upload?: Upload;
};

/** How each kind of media is sent; the file's field has the name in `field`. */
const MEDIA = {
  image: { method: "sendPhoto", field: "photo", filename: "image.jpg" },
  audio: { method: "sendAudio", field: "audio", filename: "audio.mp3" },
  video: { method: "sendVideo", field: "video", filename: "video.mp4" },
  file: { method: "sendDocument", field: "document", filename: "file.bin" },
} as const;

const ENTITY = {
  bold: "bold",
  italic: "italic",
  strike: "strikethrough",
  code: "code",
  quote: "blockquote",
} as const satisfies Record<string, MessageEntity["type"]>;

/** Native fields that say where and what: they are not for the author of a message to change. */
const OWNED = new Set(["chat_id", "text", "caption", "entities", "caption_entities"]);
/** Native fields that make sense on the first part only, and on the last. */
const FIRST_ONLY = new Set(["reply_parameters", "message_effect_id"]);
const LAST_ONLY = new Set(["reply_markup"]);

/** Whether Telegram takes this address in a link; others refuse the whole message ("entity URL … is invalid"). */
function acceptsLink(url: string): boolean {
  return /^(?:https?:\/\/[^\s/]+\.[^\s]+|tg:\/\/\S+)$/i.test(url);
}

/**
 * Splits content into parts, each one call. Pure. Several files are several messages, never an album: of
 * an album that failed Telegram gives one error though some of it was sent, so a refusal would prove
 * nothing. A bot that wants one calls `ctx.api("sendMediaGroup", …)`.
 *
 * @throws {UnsupportedContentError} for a template
 * @throws {PayloadTooLargeError} for a file over Telegram's limits
 * @throws {DeliveryError} for content that holds nothing to send, or a file that is none
 */
export function render(content: PlainContent, target: { address: Address }): RenderedPart[] {
  if (content.template !== undefined) {
    throw new UnsupportedContentError("Telegram has no message templates");
  }
  const plain = content.format === "plain";
  const drafts = draftsOf(content, plain);
  if (drafts.length === 0) {
    throw invalid("the message is empty: Telegram needs a text or media");
  }
  const where = targetFields(target.address);
  return drafts.map((draft, index) => {
    const first = index === 0;
    const last = index === drafts.length - 1;
    const body: Record<string, Json> = { ...where, ...draft.body };
    if (content.silent) body.disable_notification = true;
    if (first && content.replyTo !== undefined) body.reply_parameters = replyTo(content.replyTo);
    if (last && content.buttons !== undefined) body.reply_markup = keyboardOf(content.buttons);
    for (const [name, value] of Object.entries(content.native ?? {})) {
      const misplaced = (FIRST_ONLY.has(name) && !first) || (LAST_ONLY.has(name) && !last);
      // With entities a parse mode would read the text a second time.
      const reparse = name === "parse_mode" && !plain;
      if (!OWNED.has(name) && !misplaced && !reparse) body[name] = value;
    }
    const request: Record<string, Json> = { method: draft.method, body };
    if (draft.upload !== undefined) request.upload = { ...draft.upload };
    return { kind: draft.kind, request };
  });
}

/** The text fields of an edit, or `undefined` if the text does not fit one message. */
export function renderEdit(
  content: PlainContent,
  limit: number,
): { text: string; entities: JsonObject[] } | undefined {
  const rich = richOf(content.text ?? "", content.format === "plain");
  return lengthIn(rich.text, "codepoints") > limit
    ? undefined
    : { text: rich.text, entities: entitiesOf(rich.spans) };
}

/** Buttons under a message. */
export function keyboardOf(buttons: NonNullable<PlainContent["buttons"]>): JsonObject {
  return {
    inline_keyboard: buttons.map((row) =>
      row.map((button) =>
        "url" in button
          ? { text: button.text, url: button.url }
          : { text: button.text, callback_data: button.value },
      ),
    ),
  };
}

/** Rich text's spans as Telegram's entities. Both count UTF-16 units. */
export function entitiesOf(spans: readonly Span[]): JsonObject[] {
  return spans.map((span) => {
    const at = { offset: span.start, length: span.end - span.start };
    switch (span.type) {
      case "pre":
        return { type: "pre", ...at, ...(span.lang === undefined ? {} : { language: span.lang }) };
      case "link":
        return { type: "text_link", ...at, url: span.url ?? "" };
      default:
        return { type: ENTITY[span.type], ...at };
    }
  });
}

function draftsOf(content: PlainContent, plain: boolean): Draft[] {
  const drafts: Draft[] = [];
  const media = content.media ?? [];
  let text = content.text === undefined ? undefined : richOf(content.text, plain);
  for (const item of media) {
    const own = item.caption === undefined ? undefined : richOf(item.caption, plain);
    // A text next to a single file without caption is its caption.
    const caption = own ?? (media.length === 1 ? text : undefined);
    const fits = caption !== undefined && lengthIn(caption.text, "codepoints") <= CAPTION_LIMIT;
    drafts.push(mediaDraft(item, fits ? caption : undefined));
    if (fits && own === undefined) text = undefined;
    if (own !== undefined && !fits) drafts.push(...textDrafts(own));
  }
  if (text !== undefined) drafts.push(...textDrafts(text));
  return drafts;
}

function textDrafts(rich: RichText): Draft[] {
  return splitRichText(rich, TEXT_LIMIT, "codepoints")
    .filter((part) => part.text.trim() !== "")
    .map((part) => ({
      kind: "text",
      method: "sendMessage",
      body: textFields(part, "text", "entities"),
    }));
}

function mediaDraft(media: Media, caption: RichText | undefined): Draft {
  const { method, field, filename } = MEDIA[media.kind];
  const body = caption === undefined ? {} : textFields(caption, "caption", "caption_entities");
  const known = knownFile(media);
  if (known !== undefined) return { kind: "media", method, body: { [field]: known, ...body } };
  if (media.base64 === undefined) {
    throw invalid(`a file to send needs bytes, a url or a fileId (${media.kind})`);
  }
  checkSize(media.kind, media.base64);
  const upload: Upload = { field, base64: media.base64, filename: media.filename ?? filename };
  if (media.mimeType !== undefined) upload.mimeType = media.mimeType;
  return { kind: "media", method, body, upload };
}

/** A file that Telegram has or fetches itself. What is neither, a server of one's own may read as a path. */
function knownFile({ fileId, url }: Media): string | undefined {
  if (fileId !== undefined) {
    if (/^[\w-]+$/.test(fileId)) return fileId;
    throw invalid("a fileId is what Telegram gave; an address goes into `url`");
  }
  if (url === undefined || /^https?:\/\/[^\s/]/i.test(url)) return url;
  throw invalid("Telegram fetches media by http and https addresses only");
}

function checkSize(kind: Media["kind"], base64: string): void {
  const limit = kind === "image" ? PHOTO_BYTES : FILE_BYTES;
  if ((base64.length * 3) / 4 - 2 <= limit) return;
  const hint = kind === "image" ? '; as kind "file" it may have 50 MB' : "";
  throw new PayloadTooLargeError(`Telegram takes this ${kind} up to ${limit >> 20} MB${hint}`);
}

function invalid(message: string): DeliveryError {
  return new DeliveryError(message, { kind: "invalid_payload" });
}

function textFields(rich: RichText, text: string, entities: string): Record<string, Json> {
  if (rich.text === "") return {};
  if (rich.spans.length === 0) return { [text]: rich.text };
  return { [text]: rich.text, [entities]: entitiesOf(rich.spans) };
}

function richOf(text: string, plain: boolean): RichText {
  return plain ? { text, spans: [] } : richText(text, { acceptsLink });
}

function replyTo(id: string): JsonObject {
  // `e7` is how this channel names an ephemeral message; a reply to one cannot do without it.
  const ephemeral = /^e(\d+)$/.exec(id)?.[1];
  if (ephemeral !== undefined) return { ephemeral_message_id: Number(ephemeral) };
  if (!/^\d{1,16}$/.test(id)) {
    throw invalid(`${JSON.stringify(id)} is not the id of a message on Telegram`);
  }
  return { message_id: Number(id), allow_sending_without_reply: true };
}
