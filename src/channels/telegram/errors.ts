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
    /^(?:bot was (?:blocked|kicked)|user is deactivated|bot is not a member|(?:the )?group chat was de)/,
    "recipient_unreachable",
  ],
  [
    /^(?:bot can't (?:initiate conversation|send messages to)|have no write access|CHANNEL_PRIVATE)/,
    "recipient_unreachable",
  ],
  [
    /^(?:USER_IS_BLOCKED|YOU_BLOCKED_USER|(?:INPUT_)?USER_DEACTIVATED|USER_PRIVACY_RESTRICTED)/,
    "recipient_unreachable",
  ],
  [/^(?:chat|user|channel|message thread|business connection) not found/, "not_found"],
  [
    /^(?:message to (?:be replied|reply|edit|delete|react|pin|forward|copy)|replied message|message)(?: is)? not found/,
    "not_found",
  ],
  [
    /^(?:MESSAGE_ID_INVALID|PEER_ID_INVALID|CHAT_ID_INVALID|CHANNEL_INVALID|TOPIC_DELETED|TOPIC_ID_INVALID|BUSINESS_(?:CONNECTION|PEER)_INVALID)/,
    "not_found",
  ],
  [/^query is too old|^QUERY_ID_INVALID/, "not_found"],
  // The customer of a business account has been silent for longer than a day.
  [/^BUSINESS_PEER_USAGE_MISSING/, "outside_session_window"],
  [
    /^(?:message is too long|(?:message )?caption is too long|text is too long|reply markup is too long)/,
    "payload_too_large",
  ],
  [
    /^(?:(?:the )?file is too big|MESSAGE_TOO_LONG|MEDIA_CAPTION_TOO_LONG|FILE_PARTS?_\w*(?:INVALID|TOO_BIG))/,
    "payload_too_large",
  ],
  [
    /^(?:wrong (?:remote |persistent )?file|wrong HTTP URL|wrong type of the web page|failed to get HTTP URL)/,
    "unsupported_content",
  ],
  [
    /^(?:can't (?:upload file|use file of type|use the media of)|type of file mismatch|file must be non-empty)/,
    "unsupported_content",
  ],
  [
    /^(?:PHOTO_|IMAGE_PROCESS_FAILED|MEDIA_(?:EMPTY|INVALID|TYPE_INVALID|FILE_INVALID)|VIDEO_|AUDIO_|DOCUMENT_INVALID|STICKER_|WEBPAGE_|EXTERNAL_URL_INVALID)/,
    "unsupported_content",
  ],
  // Drafts exist in private chats only.
  [/^TEXTDRAFT_PEER_INVALID/, "unsupported_content"],
  [
    /^(?:not enough rights|have no rights|need administrator rights|no rights|method is available only for)/,
    "permission",
  ],
  [
    /^(?:CHAT_\w*(?:FORBIDDEN|RESTRICTED)|CHAT_ADMIN_REQUIRED|USER_BANNED_IN_CHANNEL|RIGHT_FORBIDDEN|TOPIC_CLOSED)/,
    "permission",
  ],
  [
    /^(?:VOICE_MESSAGES_FORBIDDEN|PREMIUM_ACCOUNT_REQUIRED|BALANCE_TOO_LOW|(?:ALLOW_)?PAYMENT_REQUIRED)/,
    "permission",
  ],
  [
    /^(?:message can't be |MESSAGE_(?:DELETE_FORBIDDEN|AUTHOR_REQUIRED|EDIT_TIME_EXPIRED))/,
    "permission",
  ],
  [/^logged out/i, "auth"],
  [
    /^(?:message text is empty|text must be|message must be|MESSAGE_EMPTY|BUTTON_|REPLY_MARKUP_|REACTIONS?_|EFFECT_ID_INVALID)/,
    "invalid_payload",
  ],
  [
    /^(?:can't parse|wrong parameter|invalid |unsupported parse_mode|there is no (?:text|caption|media))/,
    "invalid_payload",
  ],
  [
    /^(?:(?:object|inline keyboard) expected|text buttons are unallowed|inline keyboard button|chat_id is empty|message identifier is not)/,
    "invalid_payload",
  ],
];

/** Refusals of the formatting alone: the same words go through as plain text. */
const FORMATTING =
  /^(?:can't parse (?:entities|MessageEntity)|entity |entities |ENTITY_|ENTITIES_)/i;

/** Refusals of a file by its address, which do not say why. */
const URL_REFUSED =
  /^(?:failed to get HTTP URL|wrong type of the web page|WEBPAGE_|EXTERNAL_URL_INVALID)/;
const URL_LIMITS =
  "Telegram fetches photos of up to 5 MB and other files of up to 20 MB, from public addresses";

/** Telegram's inner name of a rate limit, which its front does not always turn into a 429. */
const SLOW_DOWN = /^(?:SLOWMODE|FLOOD(?:_PREMIUM)?)_WAIT_(\d+)/;

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
  const detail = detailOf(message);
  if (status === 429 || SLOW_DOWN.test(detail)) {
    return { ...base, kind: "rate_limit", evidence: "not_sent", ...waitOf(reply) };
  }
  // 500 "restart", 502, 504: Telegram's front has given up waiting, its back may still act.
  if (status >= 500 || status < 400) {
    return { ...base, kind: status >= 500 ? "transient" : "unknown", evidence: "maybe_sent" };
  }
  const migrated = parameters.migrate_to_chat_id;
  if (typeof migrated === "number" || typeof migrated === "string") {
    const failure: Failure = {
      ...base,
      kind: "conflict",
      evidence: "not_sent",
      message: `${message}: its id is now ${migrated}`,
    };
    // Topics of a basic group do not exist, so a thread cannot have moved along.
    if (address !== undefined) {
      const { thread: _, ...rest } = address;
      failure.migratedTo = { ...rest, chat: String(migrated) };
    }
    return failure;
  }
  if (status === 400 && FORMATTING.test(detail)) {
    return { ...base, kind: "invalid_payload", evidence: "not_sent", fallback: "plain" };
  }
  const said = URL_REFUSED.test(detail) ? `${message} (${URL_LIMITS})` : message;
  return { ...base, kind: kindOf(status, detail), evidence: "not_sent", message: said };
}

/** Whether a refused edit changed nothing because there was nothing to change. */
export function isNotModified(reply: Reply): boolean {
  return refusedWith(reply, 400, /^(?:message is not modified|MESSAGE_NOT_MODIFIED)/);
}

/** Whether a press can no longer be answered; the spinner has stopped by itself. */
export function isLateAnswer(reply: Reply): boolean {
  return refusedWith(reply, 400, /^(?:query is too old|QUERY_ID_INVALID)/);
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
      ? (reply.parameters.retry_after ??
        /retry after (\d+)/i.exec(reply.description)?.[1] ??
        SLOW_DOWN.exec(detailOf(reply.description))?.[1])
      : undefined;
  const wait = Number(seconds ?? reply.retryAfterHeader ?? Number.NaN);
  return Number.isFinite(wait) && wait >= 0 ? { retryAfterMs: wait * 1_000 } : {};
}
