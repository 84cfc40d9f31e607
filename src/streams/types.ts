/** What `ctx.stream` takes. @module */
import type { ContentObject } from "../channels/content.ts";
import type { Duration } from "../time/duration.ts";

/**
 * Where the text comes from: anything that can be iterated with `for await` and gives pieces of text, or a
 * stream of text or of bytes in UTF-8 (the body of a response).
 */
export type StreamText = AsyncIterable<string> | ReadableStream<string | Uint8Array>;

/**
 * A text, or a function that begins one. The function is called only where the answer is not on record yet:
 * a run that is repeated after a crash, or a flow that goes on, asks no model again.
 */
export type StreamSource = StreamText | (() => StreamText | Promise<StreamText>);

/** Options of `ctx.stream`. */
export interface StreamOptions
  extends Pick<ContentObject, "format" | "buttons" | "replyTo" | "silent"> {
  /**
   * The time between two looks at what is there so far. Default, and never less: what the platform bears
   * (a second in a Telegram chat, four in a group).
   */
  every?: Duration | undefined;
  /**
   * What becomes of an answer whose source is not read to its end, because a newer message interrupted the
   * turn, its time was over or the source failed: `"keep"` makes what was said the message, `"remove"` takes
   * the preview away, a function makes the message of what was said (and must not throw). Default `"keep"`.
   */
  onInterrupt?: "keep" | "remove" | ((said: string) => string) | undefined;
  /** Unique per chat; a second use is answered from the record, and its source is not read. */
  idempotencyKey?: string | undefined;
}
