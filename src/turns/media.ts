/**
 * Media of events in the journal: references only, rebuilt by their channel when a turn begins. What
 * cannot be rebuilt is marked with the reason, and the turn runs all the same.
 *
 * @module
 */
import type { AnyChannel, StoredMediaRef } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { MediaUnavailableError } from "../channels/errors.ts";
import type { InboundEvent, MediaRef } from "../channels/events.ts";

type Unavailable = NonNullable<MediaRef["unavailable"]>;

/** The event as the journal keeps it: references in the channel's stored form. */
export function storedEvent(
  event: InboundEvent,
  channel: AnyChannel | undefined,
  keep: boolean,
): InboundEvent {
  if (event.media === undefined) return event;
  return { ...event, media: event.media.map((ref) => storedRef(ref, channel, keep)) };
}

function storedRef(ref: MediaRef, channel: AnyChannel | undefined, keep: boolean): MediaRef {
  if (!keep) return without(ref, "not-durable", "inbox.mediaRefs is false");
  const stored = channel?.media?.serializeMediaRef(ref);
  if (stored === undefined)
    return without(ref, "not-durable", "the reference does not outlive the process");
  return { ...ref, ref: { ...stored } as unknown as JsonObject };
}

/** The event as its turn gets it. Never throws: a replay whose media is gone still runs. */
export function liveEvent(
  event: InboundEvent,
  channel: AnyChannel | undefined,
  now: number,
): InboundEvent {
  if (event.media === undefined) return event;
  return { ...event, media: event.media.map((ref) => liveRef(ref, channel, now)) };
}

/**
 * A reference that may be downloaded: checked again, since it may come from the bot's own storage.
 *
 * @throws {MediaUnavailableError} with its reason
 */
export function usableRef(ref: MediaRef, channel: AnyChannel, now: number): MediaRef {
  const kept =
    ref.unavailable !== undefined || readStored(ref.ref) !== undefined
      ? ref
      : storedRef(ref, channel, true);
  const live = liveRef(kept, channel, now);
  if (live.unavailable === undefined) return live;
  const { reason, message } = live.unavailable;
  throw new MediaUnavailableError(message, { reason });
}

function liveRef(ref: MediaRef, channel: AnyChannel | undefined, now: number): MediaRef {
  if (ref.unavailable !== undefined) return ref;
  const stored = readStored(ref.ref);
  if (stored === undefined)
    return without(ref, "rehydrate-failed", "the reference is not as it was written");
  if (stored.provider !== channel?.name) {
    const message = `the reference is of ${stored.provider.slice(0, 40)}, not of ${channel?.name ?? "this bot"}`;
    return without(ref, "provider-mismatch", message);
  }
  if (stored.expiresAt !== undefined && stored.expiresAt <= now)
    return without(ref, "rehydrate-failed", "the platform no longer has the file");
  if (channel.media === undefined)
    return without(ref, "not-durable", `${channel.name} has no media to download`);
  try {
    return channel.media.rehydrateMediaRef(stored, ref);
  } catch (error) {
    if (!(error instanceof MediaUnavailableError))
      return without(ref, "rehydrate-failed", "the reference could not be read");
    return without(ref, error.reason, error.message);
  }
}

function without(ref: MediaRef, reason: Unavailable["reason"], message: string): MediaRef {
  return { ...ref, ref: {}, unavailable: { reason, message } };
}

function readStored(value: JsonObject): StoredMediaRef | undefined {
  const { v, provider, data, expiresAt } = value;
  if (typeof v !== "number" || typeof provider !== "string") return undefined;
  if (typeof data !== "object" || data === null || Array.isArray(data)) return undefined;
  if (expiresAt !== undefined && typeof expiresAt !== "number") return undefined;
  return {
    v,
    provider,
    data: data as JsonObject,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}
