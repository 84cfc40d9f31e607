/**
 * What arrives from a platform, normalised. Everything here is JSON: it is what the journal keeps.
 *
 * @module
 */
import type { JsonObject } from "./content.ts";

/** Where to send: a stable form that users may store (`formatAddress`). */
export interface Address {
  channel: string;
  /** One bot account on the channel. Default: the channel's name. */
  connection?: string | undefined;
  /** The platform's chat id. */
  chat: string;
  /** The platform's thread id, where threads are separate conversations. */
  thread?: string | undefined;
}

/** Who sent an event. */
export interface Sender {
  id: string;
  name?: string;
  username?: string;
  isBot?: boolean;
}

/** The chat that an event belongs to. */
export interface ChatInfo {
  /** The platform's chat id. */
  id: string;
  /** The platform's thread id, where the channel keeps threads apart. */
  thread?: string;
  kind: "direct" | "group" | "broadcast";
  title?: string;
}

/** A reference to media at the platform; never bytes, never credentials. */
export interface MediaRef {
  kind: "image" | "audio" | "video" | "file";
  /** What the channel needs to download it again, as JSON. */
  ref: JsonObject;
  mimeType?: string;
  size?: number;
  filename?: string;
  /** Why it cannot be downloaded, where a replay could not rebuild the reference; `ref` is empty then. */
  unavailable?: {
    reason: "not-durable" | "provider-mismatch" | "rehydrate-failed";
    message: string;
  };
}

/** Kinds that every channel shares; anything else is `<channel>:<kind>`. */
export type EventKind =
  | "message"
  | "edited"
  | "deleted"
  | "action"
  | "reaction"
  | "membership"
  | "event"
  | "cron"
  | "timer"
  | `${string}:${string}`;

/** One thing that arrived. */
export interface InboundEvent {
  /** The delivery key: what the platform repeats when it redelivers. Readable, unique per connection. */
  id: string;
  /** A second key for platforms that deliver one message under several delivery keys. */
  semanticKey?: string;
  kind: EventKind;
  channel: string;
  connection: string;
  chat: ChatInfo;
  sender?: Sender;
  /** When it happened, by the platform's clock: epoch milliseconds. */
  at: number;
  text?: string;
  /** The platform's id of the album that the message is part of: its members become one event. */
  groupId?: string;
  media?: MediaRef[];
  location?: { latitude: number; longitude: number; name?: string };
  /** The platform's id of the message that this is or is about. */
  messageId?: string;
  /** The platform's id of the message that this answers. */
  replyTo?: string;
  /** True where the platform says that the bot is mentioned. */
  mentioned?: boolean;
  /** A pressed button: `value` is what `render` was given; `pressId` answers the press. */
  press?: { value: string; pressId?: string };
  /** A reaction: what is there now. */
  reaction?: { added: string[]; removed: string[] };
  /** A membership change. */
  membership?: { user: Sender; status: string; self: boolean };
  /** The chat has another id from now on, or had one before: chat ids of the same connection. */
  migration?: { to?: string; from?: string };
  /** Data of an external event, a timer or a cron run. */
  data?: unknown;
  /** The event's type where `kind` is `event`, `cron` or `timer`. */
  type?: string;
  /** True where the platform marks the message as written by this very bot. */
  selfAuthored?: boolean;
  /** The marker that a self-authored message was sent under, where the platform gives it back. */
  marker?: string;
  /** The platform's own fields, capped, secrets stripped. */
  native?: JsonObject;
}

/** A delivery status of a message that the bot sent. */
export interface DeliveryStatus {
  /** The platform's message id, or the marker that it was sent under. */
  platformId?: string;
  marker?: string;
  status: "sent" | "delivered" | "read" | "failed";
  at: number;
  /** Why it failed. */
  error?: { kind: import("./errors.ts").ErrorKind; code?: string; message: string };
  chat: ChatInfo;
}
