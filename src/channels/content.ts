/**
 * What a bot can say, before any platform's dialect.
 *
 * @module
 */

/** JSON, as it is journaled. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** A file to send: bytes, a URL that the platform fetches, or a platform's own file id. */
export interface MediaContent {
  kind: "image" | "audio" | "video" | "file";
  /** Journaled as base64. */
  bytes?: Uint8Array | undefined;
  url?: string | undefined;
  /** The platform's own id of a file that it already has. */
  fileId?: string | undefined;
  filename?: string | undefined;
  mimeType?: string | undefined;
  caption?: string | undefined;
}

/** A button: `bot.action(…).button(text, data)` makes the first form. */
export type Button =
  | { text: string; action: string; data?: unknown }
  | { text: string; url: string };

/** One message to send. */
export interface ContentObject {
  text?: string | undefined;
  /** How `text` is read. Default `"plain"`. */
  format?: "plain" | "markdown" | undefined;
  media?: MediaContent | readonly MediaContent[] | undefined;
  /** Rows of buttons, or one row. */
  buttons?: readonly Button[] | readonly (readonly Button[])[] | undefined;
  /** A pre-approved template, on platforms that have them. */
  template?:
    | { name: string; language?: string | undefined; params?: JsonObject | undefined }
    | undefined;
  /** The platform's id of the message that this one answers. */
  replyTo?: string | undefined;
  /** Deliver without a sound. */
  silent?: boolean | undefined;
  /** Platform fields, passed through as they are. */
  native?: JsonObject | undefined;
}

/** A string is plain text. */
export type Content = string | ContentObject;

/** A button as a channel renders it: `value` is opaque, within the channel's `buttonDataBytes`. */
export type RenderedButton = { text: string; value: string } | { text: string; url: string };

/** Content as a channel's `render` gets it: normalised, JSON only. */
export interface PlainContent {
  text?: string;
  format: "plain" | "markdown";
  media?: (Omit<MediaContent, "bytes"> & { base64?: string })[];
  buttons?: RenderedButton[][];
  template?: { name: string; language?: string; params?: JsonObject };
  replyTo?: string;
  silent?: boolean;
  native?: JsonObject;
}

/** Kinds of content that a channel may declare. */
export type ContentKind =
  | "text"
  | "markdown"
  | "media"
  | "buttons"
  | "template"
  | "silent"
  | "reply"
  | "native";
