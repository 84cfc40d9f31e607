/**
 * The contract of a channel: pure functions for what arrives, one HTTP call for what leaves, and its
 * abilities as data. A channel knows nothing of journals, retries or turns; the outbox owns those.
 *
 * @module
 */
import type { Actors } from "../host/Host.ts";
import type { ContentKind, JsonObject, PlainContent } from "./content.ts";
import type { ErrorKind, Evidence } from "./errors.ts";
import type {
  Address,
  ChatInfo,
  DeliveryStatus,
  InboundEvent,
  MediaRef,
  Sender,
} from "./events.ts";
import type { ServedChannel } from "./served.ts";

/** How strongly a channel can prove that a repeat is harmless (docs/guarantees.md). */
export type DeliveryClass = "keyed" | "provable" | "blind";

/** A rate: at most `burst` calls in any `burst × perMs` milliseconds. */
export interface Pace {
  burst: number;
  perMs: number;
  /** Kept only for a minute after the platform said 429, where it tolerates more most of the time. */
  afterLimit?: true;
}

/** What a channel can do, as data. Docs and tests are generated from it. */
export interface Capabilities {
  text: { limit: number; unit: "codepoints" | "utf16" | "bytes" };
  kinds: readonly ContentKind[];
  /** The most bytes that a button's value may have; longer data is kept by the journal under a short id. */
  buttonDataBytes: number;
  threads: boolean;
  edit: boolean;
  delete: boolean;
  typing: boolean;
  reactions: boolean;
  /** Whether a preview can become the final message by an edit. Takes `revise`. */
  finalizeInPlace: boolean;
  /** How an answer is shown while it is written; absent where it goes out once it is complete. */
  streaming?: {
    /** The least time between two previews in one chat, in milliseconds. */
    everyMs: number;
    /** The same in a group. Default `everyMs`. */
    groupEveryMs?: number;
    /** Where `draft` may be used. */
    draft?: "direct" | "all";
  };
  redelivery: {
    /** In one sentence, for the docs. */
    behaviour: string;
    /** How long the platform may redeliver, in milliseconds. Retention is at least this plus a day. */
    windowMs: number;
    /** Whether the platform delivers a chat's next event only once the last was answered. */
    serial?: true;
  };
  /** How fast one chat may be written to; the outbox waits by itself. Absent where there is no limit. */
  pacing?: {
    direct: Pace;
    group: Pace;
    /** How fast the account may write to all its chats together; matters once it was told to slow down. */
    perBot?: Pace;
  };
  /** How long the platform waits for the webhook's answer, in milliseconds. */
  deadlineMs: number;
  /** The answer when the journal could not commit: never a code that disables the webhook. */
  journalFailure: { status: number; retryAfterSeconds?: number };
  delivery: {
    class: DeliveryClass;
    /** keyed: how long the platform honours a marker, counted from the first attempt. */
    markerWindowMs?: number;
    /** keyed: what it is once the marker's window is over. Default `blind`. */
    afterWindow?: "provable" | "blind";
    /** provable: how long after a lost answer a lookup is conclusive, in milliseconds. */
    settleAfterMs?: number;
  };
  /** Whether statuses that name only a platform id come later, so that ids must be findable. */
  statuses?: true;
  /** Which keys deduplicate inbound events, for the docs. */
  dedupe: string;
}

/** A webhook request with its body read: bytes as they came, for signatures. */
export interface RawRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** One item of a verified body. */
export type InboundItem =
  | { type: "event"; event: InboundEvent }
  | { type: "status"; status: DeliveryStatus }
  /**
   * Something that is about the account, and names no chat and no person. `Connection` keeps it; where
   * the bot handles its kind it runs as a turn of `event.chat`, which is no chat of the platform's.
   */
  | { type: "account"; event: InboundEvent }
  /** Part of a verified body that could not be understood: journaled as a dead, truncated record. */
  | { type: "bad"; id: string; chat: ChatInfo; error: string; sample: string };

/** What became of a webhook's items. */
export type WebhookOutcome = { committed: true } | { committed: false; retryAfterSeconds?: number };

/** Options of one connection, read from the environment; `missing` names the variables that are unset. */
export type Configured<O> = { ok: true; options: O } | { ok: false; missing: readonly string[] };

/** What a channel's calls get besides the request. */
export interface ChannelIo<O> {
  readonly options: O;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Aborts at `sendTimeoutMs`. */
  readonly signal: AbortSignal;
  /** Epoch milliseconds. */
  now(): number;
  /** Calls to other actors, for channels whose platform is an actor (web chat). */
  readonly actors: Actors;
  /** `tenant/environment/bot/connection`, percent-encoded: prefixes the names of the scope's actors. */
  readonly scope: string;
}

