/**
 * From what a handler says to what the journal keeps: one normal form, JSON only.
 *
 * @module
 */
import type {
  Button,
  Content,
  ContentObject,
  MediaContent,
  PlainContent,
  RenderedButton,
} from "../channels/content.ts";
import { ConfigError } from "../channels/errors.ts";

/** Normalised content before buttons are encoded for a platform. */
export interface NormalContent extends Omit<PlainContent, "buttons"> {
  buttons?: Button[][];
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}

function normalMedia(media: MediaContent): NonNullable<PlainContent["media"]>[number] {
  const { bytes, ...rest } = media;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return {
    ...(given as Omit<MediaContent, "bytes">),
    ...(bytes === undefined ? {} : { base64: base64(bytes) }),
  };
}

function rows(buttons: NonNullable<ContentObject["buttons"]>): Button[][] {
  const list = buttons as readonly (Button | readonly Button[])[];
  if (list.every((entry) => Array.isArray(entry)))
    return list.map((row) => [...(row as readonly Button[])]);
  return [list.flat() as Button[]];
}

/**
 * The normal form of content.
 * @throws {ConfigError} when there is nothing to send
 */
export function normalise(content: Content): NormalContent {
  if (typeof content === "string") return { format: "plain", text: content };
  if (typeof content !== "object" || content === null) {
    throw new ConfigError(
      `content must be a string or an object, not ${content === null ? "null" : typeof content}`,
    );
  }
  const plain: NormalContent = { format: content.format ?? "plain" };
  if (content.text !== undefined) plain.text = content.text;
  if (content.media !== undefined) {
    const media = (
      Array.isArray(content.media) ? content.media : [content.media]
    ) as readonly MediaContent[];
    plain.media = media.map(normalMedia);
  }
  if (content.buttons !== undefined && content.buttons.length > 0)
    plain.buttons = rows(content.buttons);
  if (content.template !== undefined) {
    const { name, language, params } = content.template;
    plain.template = {
      name,
      ...(language === undefined ? {} : { language }),
      ...(params === undefined ? {} : { params }),
    };
  }
  if (content.replyTo !== undefined) plain.replyTo = content.replyTo;
  if (content.silent !== undefined) plain.silent = content.silent;
  if (content.native !== undefined) plain.native = content.native;
  if (
    plain.text === undefined &&
    !plain.media?.length &&
    plain.template === undefined &&
    plain.native === undefined
  ) {
    throw new ConfigError(
      "content has nothing to send: give text, media, a template or native fields",
    );
  }
  return plain;
}

/** JSON of normalised content, or `undefined` where it is not encodable (a cycle, a bigint). */
export function encode(content: NormalContent): string | undefined {
  try {
    const text = JSON.stringify(content);
    JSON.parse(text);
    return text;
  } catch {
    return undefined;
  }
}

const encoder = new TextEncoder();

/** Bytes of a text in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The value that stands for an action and its data on a button. */
export function buttonValue(action: string, data: unknown): string {
  // A leading "~" would mean data kept in the journal.
  const name = encodeURIComponent(action).replaceAll("~", "%7E");
  return data === undefined ? name : `${name}|${JSON.stringify(data)}`;
}

/** Reads a button's value. Untrusted: it comes back from the platform. */
export function parseButtonValue(value: string): { action: string; data: unknown } | undefined {
  const bar = value.indexOf("|");
  try {
    const action = decodeURIComponent(bar < 0 ? value : value.slice(0, bar));
    return { action, data: bar < 0 ? undefined : JSON.parse(value.slice(bar + 1)) };
  } catch {
    return undefined;
  }
}

/** First character of a value that stands for data kept in the journal. */
export const KEPT_BUTTON = "~";

/**
 * Encodes buttons for a platform; data over `maxBytes` goes to `keep`, which returns its short id.
 */
export function renderButtons(
  buttons: readonly (readonly Button[])[],
  maxBytes: number,
  keep: (value: string) => string,
): RenderedButton[][] {
  return buttons.map((row) =>
    row.map((button) => {
      if ("url" in button) return { text: button.text, url: button.url };
      const value = buttonValue(button.action, button.data);
      return {
        text: button.text,
        value: byteLength(value) <= maxBytes ? value : `${KEPT_BUTTON}${keep(value)}`,
      };
    }),
  );
}

/** The content as a channel's `render` takes it. */
export function forRender(
  content: NormalContent,
  buttons: RenderedButton[][] | undefined,
): PlainContent {
  const { buttons: _dropped, ...rest } = content;
  return buttons === undefined ? rest : { ...rest, buttons };
}
