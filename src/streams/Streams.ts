/**
 * The streamed answers of one chat: begun by a handler, recorded once they are whole, and ended with their
 * turn where they are not.
 *
 * @module
 */
import { ConfigError, TurnEndedError } from "../channels/errors.ts";
import { readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import type { TurnEnd } from "../objects/Outbox.ts";
import type { Drain } from "../outbox/Drain.ts";
import type { Decided } from "../outbox/draft.ts";
import type { Intents } from "../outbox/Intents.ts";
import { PREVIEW } from "../outbox/keys.ts";
import { dropUnsent, removePreview } from "../outbox/previews.ts";
import type { OpenStream, TurnSends } from "../outbox/TurnSends.ts";
import { errorText } from "../safety/redact.ts";
import { notADuration, parseDuration } from "../time/duration.ts";
import { Stream } from "./Stream.ts";
import { piecesOf } from "./source.ts";
import type { StreamOptions, StreamSource } from "./types.ts";

/** Stands for the content of a streamed answer, which no run says twice in the same words. */
const FINGERPRINT = "stream";

/** A call of `ctx.stream`. */
export interface StreamCall {
  sends: TurnSends;
  scope: string;
  source: StreamSource;
  options: StreamOptions;
  signal: AbortSignal;
}

/** The streams of one actor. */
export class Streams {
  readonly #core: Core;
  readonly #intents: Intents;
  readonly #drain: Drain;
  readonly #drafts = { refused: false };

  constructor(core: Core, intents: Intents, drain: Drain) {
    this.#core = core;
    this.#intents = intents;
    this.#drain = drain;
  }

  /** Shows an answer while it is written, and delivers it. */
  stream(call: StreamCall): Promise<Decided> {
    return this.#intents.track(call.sends, () => this.#stream(call));
  }

  async #stream({ sends, scope, source, options, signal }: StreamCall): Promise<Decided> {
    const { every, onInterrupt: _onInterrupt, idempotencyKey, ...content } = options;
    const everyMs = sends.unjournaled ? Number.POSITIVE_INFINITY : this.#everyMs(every);
    const intent = {
      sends,
      scope,
      content: { ...content, text: "" },
      options: idempotencyKey === undefined ? {} : { idempotencyKey },
      wait: true,
      origin: "bot" as const,
    };
    const draft = this.#intents.draft(intent, FINGERPRINT);
    const known = this.#intents.known(draft);
    if (known !== undefined) {
      piecesOf(source).cancel(new Error("this answer is on record"));
      return known;
    }
    sends.onNew(draft.slot);
    const parts = {
      core: this.#core,
      intents: this.#intents,
      drain: this.#drain,
      signal,
      drafts: this.#drafts,
    };
    const stream = new Stream(parts, draft, options, everyMs);
    // Until it is on record, the end of the turn has to see to it.
    sends.streams.add(stream);
    const whole = await stream.read(source);
    // A last look that took long: the end of the turn has recorded what was said.
    if (sends.closed) throw new TurnEndedError("the turn ended before its answer was recorded");
    const decided = await this.#intents.finish(whole);
    sends.streams.delete(stream);
    return decided;
  }

  /** @throws {ConfigError} for an `every` that is no duration */
  #everyMs(every: StreamOptions["every"]): number {
    const asked = every === undefined ? 0 : parseDuration(every);
    if (asked === undefined) throw new ConfigError(`ctx.stream: every: ${notADuration(every)}`);
    const { streaming } = this.#core.channel().capabilities;
    if (streaming === undefined) return Number.POSITIVE_INFINITY;
    const { everyMs, groupEveryMs = everyMs } = streaming;
    return Math.max(asked, this.#core.identity().kind === "group" ? groupEveryMs : everyMs);
  }

  /**
   * Part of the commit that ends a turn: what was said of an answer that did not come to its end becomes the
   * message. A preview that no answer takes over is removed, unless the turn was stopped: then it is what was
   * said. A turn that runs again goes on with both.
   */
  close(sends: TurnSends, end: TurnEnd): void {
    const stopped = end !== "settled" && end !== "failed";
    const said = new Map<string, "keep" | "remove" | undefined>();
    for (const stream of sends.streams) said.set(stream.slot, this.#end(stream, sends, end));
    sends.streams.clear();
    if (end === "retry" || !sends.hasPreviews) return;
    const { outbox } = this.#core.journal;
    const rows = outbox.ofTurn(sends.seq);
    const shown = rows.filter((row) => row.slot.includes(`${PREVIEW}p`));
    for (const row of shown) {
      const answer = row.slot.slice(0, row.slot.indexOf(PREVIEW));
      if (dropUnsent(this.#core, row, this.#drain.isInFlight(row))) continue;
      const fate = said.get(answer) ?? (stopped && !readExtra(row).remove ? "keep" : "remove");
      if (
        fate === "keep" ||
        rows.some(({ slot, state }) => slot === answer && state !== "suppressed")
      )
        continue;
      removePreview(this.#core, row);
    }
  }

  #end(stream: OpenStream, sends: TurnSends, end: TurnEnd): "keep" | "remove" | undefined {
    stream.stop();
    // A turn that runs again writes it anew; what is on record is whole.
    if (end === "retry" || sends.recorded(stream.slot) !== undefined) return undefined;
    try {
      const remains = stream.remains();
      if (typeof remains === "string") return remains;
      this.#intents.freeze(remains);
    } catch (error) {
      // The commit that ends the turn must not fail for what an answer cannot be made of.
      const { host } = this.#core;
      host.rethrowIfHalted(error);
      host.log.error("an answer that ended early is lost", { error: errorText(error, host.env) });
    }
    return undefined;
  }
}
