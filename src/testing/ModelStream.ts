/** A model's answer as it comes in: piece by piece, in the time of the test. @module */
import { type Clock, sleep } from "../time/Clock.ts";
import { scopedClock } from "./scope.ts";

/** How a simulated model writes. */
export interface ModelStreamOptions {
  /** Default 50. */
  tokensPerSecond?: number | undefined;
  /** Before the first piece, in ms. Default 300. */
  firstTokenMs?: number | undefined;
  /** The characters of one token. Default 4. */
  tokenLength?: number | undefined;
  /** Default: the clock of the test that runs the handler, elsewhere the wall clock. */
  clock?: Clock | undefined;
  /** Throws this after so many tokens. */
  fails?: { afterTokens: number; error: unknown } | undefined;
}

/**
 * A simulated model stream: an async iterable of text.
 *
 * ```ts
 * bot.otherwise((ctx) => ctx.stream(new ModelStream("A long answer …")));
 * ```
 */
export class ModelStream implements AsyncIterable<string> {
  readonly text: string;
  /** What was read of it so far. */
  said = "";
  /** `cancelled`: its reader left before the end. */
  state: "unread" | "reading" | "done" | "cancelled" | "failed" = "unread";
  readonly #options: ModelStreamOptions;

  constructor(text: string, options: ModelStreamOptions = {}) {
    this.text = text;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void> {
    const { tokensPerSecond = 50, firstTokenMs = 300, tokenLength = 4, fails } = this.#options;
    const { clock = scopedClock() } = this.#options;
    const characters = [...this.text];
    const begin = clock.now() + firstTokenMs;
    this.state = "reading";
    try {
      for (let n = 0; n * tokenLength < characters.length; n += 1) {
        const due = begin + Math.round((n * 1_000) / tokensPerSecond);
        if (due > clock.now()) await sleep(clock, due - clock.now());
        if (n === fails?.afterTokens) {
          this.state = "failed";
          throw fails.error;
        }
        const piece = characters.slice(n * tokenLength, (n + 1) * tokenLength).join("");
        this.said += piece;
        yield piece;
      }
      this.state = "done";
    } finally {
      if (this.state === "reading") this.state = "cancelled";
    }
  }
}
