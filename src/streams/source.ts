/** Reading a stream's source, whatever it is. @module */
import { ConfigError } from "../channels/errors.ts";
import type { StreamSource } from "./types.ts";

/** A source that is being read. */
export interface Pieces {
  next(): Promise<IteratorResult<string, unknown>>;
  /** Tells the source that nobody reads on, so that a model stops writing. Never throws. */
  cancel(reason: unknown): void;
}

/**
 * Opens a source.
 * @throws {ConfigError} for something that is none
 */
export function piecesOf(source: StreamSource): Pieces {
  const pieces =
    source instanceof ReadableStream ? fromStream(source) : source?.[Symbol.asyncIterator]?.();
  if (pieces === undefined) {
    throw new ConfigError(
      "ctx.stream takes an async iterable of text or a ReadableStream; give `result.textStream`, not the result",
    );
  }
  return {
    next: async () => {
      const next = await pieces.next();
      if (next.done === true || typeof next.value === "string") return next;
      throw new ConfigError(`a stream's pieces must be text, not ${typeof next.value}`);
    },
    cancel: (reason) => {
      // A generator that waits returns once its wait is over: nobody waits for that here.
      void Promise.resolve(pieces.return?.(reason)).catch(() => undefined);
    },
  };
}

function fromStream(stream: ReadableStream<string | Uint8Array>): AsyncIterator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  return {
    async next() {
      const { done, value } = await reader.read();
      // What is left of a character that the last piece cut short.
      if (done) return { done, value };
      return {
        done: false,
        value: typeof value === "string" ? value : decoder.decode(value, { stream: true }),
      };
    },
    async return(reason) {
      await reader.cancel(reason);
      return { done: true, value: undefined };
    },
  };
}