/** What `send` gets besides {@link ChannelIo}. */
export interface SendIo<O> extends ChannelIo<O> {
  /** Stable over repeats of the same part; put where the platform deduplicates or echoes it. */
  readonly marker: string;
  readonly address: Address;
}

/** What `render` makes of a part: the platform call without credentials. Frozen once it may have been sent. */
export interface RenderedPart {
  kind: "text" | "media" | "template" | "other";
  request: JsonObject;
}

/** What the platform said of one part. */
export interface PartReceipt {
  /** The platform's message id. */
  id: string;
  kind: RenderedPart["kind"];
  threadId?: string;
  replyToId?: string;
}

/** The outcome of one platform call. A throw from `send` counts as `unknown`, `maybe_sent`. */
export type SendResult =
  | { ok: true; receipt: PartReceipt }
  | {
      ok: false;
      kind: ErrorKind;
      evidence: Evidence;
      /** How long the platform asked to wait, in milliseconds; never shortened. */
      retryAfterMs?: number;
      /** The platform's own code. */
      code?: string;
      /** Without secrets: it is journaled. */
      message: string;
      /** The platform refused the formatting: send `outbound.plain(request)` instead, under a new marker. */
      fallback?: "plain";
      /** The chat has moved: send there instead; spends no attempt. */
      migratedTo?: Address;
    };

/** What a lookup says of an unknown send. `not_sent` needs a complete read. */
export type ReconcileResult =
  | { result: "sent"; receipt: PartReceipt }
  | { result: "not_sent" }
  | { result: "unresolved"; retryAfterMs?: number };

/** What the channel tells the outbox about a part to look up. */
export interface ReconcileQuery {
  request: JsonObject;
  marker: string;
  address: Address;
  /** When the first attempt that may have been sent began: epoch milliseconds. */
  firstMaybeAt: number;
}

/** The half of a channel that reads webhooks. Pure but for `verify`, which may use WebCrypto. */
export interface Inbound<O> {
  /** Bodies above it are refused with 413 before they are read. */
  readonly maxBodyBytes: number;
  /** Answers a GET or another handshake that carries no events; `undefined` if the request is none. */
  handshake?(request: RawRequest, options: O): Response | Promise<Response> | undefined;
  /** Checks the signature over the raw bytes, in constant time. */
  verify(request: RawRequest, options: O): boolean | Promise<boolean>;
  /**
   * @throws {SyntaxError} when the body is not the platform's format (answered 400)
   */
  parse(
    request: RawRequest,
    context: { options: O; connection: string; now: number },
  ): InboundItem[];
  /** The platform's success or failure answer. */
  answer(items: readonly InboundItem[], outcome: WebhookOutcome): Response;
}

/** What a draft shows. */
export interface DraftView {
  /** Names the answer: the same for all its drafts. */
  id: string;
  address: Address;
  /** The part as it reads now. */
  request: JsonObject;
}

/** The half of a channel that calls the platform. */
export interface Outbound<O> {
  /**
   * Splits content into parts, each one platform call. Pure.
   * @throws {UnsupportedContentError} for a kind that the channel did not declare
   */
  render(
    content: PlainContent,
    target: { address: Address; options: O | undefined },
  ): RenderedPart[];
  /** What people will read of a rendered part: an echo that has no id is known by it. Pure. */
  textOf?(request: JsonObject): string | undefined;
  /** The same part without formatting, for a `fallback: "plain"`. Pure. */
  plain?(request: JsonObject): JsonObject;
  /** Moves a rendered part to another address, after a `migratedTo`. Pure. */
  readdress?(request: JsonObject, address: Address): JsonObject;
  /** Tokens and uploads before the call; a failure here has sent nothing. Absent where not needed. */
  prepare?(
    request: JsonObject,
    io: SendIo<O>,
  ): Promise<{ ok: true; request: JsonObject } | Extract<SendResult, { ok: false }>>;
  /** One HTTP call; must call `io.fetch` (or the actor) before its first `await`. */
  send(request: JsonObject, io: SendIo<O>): Promise<SendResult>;
  /** Looks an unknown send up. Present on provable channels that can be asked. */
  reconcile?(query: ReconcileQuery, io: ChannelIo<O>): Promise<ReconcileResult>;
  /** A harmless call that shows whether the platform answers at all; gates resends on blind channels. */
  selfTest?(io: ChannelIo<O>): Promise<boolean>;
  /** Replaces a sent message. Repeating it must be harmless. */
  edit?(
    message: { id: string; address: Address },
    content: PlainContent,
    io: ChannelIo<O>,
  ): Promise<SendResult>;
  /** Makes a sent text what a rendered part says: the last edit of a streamed answer. Repeating it must be harmless. */
  revise?(
    message: { id: string; address: Address },
    request: JsonObject,
    io: ChannelIo<O>,
  ): Promise<SendResult>;
  /** Shows a part that is still being written, without a message: it is gone once one is sent, or some 30 s later. */
  draft?(draft: DraftView, io: ChannelIo<O>): Promise<SendResult>;
  delete?(message: { id: string; address: Address }, io: ChannelIo<O>): Promise<SendResult>;
  typing?(address: Address, io: ChannelIo<O>): Promise<void>;
  react?(
    message: { id: string; address: Address },
    emoji: string,
    io: ChannelIo<O>,
  ): Promise<SendResult>;
  /** Answers a button press, so that the platform stops its spinner. */
  answerPress?(pressId: string, text: string | undefined, io: ChannelIo<O>): Promise<void>;
  /** Raw call of a platform method, unjournaled. */
  api?(method: string, body: JsonObject, io: ChannelIo<O>): Promise<unknown>;
}

