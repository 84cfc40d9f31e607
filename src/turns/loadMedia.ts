/**
 * Downloading what people sent.
 *
 * @module
 */
import type { MediaRef } from "../channels/events.ts";
import type { Context } from "./Context.ts";

/** A downloaded file. */
export interface LoadedMedia {
  kind: MediaRef["kind"];
  bytes: Uint8Array;
  mimeType?: string;
  filename?: string;
}

/** Options of {@link loadMediaOf}. */
export interface LoadMediaOptions {
  /** Which of `ctx.media`. Default 0, the first. */
  index?: number | undefined;
  /** The most bytes to read. Default 20 MiB. */
  maxBytes?: number | undefined;
  /** Throw what went wrong instead of resolving to `undefined`. Default false. */
  throwOnError?: boolean | undefined;
}

/**
 * Downloads a file of the turn's event, on demand. Nothing is kept: a replay downloads it again.
 *
 * @returns the file, or `undefined` where there is none or it cannot be had
 * @throws {MediaUnavailableError | PayloadTooLargeError | DeliveryError} only with `throwOnError`
 */
export async function loadMediaOf<Env, Shape>(
  ctx: Context<Env, Shape>,
  options: LoadMediaOptions = {},
): Promise<LoadedMedia | undefined> {
  const { index = 0, maxBytes, throwOnError = false } = options;
  const ref = ctx.media[index];
  try {
    const bytes = await ctx.loadMedia(index, { maxBytes });
    return {
      kind: ref?.kind ?? "file",
      bytes,
      ...(ref?.mimeType === undefined ? {} : { mimeType: ref.mimeType }),
      ...(ref?.filename === undefined ? {} : { filename: ref.filename }),
    };
  } catch (error) {
    if (throwOnError) throw error;
    ctx.log.warn("media could not be downloaded", {
      id: ctx.ref.id,
      index,
      reason:
        (error as { reason?: string }).reason ?? (error as { code?: string }).code ?? "unknown",
    });
    return undefined;
  }
}
