/**
 * Why a delivery failed: the closed set of kinds, and the error classes built on it. A refusal (the
 * platform said no) and a lost answer (nobody knows) differ in `evidence`, never only in words.
 *
 * @module
 */
import type { Duration } from "../time/duration.ts";

/** What went wrong, independent of the platform. */
export type ErrorKind =
  | "transient"
  | "rate_limit"
  | "auth"
  | "permission"
  | "not_found"
  | "invalid_payload"
  | "payload_too_large"
  | "unsupported_content"
  | "outside_session_window"
  | "recipient_unreachable"
  | "conflict"
  | "cancelled"
  | "unknown";

/** Whether the platform can have acted. `not_sent` needs positive proof: the platform's own refusal. */
export type Evidence = "not_sent" | "maybe_sent";

/** Whether a refusal of this kind may pass if tried again. */
export function isRetryableKind(kind: ErrorKind, evidence: Evidence): boolean {
  return (
    kind === "transient" || kind === "rate_limit" || (kind === "unknown" && evidence === "not_sent")
  );
}

/** Options common to every {@link HoldfastError}. */
export interface HoldfastErrorInit {
  /** The error behind this one. */
  cause?: unknown;
  /** Stable, documented in `docs/errors.md`. */
  code?: string | undefined;
  kind?: ErrorKind | undefined;
  retryable?: boolean | undefined;
  /** How long to wait before a retry, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The outbox key that the error is about. */
  key?: string | undefined;
}

/** The base of all errors that Holdfast throws. */
export class HoldfastError extends Error {
  // Written out: a minifier renames classes.
  override readonly name: string = "HoldfastError";
  /** Stable, documented in `docs/errors.md`. */
  readonly code: string;
  readonly kind: ErrorKind;
  /** False means definitive: trying again cannot help. */
  readonly retryable: boolean;
  /** How long to wait before a retry, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The outbox key that the error is about, where there is one. */
  readonly key?: string;

  constructor(
    message: string,
    defaults: Required<Pick<HoldfastErrorInit, "code" | "kind">>,
    init: HoldfastErrorInit = {},
  ) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code ?? defaults.code ?? "unknown";
    this.kind = init.kind ?? defaults.kind ?? "unknown";
    this.retryable = init.retryable ?? isRetryableKind(this.kind, "not_sent");
    if (init.retryAfterMs !== undefined) this.retryAfterMs = init.retryAfterMs;
    if (init.key !== undefined) this.key = init.key;
  }
}

/** Options of a {@link DeliveryError}. */
export type DeliveryErrorInit = HoldfastErrorInit & { sentParts?: readonly string[] };

/** A send died: the platform refused it for good, or retries ran out. */
export class DeliveryError extends HoldfastError {
  override readonly name: string = "DeliveryError";
  /** Platform ids of the parts that were sent before the failure. */
  readonly sentParts: readonly string[];
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "delivery_failed", kind: "unknown" }, { retryable: false, ...init });
    this.sentParts = init.sentParts ?? [];
  }
}

/** The platform asked to slow down. */
export class RateLimitedError extends DeliveryError {
  override readonly name: string = "RateLimitedError";
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "rate_limited", kind: "rate_limit", ...init });
  }
}

/** The channel cannot carry this kind of content; nothing was downgraded silently. */
export class UnsupportedContentError extends DeliveryError {
  override readonly name: string = "UnsupportedContentError";
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "unsupported_content", kind: "unsupported_content", ...init });
  }
}

/** The content exceeds a limit of the platform or the journal. */
export class PayloadTooLargeError extends DeliveryError {
  override readonly name: string = "PayloadTooLargeError";
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "payload_too_large", kind: "payload_too_large", ...init });
  }
}

/** The platform's session window (often 24 h after the user's last message) is closed. */
export class OutsideSessionWindowError extends DeliveryError {
  override readonly name: string = "OutsideSessionWindowError";
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "outside_session_window", kind: "outside_session_window", ...init });
  }
}

