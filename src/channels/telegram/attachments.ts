/**
 * Media of a message as references. A reference holds Telegram's file id, which lives long and is of
 * use to this bot only; never a link, since a link has the token in its path.
 *
 * @module
 */
import type { Message } from "@grammyjs/types";
import type { JsonObject } from "../content.ts";
import type { MediaRef } from "../events.ts";
import { Malformed, object, optionalText, text } from "./shape.ts";

/** What `MediaRef.ref` holds on Telegram. */
export interface TelegramMediaRef {
  /** Opens the file. */
  fileId: string;
  /** The same for every bot and for ever; opens nothing. */
  uniqueId: string;
}

type Kind = MediaRef["kind"];

/** The media of a message, mostly one. */
export function mediaOf(message: Message): MediaRef[] {
  const refs: MediaRef[] = [];
  const add = (kind: Kind, file: unknown, mimeType?: string) => {
    if (file !== undefined) refs.push(refOf(kind, file, mimeType));
  };
  add("image", largest(message.photo), "image/jpeg");
  // A live photo is a film next to its still; `photo` repeats the still.
  add("video", message.live_photo);
  add("audio", message.voice, "audio/ogg");
  add("audio", message.audio);
  add("video", message.video);
  add("video", message.video_note, "video/mp4");
  add("video", message.animation);
  // An animation comes a second time as a document.
  if (message.animation === undefined && message.document !== undefined) {
    add(kindOfMime(message.document.mime_type), message.document);
  }
  const { sticker } = message;
  if (sticker?.is_video) add("video", sticker, "video/webm");
  else if (sticker?.is_animated) add("file", sticker, "application/x-tgsticker");
  else add("image", sticker, "image/webp");
  for (const paid of message.paid_media?.paid_media ?? []) {
    if (paid.type === "photo") add("image", largest(paid.photo), "image/jpeg");
    if (paid.type === "video") add("video", paid.video);
    if (paid.type === "live_photo") add("video", paid.live_photo);
  }
  return refs;
}

function refOf(kind: Kind, value: unknown, usualType: string | undefined): MediaRef {
  const file = object(value, kind);
  const ref: Record<string, string> = {
    fileId: text(file.file_id, "file_id"),
    uniqueId: text(file.file_unique_id, "file_unique_id"),
  };
  const media: MediaRef = { kind, ref: ref satisfies JsonObject };
  const mimeType = optionalText(file.mime_type, "mime_type") ?? usualType;
  if (mimeType !== undefined) media.mimeType = mimeType;
  if (typeof file.file_size === "number") media.size = file.file_size;
  const filename = optionalText(file.file_name, "file_name");
  if (filename !== undefined) media.filename = filename;
  return media;
}

/** Telegram offers a photo in several sizes; which comes last is not documented. */
function largest(sizes: Message["photo"]): unknown {
  if (sizes === undefined) return undefined;
  if (!Array.isArray(sizes) || sizes.length === 0) throw new Malformed("photo has no sizes");
  return sizes.reduce((best, size) =>
    size.width * size.height > best.width * best.height ? size : best,
  );
}

/** A picture that was sent as a file is still a picture. */
function kindOfMime(mime: string | undefined): Kind {
  const family = mime?.split("/", 1)[0];
  return family === "image" || family === "audio" || family === "video" ? family : "file";
}
