/**
 * Platform calls beside the journal: edits, deletions, typing, reactions, answers to presses. Repeating
 * one is harmless and losing one costs little, so none has a row.
 *
 * @module
 */
import type { ChannelIo, Outbound, SendResult } from "../channels/channel.ts";
import type { Content, JsonObject } from "../channels/content.ts";
import {
  DeliveryError,
  MediaUnavailableError,
  UnsupportedContentError,
} from "../channels/errors.ts";
import type { Address, MediaRef } from "../channels/events.ts";
import { forRender, normalise, renderButtons } from "../outbox/content.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import { usableRef } from "../turns/media.ts";
import type { Core } from "./Core.ts";

/** How long a call beside the journal may take, in ms. */
const SIDE_CALL_MS = 10_000;
/** How long one download may take, in ms. */
const DOWNLOAD_MS = 60_000;
/** The most bytes that a download may have where its caller names no limit (20 MiB). */
const MAX_MEDIA_BYTES = 20_971_520;

/** The side calls of one chat. */
export class SideCalls {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** @throws {DeliveryError} when the platform refused or did not answer */
  async edit(id: string, content: Content): Promise<void> {
    const normal = normalise(content);
    const limit = this.#core.channel().capabilities.buttonDataBytes;
    const buttons =
      normal.buttons &&
      renderButtons(normal.buttons, limit, () => {
        throw new UnsupportedContentError(
          "an edited message's button data must fit the platform's limit",
        );
      });
    const message = { id, address: this.#address };
    await this.#change("edit", (io, outbound) =>
      outbound.edit?.(message, forRender(normal, buttons), io),
    );
  }

  /** @throws {DeliveryError} when the platform refused or did not answer */
  async delete(id: string): Promise<void> {
    const message = { id, address: this.#address };
    await this.#change("delete", (io, outbound) => outbound.delete?.(message, io));
  }

  /** Best effort. */
  async typing(): Promise<void> {
    await this.#try("typing", (io, outbound) => outbound.typing?.(this.#address, io));
  }

  /** Best effort; resolves to whether the platform took it. */
  async react(id: string, emoji: string): Promise<boolean> {
    const message = { id, address: this.#address };
    const result = await this.#try("react", (io, outbound) => outbound.react?.(message, emoji, io));
    return result?.ok === true;
  }

  /** Best effort. */
  async answerPress(pressId: string, text: string | undefined): Promise<void> {
    await this.#try("answerPress", (io, outbound) => outbound.answerPress?.(pressId, text, io));
  }

  /** @throws whatever the platform's method threw */
  async api(method: string, body: JsonObject, signal: AbortSignal): Promise<unknown> {
    const channel = this.#core.channel();
    if (channel.outbound.api === undefined)
      throw new UnsupportedContentError(`${channel.name} has no raw methods`);
    return channel.outbound.api(method, body, this.#core.channelIo(channel, signal));
  }

  /**
   * Downloads a file that somebody sent.
   * @throws {MediaUnavailableError | PayloadTooLargeError | DeliveryError}
   */
  async loadMedia(
    ref: MediaRef,
    maxBytes: number = MAX_MEDIA_BYTES,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const core = this.#core;
    const channel = core.channel();
    const usable = usableRef(ref, channel, core.now());
    const media = channel.media;
    if (media === undefined)
      throw new UnsupportedContentError(`${channel.name} has no media to download`);
    const abort = new AbortController();
    const stop = () => abort.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const loading = media.load(usable, core.channelIo(channel, abort.signal), maxBytes);
      const bytes = await withDeadline(core.host.clock, DOWNLOAD_MS, loading);
      if (bytes !== TIMED_OUT) return bytes;
      throw new MediaUnavailableError(`the download took longer than ${DOWNLOAD_MS} ms`, {
        reason: "rehydrate-failed",
      });
    } finally {
      signal?.removeEventListener("abort", stop);
      abort.abort();
    }
  }

  get #address(): Address {
    return this.#core.address();
  }

  async #change(
    name: "edit" | "delete",
    call: (io: ChannelIo<unknown>, outbound: Outbound<unknown>) => Promise<SendResult> | undefined,
  ): Promise<void> {
    if (this.#core.channel().outbound[name] === undefined) {
      throw new UnsupportedContentError(`${this.#core.channel().name} cannot ${name} messages`);
    }
    const result = await this.#try(name, call);
    if (result === undefined)
      throw new DeliveryError(`the platform did not answer the ${name}`, { kind: "transient" });
    if (!result.ok) throw new DeliveryError(result.message, { kind: result.kind });
  }

  async #try<T>(
    name: string,
    call: (io: ChannelIo<unknown>, outbound: Outbound<unknown>) => Promise<T> | undefined,
  ): Promise<T | undefined> {
    const core = this.#core;
    const abort = new AbortController();
    try {
      const channel = core.channel();
      const pending = call(core.channelIo(channel, abort.signal), channel.outbound);
      if (pending === undefined) return undefined;
      const done = await withDeadline(core.host.clock, SIDE_CALL_MS, pending);
      return done === TIMED_OUT ? undefined : done;
    } catch (error) {
      core.host.log.debug("a call beside the journal failed", { name, error: String(error) });
      return undefined;
    } finally {
      abort.abort();
    }
  }
}
