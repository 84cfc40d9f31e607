/**
 * Files that people sent: asked for by id, downloaded within a cap. A download link has the token in
 * its path, so it is made for one request and never shown.
 *
 * @module
 */
import type { ChannelIo, ChannelMedia, StoredMediaRef } from "../channel.ts";
import { deliveryErrorOf, MediaUnavailableError, PayloadTooLargeError } from "../errors.ts";
import type { MediaRef } from "../events.ts";
import { call, isRecord, redact } from "./call.ts";
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
/** Telegram's file ids are URL-safe base64. */
const FILE_ID = /^[\w-]{1,512}$/;

/** A file id outlives the process and is no credential: only this bot's token opens it. */
function serializeMediaRef(media: MediaRef): StoredMediaRef | undefined {
  const { fileId, uniqueId } = media.ref;
  if (typeof fileId !== "string" || !FILE_ID.test(fileId)) return undefined;
  return {
    v: REF_VERSION,
    provider: "telegram",
    data: { fileId, ...(typeof uniqueId === "string" ? { uniqueId } : {}) },
  };
}

function rehydrateMediaRef(stored: StoredMediaRef, media: MediaRef): MediaRef {
  if (stored.provider !== "telegram") {
    throw new MediaUnavailableError(
      `the reference is of ${String(stored.provider).slice(0, 40)}, not of telegram`,
      { reason: "provider-mismatch" },
    );
  }
  if (stored.v !== REF_VERSION) throw unavailable("the reference has an unknown version");
  const { fileId, uniqueId, ...rest } = stored.data;
  const intact =
    typeof fileId === "string" &&
    FILE_ID.test(fileId) &&
    (uniqueId === undefined || typeof uniqueId === "string") &&
    Object.keys(rest).length === 0;
  if (!intact) throw unavailable("the reference is not as it was written");
  return { ...media, ref: { fileId, ...(uniqueId === undefined ? {} : { uniqueId }) } };
}

async function load(
  media: MediaRef,
  io: ChannelIo<TelegramConfig>,
  maxBytes: number,
): Promise<Uint8Array> {
  const { fileId } = media.ref;
  if (typeof fileId !== "string") throw unavailable("the reference holds no file id");
  if (media.size !== undefined && media.size > maxBytes) throw tooLarge(maxBytes);
  const reply = await call(io, "getFile", { file_id: fileId });
  if (reply.outcome !== "ok") {
    const { kind, message, retryAfterMs } = failureOf(reply);
    if (kind === "payload_too_large") {
      throw new PayloadTooLargeError("Telegram gives bots files of up to 20 MB only");
    }
    if (kind === "transient" || kind === "rate_limit") {
      throw deliveryErrorOf(`getFile: ${message}`, { kind, retryAfterMs, retryable: true });
    }
    throw unavailable(`getFile: ${message}`);
  }
  const file = isRecord(reply.result) ? reply.result : {};
  if (typeof file.file_size === "number" && file.file_size > maxBytes) throw tooLarge(maxBytes);
  const { token } = io.options;
  try {
    const response = await io.fetch(fileUrl(io.options, file.file_path), {
      // The link is a credential: it goes to the API's host and nowhere else.
      redirect: "manual",
      signal: io.signal,
    });
    if (response.status !== 200) throw unavailable(`the download answered ${response.status}`);
    return await readCapped(response, maxBytes);
  } catch (error) {
    if (error instanceof MediaUnavailableError || error instanceof PayloadTooLargeError)
      throw error;
    // Without `cause`: errors of fetch quote the address that they failed on.
    throw unavailable(`the download failed: ${redact(String(error), token)}`);
  }
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

function unavailable(message: string): MediaUnavailableError {
  return new MediaUnavailableError(message, { reason: "rehydrate-failed" });
}
