/**
 * What Telegram's refusals mean. `error_code` is documented as unstable and the description is prose,
 * so both are read, by prefix, and whatever is not recognised stays `unknown`.
 *
 * @module
 */
import type { SendResult } from "../channel.ts";
import type { ErrorKind } from "../errors.ts";
import type { Address } from "../events.ts";
import type { Reply } from "./call.ts";

/** A failed call. */
export type Failure = Extract<SendResult, { ok: false }>;

/** Descriptions without their "Bad Request: " or "Forbidden: ", first match wins. */
const DESCRIPTIONS: readonly (readonly [RegExp, ErrorKind])[] = [
  [
    /^(?:bot was (?:blocked|kicked)|user is deactivated|bot is not a member|the group chat was deleted)/,
    "recipient_unreachable",
  ],
  [/^bot can't (?:initiate conversation|send messages to)/, "recipient_unreachable"],
  [/^(?:USER_IS_BLOCKED|INPUT_USER_DEACTIVATED|USER_DEACTIVATED)/, "recipient_unreachable"],
  [/^(?:chat|user|channel|message thread) not found/, "not_found"],
  [
    /^(?:message to (?:be replied|reply|edit|delete|react)|replied message|message)(?: is)? not found/,
    "not_found",
  ],
  [
    /^(?:MESSAGE_ID_INVALID|PEER_ID_INVALID|CHANNEL_INVALID|TOPIC_DELETED|TOPIC_ID_INVALID)/,
    "not_found",
  ],
  [
    /^(?:message is too long|message caption is too long|caption is too long|text is too long)/,
    "payload_too_large",
  ],
  [
    /^(?:reply markup is too long|file is too big|MESSAGE_TOO_LONG|MEDIA_CAPTION_TOO_LONG)/,
    "payload_too_large",
  ],
  [
    /^(?:wrong (?:remote )?file|wrong HTTP URL|wrong type of the web page|failed to get HTTP URL)/,
    "unsupported_content",
  ],
  [
    /^(?:can't upload file|can't use file of type|type of file mismatch|file must be non-empty)/,
    "unsupported_content",
  ],
  [
    /^(?:PHOTO_|IMAGE_PROCESS_FAILED|MEDIA_EMPTY|MEDIA_INVALID|VIDEO_|DOCUMENT_INVALID|WEBPAGE_)/,
    "unsupported_content",
  ],
  [/^(?:not enough rights|have no rights|need administrator rights|no rights)/, "permission"],
  [
    /^(?:CHAT_\w*FORBIDDEN|CHAT_ADMIN_REQUIRED|CHAT_RESTRICTED|TOPIC_CLOSED|VOICE_MESSAGES_FORBIDDEN)/,
    "permission",
  ],
  [/^(?:ALLOW_)?PAYMENT_REQUIRED|^message can't be (?:edited|deleted)/, "permission"],
  [
    /^(?:message text is empty|text must be|message must be|BUTTON_|REPLY_MARKUP_|REACTION_)/,
    "invalid_payload",
  ],
  [
    /^(?:can't parse|wrong parameter|invalid |unsupported parse_mode|there is no (?:text|caption|media))/,
    "invalid_payload",
  ],
];

/** Refusals of the formatting alone: the same words go through as plain text. */
const FORMATTING =
  /^(?:can't parse (?:entities|MessageEntity)|entity |entities |ENTITY_|ENTITIES_)/i;

/**
 * What a reply that is not `ok` means for a send.
 *
 * @param address of the send, for the address that a migrated chat has now
 */
export function failureOf(reply: Exclude<Reply, { outcome: "ok" }>, address?: Address): Failure {
  if (reply.outcome === "lost") return lostFailure(reply);
  const { status, parameters } = reply;
  const message = reply.description === "" ? `HTTP ${status}` : reply.description;
  const base = { ok: false, code: String(status), message } as const;
  if (status === 429) {
    return { ...base, kind: "rate_limit", evidence: "not_sent", ...waitOf(reply) };
  }
  // 500 "restart", 502, 504: Telegram's front has given up waiting, its back may still act.
  if (status >= 500 || status < 400) {
    return { ...base, kind: status >= 500 ? "transient" : "unknown", evidence: "maybe_sent" };
  }
  const migrated = parameters.migrate_to_chat_id;
  if (typeof migrated === "number" || typeof migrated === "string") {
    const failure: Failure = { ...base, kind: "conflict", evidence: "not_sent" };
    // Topics of a basic group do not exist, so a thread cannot have moved along.
    if (address !== undefined) {
      const { thread: _, ...rest } = address;
      failure.migratedTo = { ...rest, chat: String(migrated) };
    }
    return failure;
  }
  const detail = detailOf(message);
  if (status === 400 && FORMATTING.test(detail)) {
    return { ...base, kind: "invalid_payload", evidence: "not_sent", fallback: "plain" };
  }
  return { ...base, kind: kindOf(status, detail), evidence: "not_sent" };
}

/** Whether a refused edit changed nothing because there was nothing to change. */
export function isNotModified(reply: Reply): boolean {
  return refusedWith(reply, 400, /^message is not modified/);
}

/** Whether a press can no longer be answered; the spinner has stopped by itself. */
export function isLateAnswer(reply: Reply): boolean {
  return refusedWith(reply, 400, /^query is too old/);
}

/** Whether the message to delete is gone already. */
export function isGone(reply: Reply): boolean {
  return refusedWith(reply, 400, /^message to delete not found/);
}

/** Whether an edit of text hit a message that has a caption instead. */
export function hasNoText(reply: Reply): boolean {
  return refusedWith(reply, 400, /^there is no text in the message to edit/);
}

/**
 * Whether a send was carried out although the answer is an error: Telegram, or a moderating bot,
 * deleted the message at once, so no id came back. Sending it again would say it twice.
 */
export function isSentAndDeleted(reply: Reply): boolean {
  return (
    reply.outcome === "refused" && /sent message was immediately deleted/i.test(reply.description)
  );
}

function refusedWith(reply: Reply, status: number, pattern: RegExp): boolean {
  return (
    reply.outcome === "refused" &&
    reply.status === status &&
    pattern.test(detailOf(reply.description))
  );
}

/** Without a readable body only two statuses are a refusal in themselves; a proxy answers with both. */
function lostFailure(reply: Extract<Reply, { outcome: "lost" }>): Failure {
  const { status, message } = reply;
  const base = {
    ok: false,
    message,
    ...(status === undefined ? {} : { code: String(status) }),
  } as const;
  if (status === 429)
    return { ...base, kind: "rate_limit", evidence: "not_sent", ...waitOf(reply) };
  if (status === 413) return { ...base, kind: "payload_too_large", evidence: "not_sent" };
  const transient = status === undefined || status >= 500;
  return { ...base, kind: transient ? "transient" : "unknown", evidence: "maybe_sent" };
}

function kindOf(status: number, detail: string): ErrorKind {
  // 404 is not about a chat (that is a 400): the token or the method does not exist.
  if (status === 401 || status === 404) return "auth";
  if (status === 409) return "conflict";
  if (status === 413) return "payload_too_large";
  const known = DESCRIPTIONS.find(([pattern]) => pattern.test(detail))?.[1];
  return known ?? (status === 403 ? "permission" : "unknown");
}

function detailOf(description: string): string {
  return description.replace(/^(?:Bad Request|Forbidden|Unauthorized|Conflict): /, "");
}

/** How long to wait: from the body, its prose, or the header. */
function waitOf(reply: Exclude<Reply, { outcome: "ok" }>): { retryAfterMs?: number } {
  const seconds =
    reply.outcome === "refused"
      ? (reply.parameters.retry_after ?? /retry after (\d+)/i.exec(reply.description)?.[1])
      : undefined;
  const wait = Number(seconds ?? reply.retryAfterHeader ?? Number.NaN);
  return Number.isFinite(wait) && wait >= 0 ? { retryAfterMs: wait * 1_000 } : {};
}
