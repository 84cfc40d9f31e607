import { describe, expect, test } from "vitest";
import type { ErrorKind, Evidence } from "../errors.ts";
import type { Reply } from "./call.ts";
import { failureOf, isGone, isLateAnswer, isNotModified, isSentAndDeleted } from "./errors.ts";

function refused(
  status: number,
  description: string,
  parameters: Record<string, unknown> = {},
): Extract<Reply, { outcome: "refused" }> {
  return { outcome: "refused", status, description, parameters, retryAfterHeader: null };
}

function lost(status?: number, retryAfterHeader: string | null = null) {
  const base = { outcome: "lost", message: "no answer", retryAfterHeader } as const;
  return status === undefined ? base : { ...base, status };
}

const TABLE: [number, string, ErrorKind, Evidence][] = [
  [401, "Unauthorized", "auth", "not_sent"],
  [404, "Not Found", "auth", "not_sent"],
  [403, "Forbidden: bot was blocked by the user", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: user is deactivated", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: bot was kicked from the supergroup chat", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: bot is not a member of the channel chat", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: the group chat was deleted", "recipient_unreachable", "not_sent"],
  [
    403,
    "Forbidden: bot can't initiate conversation with a user",
    "recipient_unreachable",
    "not_sent",
  ],
  [403, "Forbidden: something new", "permission", "not_sent"],
  [400, "Bad Request: chat not found", "not_found", "not_sent"],
  [400, "Bad Request: message thread not found", "not_found", "not_sent"],
  [400, "Bad Request: message to be replied not found", "not_found", "not_sent"],
  [400, "Bad Request: message to edit not found", "not_found", "not_sent"],
  [400, "Bad Request: MESSAGE_ID_INVALID", "not_found", "not_sent"],
  [400, "Bad Request: message is too long", "payload_too_large", "not_sent"],
  [400, "Bad Request: message caption is too long", "payload_too_large", "not_sent"],
  [400, "Bad Request: reply markup is too long", "payload_too_large", "not_sent"],
  [400, "Bad Request: file is too big", "payload_too_large", "not_sent"],
  [413, "Request Entity Too Large", "payload_too_large", "not_sent"],
  [
    400,
    "Bad Request: wrong file_id or the file is temporarily unavailable",
    "unsupported_content",
    "not_sent",
  ],
  [
    400,
    "Bad Request: wrong remote file identifier specified: wrong padding",
    "unsupported_content",
    "not_sent",
  ],
  [400, "Bad Request: failed to get HTTP URL content", "unsupported_content", "not_sent"],
  [400, "Bad Request: wrong type of the web page content", "unsupported_content", "not_sent"],
  [400, "Bad Request: PHOTO_INVALID_DIMENSIONS", "unsupported_content", "not_sent"],
  [
    400,
    "Bad Request: not enough rights to send text messages to the chat",
    "permission",
    "not_sent",
  ],
  [400, "Bad Request: CHAT_WRITE_FORBIDDEN", "permission", "not_sent"],
  [400, "Bad Request: CHAT_SEND_PHOTOS_FORBIDDEN", "permission", "not_sent"],
  [400, "Bad Request: TOPIC_CLOSED", "permission", "not_sent"],
  [400, "Bad Request: message can't be edited", "permission", "not_sent"],
  [400, "Bad Request: message text is empty", "invalid_payload", "not_sent"],
  [400, "Bad Request: BUTTON_DATA_INVALID", "invalid_payload", "not_sent"],
  [403, "Forbidden: bot was kicked from the channel chat", "recipient_unreachable", "not_sent"],
  [
    403,
    "Forbidden: bot is not a member of the supergroup chat",
    "recipient_unreachable",
    "not_sent",
  ],
  [403, "Forbidden: bot can't send messages to bots", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: bot can't send messages to the user", "recipient_unreachable", "not_sent"],
  [403, "Forbidden: not enough rights to send photos to the chat", "permission", "not_sent"],
  [403, "Forbidden: CHAT_WRITE_FORBIDDEN", "permission", "not_sent"],
  [400, "Bad Request: USER_IS_BLOCKED", "recipient_unreachable", "not_sent"],
  [400, "Bad Request: have no write access to the chat", "recipient_unreachable", "not_sent"],
  [400, "Bad Request: message to delete not found", "not_found", "not_sent"],
  [400, "Bad Request: message to react not found", "not_found", "not_sent"],
  [400, "Bad Request: business connection not found", "not_found", "not_sent"],
  [400, "Bad Request: TOPIC_DELETED", "not_found", "not_sent"],
  [
    400,
    "Bad Request: query is too old and response timeout expired or query ID is invalid",
    "not_found",
    "not_sent",
  ],
  [400, "Bad Request: BUSINESS_PEER_USAGE_MISSING", "outside_session_window", "not_sent"],
  [400, "Bad Request: the file is too big", "payload_too_large", "not_sent"],
  [400, "Bad Request: MEDIA_CAPTION_TOO_LONG", "payload_too_large", "not_sent"],
  [400, "Bad Request: wrong file identifier/HTTP URL specified", "unsupported_content", "not_sent"],
  [
    400,
    "Bad Request: wrong persistent file_id specified: contains wrong characters",
    "unsupported_content",
    "not_sent",
  ],
  [
    400,
    "Bad Request: can't use the media of the specified type in the album",
    "unsupported_content",
    "not_sent",
  ],
  [400, "Bad Request: WEBPAGE_MEDIA_EMPTY", "unsupported_content", "not_sent"],
  [400, "Bad Request: TEXTDRAFT_PEER_INVALID", "unsupported_content", "not_sent"],
  [400, "Bad Request: need administrator rights in the channel chat", "permission", "not_sent"],
  [400, "Bad Request: USER_BANNED_IN_CHANNEL", "permission", "not_sent"],
  [400, "Bad Request: CHAT_RESTRICTED", "permission", "not_sent"],
  [400, "Bad Request: MESSAGE_AUTHOR_REQUIRED", "permission", "not_sent"],
  [400, "Bad Request: message can't be deleted for everyone", "permission", "not_sent"],
  [
    400,
    "Bad Request: text buttons are unallowed in the inline keyboard",
    "invalid_payload",
    "not_sent",
  ],
  [
    400,
    "Bad Request: inline keyboard button URL 'x' is invalid: Wrong HTTP URL",
    "invalid_payload",
    "not_sent",
  ],
  [400, "Bad Request: REACTION_INVALID", "invalid_payload", "not_sent"],
  [400, "Bad Request: Logged out", "auth", "not_sent"],
  [400, "Bad Request: something new", "unknown", "not_sent"],
  [409, "Conflict: terminated by other getUpdates request", "conflict", "not_sent"],
  [500, "Internal Server Error: restart", "transient", "maybe_sent"],
  [502, "Bad Gateway", "transient", "maybe_sent"],
  [504, "Gateway Timeout", "transient", "maybe_sent"],
  [200, "", "unknown", "maybe_sent"],
];

describe("failureOf", () => {
  test.each(TABLE)("%i %s", (status, description, kind, evidence) => {
    const failure = failureOf(refused(status, description));
    expect(failure).toMatchObject({ ok: false, kind, evidence, code: String(status) });
    expect(failure.fallback).toBeUndefined();
    expect(failure.retryAfterMs).toBeUndefined();
  });

  test("429 says how long to wait, never shortened", () => {
    const waits = [
      refused(429, "Too Many Requests: retry after 35", { retry_after: 35 }),
      refused(429, "Too Many Requests: retry after 35"),
      lost(429, "35"),
      refused(400, "Bad Request: SLOWMODE_WAIT_35"),
      refused(420, "FLOOD_WAIT_35"),
    ];
    for (const reply of waits) {
      expect(failureOf(reply)).toMatchObject({
        kind: "rate_limit",
        evidence: "not_sent",
        retryAfterMs: 35_000,
      });
    }
    expect(failureOf(refused(429, "Too Many Requests"))).not.toHaveProperty("retryAfterMs");
  });

  test("refused formatting falls back to plain text", () => {
    for (const description of [
      "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 5",
      "Bad Request: can't parse MessageEntity: Unsupported type specified",
      "Bad Request: entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 9",
      "Bad Request: entity URL 'x' is invalid: Wrong HTTP URL",
      "Bad Request: ENTITY_BOUNDS_INVALID",
    ]) {
      expect(failureOf(refused(400, description)), description).toMatchObject({
        kind: "invalid_payload",
        evidence: "not_sent",
        fallback: "plain",
      });
    }
  });

  test("a moved group says where it is now", () => {
    const reply = refused(400, "Bad Request: group chat was upgraded to a supergroup chat", {
      migrate_to_chat_id: -100_777,
    });
    const address = { channel: "telegram", connection: "main", chat: "-42", thread: "7" };
    expect(failureOf(reply, address)).toMatchObject({
      kind: "conflict",
      evidence: "not_sent",
      migratedTo: { channel: "telegram", connection: "main", chat: "-100777" },
    });
    expect(failureOf(reply, address).migratedTo).not.toHaveProperty("thread");
    // Raw calls have nothing but the message.
    expect(failureOf(reply).message).toContain("-100777");
  });

  test("without an answer that can be read, only two statuses prove anything", () => {
    expect(failureOf(lost())).toMatchObject({ kind: "transient", evidence: "maybe_sent" });
    expect(failureOf(lost(502))).toMatchObject({ kind: "transient", evidence: "maybe_sent" });
    expect(failureOf(lost(200))).toMatchObject({ kind: "unknown", evidence: "maybe_sent" });
    expect(failureOf(lost(400))).toMatchObject({ kind: "unknown", evidence: "maybe_sent" });
    expect(failureOf(lost(413))).toMatchObject({ kind: "payload_too_large", evidence: "not_sent" });
  });
});

test("refusals that are none", () => {
  expect(isNotModified(refused(400, "Bad Request: message is not modified: specified new"))).toBe(
    true,
  );
  expect(isNotModified(refused(400, "Bad Request: MESSAGE_NOT_MODIFIED"))).toBe(true);
  expect(isNotModified(refused(400, "Bad Request: message to edit not found"))).toBe(false);
  expect(isLateAnswer(refused(400, "Bad Request: QUERY_ID_INVALID"))).toBe(true);
  expect(isLateAnswer(refused(400, "Bad Request: query is too old and response timeout"))).toBe(
    true,
  );
  expect(isGone(refused(400, "Bad Request: message to delete not found"))).toBe(true);
  expect(
    isSentAndDeleted(refused(500, "Internal Server Error: sent message was immediately deleted")),
  ).toBe(true);
  expect(isSentAndDeleted(refused(500, "Internal Server Error: restart"))).toBe(false);
});