/** A media reference as the journal keeps it: no bytes, no credentials. */
export interface StoredMediaRef {
  /** Version of `data`, the channel's own. */
  v: number;
  /** Which channel wrote it. */
  provider: string;
  data: JsonObject;
  /** When the platform forgets it: epoch milliseconds. */
  expiresAt?: number;
}

/** Media of a channel. */
export interface ChannelMedia<O> {
  /** Hosts that downloads may come from. */
  readonly hosts: readonly string[];
  /** What the journal keeps of a reference; nothing where it would not outlive the process. Pure. */
  serializeMediaRef(ref: MediaRef): StoredMediaRef | undefined;
  /**
   * Rebuilds a reference from the journal, with no call to the platform. Pure.
   *
   * @throws {MediaUnavailableError} `provider-mismatch` for another channel's, `rehydrate-failed` for a
   * version, a shape or a host that is not this channel's
   */
  rehydrateMediaRef(stored: StoredMediaRef, ref: MediaRef): MediaRef;
  /**
   * Downloads, never over `maxBytes`, never with credentials to another host.
   *
   * @throws {MediaUnavailableError | PayloadTooLargeError}
   */
  load(ref: MediaRef, io: ChannelIo<O>, maxBytes: number): Promise<Uint8Array>;
}

/** One update that was fetched, and the cursor that confirms it. */
export interface PolledUpdate {
  /** Saved once the items are committed: the next poll starts behind it. */
  cursor: string;
  items: InboundItem[];
}

/** What one poll brought. */
export type PollResult =
  | { ok: true; updates: PolledUpdate[] }
  | {
      ok: false;
      kind: ErrorKind;
      /** How long the platform asked to wait, in milliseconds. */
      retryAfterMs?: number;
      code?: string;
      /** Names cause and fix; without secrets. */
      message: string;
    };

/** The bot account, as people know it. */
export interface PollingAccount {
  name: string;
  /** Where people talk to it. */
  url?: string;
}

/** Fetching updates without a public URL. */
export interface ChannelPolling<O> {
  /** Asks the platform whose token this is. Never throws for what the platform says. */
  account(
    io: ChannelIo<O>,
  ): Promise<{ ok: true; account: PollingAccount } | Extract<PollResult, { ok: false }>>;
  /**
   * One long poll behind `cursor` (absent: from what the platform still has).
   * Never throws for what the platform says.
   */
  poll(
    cursor: string | undefined,
    io: ChannelIo<O>,
    context: { connection: string; waitMs: number; limit: number },
  ): Promise<PollResult>;
}

/** A platform, connected once. Made by a factory such as `telegram()`. */
export interface Channel<O = unknown> {
  /** The platform: `telegram`, `slack` … */
  readonly name: string;
  /** This bot account's id. Default: the channel's name. */
  readonly connection: string;
  readonly capabilities: Capabilities;
  /** Reads the connection's options; missing secrets are named, never thrown. */
  configure(env: Record<string, unknown>): Configured<O>;
  /**
   * The chat's key within its connection: the platform's chat id, plus the thread where threads are
   * separate conversations. Pure.
   */
  chatKey(chat: Pick<ChatInfo, "id" | "thread">): string;
  readonly inbound: Inbound<O>;
  readonly outbound: Outbound<O>;
  readonly media?: ChannelMedia<O>;
  readonly polling?: ChannelPolling<O>;
  readonly served?: ServedChannel;
}

/** A channel of any option type, as the core holds it. */
// biome-ignore lint/suspicious/noExplicitAny: options are private to their channel; the core only hands them back
export type AnyChannel = Channel<any>;

export type { Address, ChatInfo, DeliveryStatus, InboundEvent, MediaRef, Sender };
