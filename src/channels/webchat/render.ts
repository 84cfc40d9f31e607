/**
 * Content as messages of the web chat. Formatting travels as a text and spans over it; the page builds
 * elements from them and never reads markup, so nothing that a bot quotes can become script.
 *
 * @module
 */
import { lengthIn } from "../../text/measure.ts";
import { type RichText, richText, type Span } from "../../text/richtext.ts";
import { splitRichText } from "../../text/split.ts";
import type { RenderedPart } from "../channel.ts";
import type { PlainContent } from "../content.ts";
import { DeliveryError, UnsupportedContentError } from "../errors.ts";
import {
  isWebUrl,
  TEXT_LIMIT,
  type WebButton,
  type WebMedia,
  type WebMessage,
  type WebSpan,
  type WebText,
} from "./protocol.ts";

type Media = NonNullable<PlainContent["media"]>[number];

/**
 * Splits content into messages. Pure.
 * @throws {UnsupportedContentError} for templates, native fields and media that has no https address
 * @throws {DeliveryError} for content that holds nothing to show
 */
export function render(content: PlainContent): RenderedPart[] {
  return messagesOf(content).map((message) => ({
    kind: message.media === undefined ? "text" : "media",
    request: message,
  }));
}

/** The messages of {@link render}: all but the first and last are text alone. */
export function messagesOf(content: PlainContent): WebMessage[] {
  if (content.template !== undefined) {
    throw new UnsupportedContentError("the web chat has no message templates");
  }
  if (content.native !== undefined) {
    throw new UnsupportedContentError("the web chat has no native fields");
  }
  const read = (text: string) => readText(text, content.format);
  const messages: WebMessage[] = [];
  if (content.text !== undefined) {
    for (const part of splitRichText(read(content.text), TEXT_LIMIT, "codepoints")) {
      if (part.text.trim() !== "") messages.push(webText(part));
    }
  }
  const media = (content.media ?? []).map((item) => mediaOf(item, read));
  if (messages.length === 0 && media.length > 0) messages.push({});
  const [first] = messages;
  const last = messages.at(-1);
  if (first === undefined || last === undefined) {
    throw new DeliveryError("the message is empty: the web chat needs a text or media", {
      kind: "invalid_payload",
    });
  }
  if (media.length > 0) first.media = media;
  if (content.replyTo !== undefined) first.replyTo = content.replyTo;
  if (content.buttons !== undefined) last.buttons = content.buttons.map((row) => row.map(buttonOf));
  if (content.silent) for (const message of messages) message.silent = true;
  return messages;
}

function readText(text: string, format: PlainContent["format"]): RichText {
  if (format === "plain") return { text, spans: [] };
  // An address that the page would not link is written out instead, so that it is not lost.
  return richText(text, { acceptsLink: isWebUrl });
}

function webText(rich: RichText): WebText {
  return rich.spans.length === 0
    ? { text: rich.text }
    : { text: rich.text, spans: rich.spans.map(webSpan) };
}

function webSpan({ start, end, type, url, lang }: Span): WebSpan {
  const span: WebSpan = { start, end, type };
  if (url !== undefined) span.url = url;
  if (lang !== undefined) span.lang = lang;
  return span;
}

function mediaOf(item: Media, read: (text: string) => RichText): WebMedia {
  if (item.url === undefined) {
    throw new UnsupportedContentError(
      `the web chat shows media by its https address; this ${item.kind} has none`,
    );
  }
  if (!isWebUrl(item.url) || !/^https:/i.test(item.url)) {
    throw new UnsupportedContentError(
      `the web chat shows media by its https address; this ${item.kind} has another kind`,
    );
  }
  const media: WebMedia = { kind: item.kind, url: item.url };
  if (item.filename !== undefined) media.name = item.filename;
  if (item.caption !== undefined) {
    const caption = read(item.caption);
    if (lengthIn(caption.text, "codepoints") > TEXT_LIMIT) {
      throw new DeliveryError(`a caption holds at most ${TEXT_LIMIT} characters`, {
        kind: "payload_too_large",
      });
    }
    if (caption.text !== "") media.caption = webText(caption);
  }
  return media;
}

function buttonOf(button: NonNullable<PlainContent["buttons"]>[number][number]): WebButton {
  if (!("url" in button)) return { text: button.text, value: button.value };
  if (isWebUrl(button.url)) return { text: button.text, url: button.url };
  throw new DeliveryError(`the button "${button.text}" leads to no http or https address`, {
    kind: "invalid_payload",
  });
}
