/** Reading a stream's source, whatever it is. @module */
import { ConfigError } from "../channels/errors.ts";
import type { StreamSource, StreamText } from "./types.ts";

/** A source that is being read. */
export interface Pieces {
  next(): Promise<IteratorResult<string, unknown>>;
  /** Tells the source that nobody reads on, so that a model stops writing. Never throws. */
  cancel(reason: unknown): void;
}

/**
 * Opens a source; one that is begun by a function, with the first piece.
 * @throws {ConfigError} for something that is none
 */
export function piecesOf(source: StreamSource): Pieces {
  const begin = typeof source === "function" ? source : undefined;
  let pieces = begin === undefined ? iteratorOf(source as StreamText) : undefined;
  let cancelled: { reason: unknown } | undefined;
  const cancel = (reason: unknown) => {
    cancelled = { reason };
    // A generator that waits returns once its wait is over: nobody waits for that here.
    void Promise.resolve(pieces?.return?.(reason)).catch(() => undefined);
  };
  return {
    next: async () => {
      if (pieces === undefined) {
        pieces = iteratorOf(await begin?.());
        if (cancelled !== undefined) cancel(cancelled.reason);
      }
      const next = await pieces.next();
      if (next.done === true || typeof next.value === "string") return next;
      throw new ConfigError(`a stream's pieces must be text, not ${typeof next.value}`);
    },
    cancel,
  };
}

function iteratorOf(text: StreamText | undefined): AsyncIterator<string> {
  const pieces =
    text instanceof ReadableStream ? fromStream(text) : text?.[Symbol.asyncIterator]?.();
  if (pieces === undefined) {
    throw new ConfigError(
      "ctx.stream takes an async iterable of text or a ReadableStream; give `result.textStream`, not the result",
    );
  }
  return pieces;
}

function fromStream(stream: ReadableStream<string | Uint8Array>): AsyncIterator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  return {
    async next() {
      const { done, value } = await reader.read();
      if (done) {
        // What is left of a character that the last piece cut short.
        const rest = decoder.decode();
        return rest === "" ? { done, value } : { done: false, value: rest };
      }
      const text = typeof value === "string" ? value : decoder.decode(value, { stream: true });
      return { done: false, value: text };
    },
    async return(reason) {
      await reader.cancel(reason);
      return { done: true, value: undefined };
    },
  };
}