/** The recipient blocked the bot, left, or does not exist. */
export class RecipientUnreachableError extends DeliveryError {
  override readonly name: string = "RecipientUnreachableError";
  constructor(message: string, init: DeliveryErrorInit = {}) {
    super(message, { code: "recipient_unreachable", kind: "recipient_unreachable", ...init });
  }
}

/** The inline budget is spent; the background goes on. Not a failure: look the key up later. */
export class SendDeferredError extends HoldfastError {
  override readonly name: string = "SendDeferredError";
  constructor(message: string, init: HoldfastErrorInit & { key: string }) {
    super(message, { code: "send_deferred", kind: "transient" }, { retryable: false, ...init });
  }
}

/** Media that a replay cannot rebuild. */
export class MediaUnavailableError extends HoldfastError {
  override readonly name: string = "MediaUnavailableError";
  readonly reason: "not-durable" | "provider-mismatch" | "rehydrate-failed";
  constructor(
    message: string,
    init: HoldfastErrorInit & { reason: "not-durable" | "provider-mismatch" | "rehydrate-failed" },
  ) {
    super(message, { code: "media_unavailable", kind: "not_found" }, { retryable: false, ...init });
    this.reason = init.reason;
  }
}

/** A flow's question or wait got no answer in time. */
export class FlowTimeoutError extends HoldfastError {
  override readonly name: string = "FlowTimeoutError";
  constructor(message: string, init: HoldfastErrorInit = {}) {
    super(message, { code: "flow_timeout", kind: "cancelled" }, { retryable: false, ...init });
  }
}

/** A flow's question got no answer that fits, however often it was asked. */
export class FlowAnswerError extends HoldfastError {
  override readonly name: string = "FlowAnswerError";
  constructor(message: string, init: HoldfastErrorInit = {}) {
    super(message, { code: "flow_answer", kind: "cancelled" }, { retryable: false, ...init });
  }
}

/** The turn was stopped: it ran longer than `inbox.turnTimeoutMs`, or was interrupted. */
export class TurnAbortedError extends HoldfastError {
  override readonly name: string = "TurnAbortedError";
  constructor(message: string, init: HoldfastErrorInit = {}) {
    super(message, { code: "turn_aborted", kind: "cancelled" }, { retryable: false, ...init });
  }
}

/** A send was called on a context whose turn is over. */
export class TurnEndedError extends HoldfastError {
  override readonly name: string = "TurnEndedError";
  constructor(message: string, init: HoldfastErrorInit = {}) {
    super(message, { code: "turn_ended", kind: "cancelled" }, { retryable: false, ...init });
  }
}

/** An option, a secret or a binding is missing or wrong. The message names it and says what is allowed. */
export class ConfigError extends HoldfastError {
  override readonly name: string = "ConfigError";
  constructor(message: string, init: HoldfastErrorInit = {}) {
    super(message, { code: "config", kind: "invalid_payload" }, { retryable: false, ...init });
  }
}

/** Thrown by a handler to have the same event run again. */
export class RetryTurn extends HoldfastError {
  override readonly name: string = "RetryTurn";
  /** How long to wait; absent means `inbox.backoff` decides. */
  readonly after?: Duration;
  constructor(init: { after?: Duration; cause?: unknown } = {}) {
    super(
      "the handler asked for this turn to run again",
      { code: "retry_turn", kind: "transient" },
      { cause: init.cause },
    );
    if (init.after !== undefined) this.after = init.after;
  }
}

/** Builds the error class that fits a kind; what `reply` throws when a send died. */
export function deliveryErrorOf(
  message: string,
  init: DeliveryErrorInit & { kind: ErrorKind },
): DeliveryError {
  switch (init.kind) {
    case "rate_limit":
      return new RateLimitedError(message, init);
    case "unsupported_content":
      return new UnsupportedContentError(message, init);
    case "payload_too_large":
      return new PayloadTooLargeError(message, init);
    case "outside_session_window":
      return new OutsideSessionWindowError(message, init);
    case "recipient_unreachable":
      return new RecipientUnreachableError(message, init);
    default:
      return new DeliveryError(message, init);
  }
}
