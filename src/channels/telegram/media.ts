/**
 * Files that people sent: asked for by id, downloaded within a cap. A download link has the token in
 * its path, so it is made for one request and never shown.
 *
 * @module
 */
import type { ChannelIo, ChannelMedia, StoredMediaRef } from "../channel.ts";
import { isRetryableKind, MediaUnavailableError, PayloadTooLargeError } from "../errors.ts";
import type { MediaRef } from "../events.ts";
import { call, isRecord, reasonOf } from "./call.ts";
import type { TelegramConfig } from "./config.ts";
import { failureOf } from "./errors.ts";

/**
 * The media half of the channel. `hosts` is a list that `configure` adds to, since the API's address
 * may be known only with the environment.
 */
export function telegramMedia(hosts: readonly string[]): ChannelMedia<TelegramConfig> {
  return { hosts, serializeMediaRef, rehydrateMediaRef, load };
}

/** Version of {@link serializeMediaRef}'s data. */
const REF_VERSION = 1;
/** Telegram's file ids are URL-safe base64: nothing of a path or an address fits in. */
const FILE_ID = /^[\w-]{1,512}$/;

/** A file id outlives the process and is no credential: only this bot's token opens it. */
function serializeMediaRef(media: MediaRef): StoredMediaRef | undefined {
  const { fileId, uniqueId } = media.ref;
  if (!isFileId(fileId)) return undefined;
  return {
    v: REF_VERSION,
    provider: "telegram",
    data: { fileId, ...(isFileId(uniqueId) ? { uniqueId } : {}) },
  };
}

function rehydrateMediaRef(stored: StoredMediaRef, media: MediaRef): MediaRef {
  if (!isRecord(stored)) throw unavailable("the reference is not as it was written");
  if (stored.provider !== "telegram") {
    throw new MediaUnavailableError(
      `the reference is of ${String(stored.provider).slice(0, 40)}, not of telegram`,
      { reason: "provider-mismatch" },
    );
  }
  if (stored.v !== REF_VERSION) throw unavailable("the reference has an unknown version");
  const { fileId, uniqueId, ...rest } = isRecord(stored.data) ? stored.data : {};
  // File ids do not expire, so no reference of this channel ever had a date.
  const intact =
    isFileId(fileId) &&
    (uniqueId === undefined || isFileId(uniqueId)) &&
    Object.keys(rest).length === 0 &&
    stored.expiresAt === undefined;
  if (!intact) throw unavailable("the reference is not as it was written");
  return { ...media, ref: { fileId, ...(uniqueId === undefined ? {} : { uniqueId }) } };
}

function isFileId(value: unknown): value is string {
  return typeof value === "string" && FILE_ID.test(value);
}

async function load(
  media: MediaRef,
  io: ChannelIo<TelegramConfig>,
  maxBytes: number,
): Promise<Uint8Array> {
  if (media.unavailable !== undefined) {
    const { reason, message } = media.unavailable;
    throw new MediaUnavailableError(message, { reason });
  }
  const { fileId } = media.ref;
  if (!isFileId(fileId)) throw unavailable("the reference holds no file id");
  if (media.size !== undefined && media.size > maxBytes) throw tooLarge(maxBytes);
  const url = fileUrl(io.options, await filePath(fileId, io, maxBytes));
  let response: Response;
  try {
    // The link is a credential: it goes to the API's host and nowhere else.
    response = await io.fetch(url, { redirect: "manual", signal: io.signal });
  } catch (error) {
    throw lostDownload(reasonOf(error, io.options.token));
  }
  if (response.status !== 200) {
    await response.body?.cancel();
    const message = `the download answered ${response.status}`;
    throw response.status >= 500 ? lostDownload(message) : unavailable(message);
  }
  try {
    return await readCapped(response, maxBytes);
  } catch (error) {
    if (error instanceof PayloadTooLargeError) throw error;
    throw lostDownload(reasonOf(error, io.options.token));
  }
}

/** Asks where the file is; the answer is good for an hour. */
async function filePath(
  fileId: string,
  io: ChannelIo<TelegramConfig>,
  maxBytes: number,
): Promise<unknown> {
  const reply = await call(io, "getFile", { file_id: fileId });
  if (reply.outcome === "ok") {
    const file = isRecord(reply.result) ? reply.result : {};
    if (typeof file.file_size === "number" && file.file_size > maxBytes) throw tooLarge(maxBytes);
    return file.file_path;
  }
  const { kind, message, retryAfterMs } = failureOf(reply);
  if (kind === "payload_too_large") {
    throw new PayloadTooLargeError("Telegram gives bots files of up to 20 MB only");
  }
  // Asking changes nothing, so an answer that was lost may be asked for again.
  const retryable = isRetryableKind(kind, "not_sent");
  throw new MediaUnavailableError(`getFile: ${message}`, {
    reason: "rehydrate-failed",
    kind,
    retryable,
    retryAfterMs,
  });
}

function fileUrl(options: TelegramConfig, path: unknown): string {
  // A path that climbs, or that is a URL itself, would lead the token elsewhere.
  if (typeof path !== "string" || !/^[\w-][\w./-]*$/.test(path) || path.includes("..")) {
    throw unavailable("Telegram named no usable file path");
  }
  return `${options.apiBase}/file/bot${options.token}/${path}`;
}

/** Reads a body, and stops at the first byte too many. */
async function readCapped(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (Number(response.headers.get("content-length") ?? 0) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge(maxBytes);
  }
  const reader = response.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > maxBytes) {
      await reader.cancel();
      throw tooLarge(maxBytes);
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

function tooLarge(maxBytes: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`the file is larger than ${maxBytes} bytes`);
}

/** The file is there, the way to it failed. Without `cause`: errors of fetch quote their address. */
function lostDownload(reason: string): MediaUnavailableError {
  return new MediaUnavailableError(`the download failed: ${reason}`, {
    reason: "rehydrate-failed",
    kind: "transient",
    retryable: true,
  });
}

function unavailable(message: string): MediaUnavailableError {
  return new MediaUnavailableError(message, { reason: "rehydrate-failed" });
}
