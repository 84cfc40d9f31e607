/**
 * Platform calls beside the journal: edits, deletions, typing, reactions, answers to presses. Repeating
 * one is harmless and losing one costs little, so none has a row.
 *
 * @module
 */
import type { ChannelIo, Outbound, SendResult } from "../channels/channel.ts";
import type { Content, JsonObject } from "../channels/content.ts";
import { DeliveryError, UnsupportedContentError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { forRender, normalise, renderButtons } from "../outbox/content.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { Core } from "./Core.ts";

/** How long a call beside the journal may take, in ms. */
const SIDE_CALL_MS = 10_000;

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
