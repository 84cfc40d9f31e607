import { describe, expect, test } from "vitest";
import type { InboundItem, RawRequest } from "../channel.ts";
import type { InboundEvent } from "../events.ts";
import type { TelegramConfig } from "./config.ts";
import { strangeUpdates, updates } from "./fixtures.ts";
import { inbound } from "./inbound.ts";

const options: TelegramConfig = {
  token: "4200:secret-part",
  webhookSecret: "current-secret",
  apiBase: "https://api.telegram.org",
  username: "helper_bot",
};
const NOW = 1_700_000_100_000;
const encoder = new TextEncoder();

function request(body: string | Uint8Array, headers: Record<string, string> = {}): RawRequest {
  return {
    method: "POST",
    url: "https://bot.example/webhooks/telegram",
    headers: new Headers(headers),
    body: typeof body === "string" ? encoder.encode(body) : body,
  };
}

function parse(update: unknown, config = options): InboundItem {
  const body = typeof update === "string" ? update : JSON.stringify(update);
  const items = inbound.parse(request(body), { options: config, connection: "main", now: NOW });
  expect(items).toHaveLength(1);
  const [item] = items;
  if (item === undefined) throw new Error("no item");
  return item;
}

function eventOf(update: unknown, config = options): InboundEvent {
  const item = parse(update, config);
  if (item.type !== "event" && item.type !== "account")
    throw new Error(`not an event: ${JSON.stringify(item)}`);
  return item.event;
}

/** The event without `native`, which repeats the fixture. */
function plain(update: unknown, config = options): Omit<InboundEvent, "native"> {
  const { native, ...event } = eventOf(update, config);
  expect(native).toBeDefined();
  return event;
}

describe("verify", () => {
  const check = (header: string | undefined, config = options) =>
    inbound.verify(
      request("{}", header === undefined ? {} : { "X-Telegram-Bot-Api-Secret-Token": header }),
      config,
    );

  test("accepts the current and the previous secret, and nothing else", async () => {
    const rotating = { ...options, previousWebhookSecret: "old-secret" };
    expect(await check("current-secret")).toBe(true);
    expect(await check("current-secret", rotating)).toBe(true);
    expect(await check("old-secret", rotating)).toBe(true);
    expect(await check("old-secret")).toBe(false);
    expect(await check("current-secre")).toBe(false);
    expect(await check("current-secret2", rotating)).toBe(false);
    expect(await check("")).toBe(false);
    expect(await check(undefined)).toBe(false);
  });
});

describe("parse", () => {
  const ann = { id: "501", name: "Ann Lee", username: "annlee" };
  const base = { channel: "telegram", connection: "main" };
  const direct = { id: "501", kind: "direct" };
  const group = { id: "-42", kind: "group", title: "Kitchen" };

  test("a text", () => {
    expect(eventOf(updates.text)).toEqual({
      ...base,
      id: "1",
      kind: "message",
      chat: direct,
      sender: ann,
      at: 1_700_000_000_000,
      text: "hello",
      messageId: "11",
      native: { message: updates.text.message },
    });
  });

  test("a reply in a group that mentions the bot", () => {
    expect(plain(updates.groupReply)).toEqual({
      ...base,
      id: "2",
      kind: "message",
      chat: group,
      sender: ann,
      at: 1_700_000_001_000,
      text: "hi @helper_bot, look",
      messageId: "12",
      replyTo: "10",
      mentioned: true,
    });
    const { username: _, ...nameless } = options;
    expect(eventOf(updates.groupReply, nameless).mentioned).toBeUndefined();
    expect(
      eventOf(updates.groupReply, { ...options, username: "other" }).mentioned,
    ).toBeUndefined();
  });

  test("a mention by command and by id", () => {
    const message = { ...updates.text.message, text: "/start@Helper_Bot now" };
    const command = [{ type: "bot_command", offset: 0, length: 17 }];
    const mention = (id: number) => [{ type: "text_mention", offset: 0, length: 2, user: { id } }];
    const mentioned = (entities: unknown) =>
      eventOf({ update_id: 1, message: { ...message, entities } }).mentioned;
    expect(mentioned(command)).toBe(true);
    expect(mentioned(mention(4200))).toBe(true);
    expect(mentioned(mention(9))).toBeUndefined();
  });

  test("a topic is a thread, the root of a reply chain is none", () => {
    const topic = plain(updates.topic);
    expect(topic.chat).toEqual({
      id: "-1001234567890",
      kind: "group",
      title: "Forum",
      thread: "7",
    });
    // The "reply" to the message that made the topic is none.
    expect(topic.replyTo).toBeUndefined();
    expect(plain(updates.generalTopicReply).chat.thread).toBeUndefined();
  });

  test("media as references", () => {
    expect(plain(updates.photo)).toMatchObject({
      text: "my cat",
      groupId: "album-1",
      media: [
        {
          kind: "image",
          ref: { fileId: "big", uniqueId: "u-big" },
          mimeType: "image/jpeg",
          size: 90_000,
        },
      ],
    });
    expect(plain(updates.document).media).toEqual([
      {
        kind: "file",
        ref: { fileId: "doc", uniqueId: "u-doc" },
        mimeType: "application/pdf",
        size: 1_234,
        filename: "bill.pdf",
      },
    ]);
    expect(plain(updates.voice).media).toMatchObject([{ kind: "audio", mimeType: "audio/ogg" }]);
    expect(plain(updates.animation).media).toMatchObject([{ kind: "video" }]);
    expect(plain(updates.animation).media).toHaveLength(1);
  });

  test("a place", () => {
    expect(plain(updates.venue).location).toEqual({
      latitude: 52.5,
      longitude: 13.4,
      name: "Café",
    });
  });

  test("edits", () => {
    expect(plain(updates.edited)).toMatchObject({
      id: "10",
      kind: "edited",
      messageId: "11",
      text: "hello!",
      at: 1_700_000_060_000,
    });
    expect(plain(updates.editedChannelPost)).toMatchObject({ kind: "edited", text: "broken" });
  });

  test("channel posts, and people who speak as a chat", () => {
    expect(plain(updates.channelPost)).toMatchObject({
      kind: "message",
      chat: { id: "-1009876543210", kind: "broadcast", title: "News" },
      sender: { id: "-1009876543210", name: "News", username: "newsroom" },
    });
    expect(plain(updates.anonymousAdmin).sender).toEqual({ id: "-1001234567890", name: "Forum" });
  });

  test("presses", () => {
    expect(plain(updates.press)).toEqual({
      ...base,
      id: "14",
      kind: "action",
      chat: { id: "-1001234567890", kind: "group", title: "Forum", thread: "7" },
      sender: ann,
      at: NOW,
      messageId: "21",
      press: { value: "buy:1", pressId: "900719925474099301" },
    });
    expect(plain(updates.pressOnOldMessage)).toMatchObject({ chat: group, messageId: "22" });
    expect(plain(updates.pressInInlineMode).chat).toEqual(direct);
    expect(plain(updates.gamePress)).toMatchObject({
      kind: "telegram:callback_query",
      press: { value: "chess", pressId: "4" },
    });
  });

  test("reactions say what changed", () => {
    expect(plain(updates.reaction)).toEqual({
      ...base,
      id: "18",
      kind: "reaction",
      chat: group,
      sender: ann,
      at: 1_700_000_013_000,
      messageId: "12",
      reaction: { added: ["🔥", "paid"], removed: ["custom:77"] },
    });
    expect(plain(updates.anonymousReaction).sender).toEqual({
      id: "-1001234567890",
      name: "Forum",
    });
  });

  test("memberships", () => {
    expect(plain(updates.botKicked)).toMatchObject({
      kind: "membership",
      sender: ann,
      membership: { user: { id: "4200", isBot: true }, status: "left", self: true },
    });
    expect(plain(updates.memberJoined).membership).toMatchObject({
      user: { id: "502" },
      status: "member",
      self: false,
    });
  });

  test("service messages have kinds of their own", () => {
    expect(plain(updates.joinedService).kind).toBe("telegram:new_chat_members");
    expect(plain(updates.migration)).toMatchObject({
      kind: "telegram:migrate_to_chat_id",
      chat: group,
      migration: { to: "-1001111111111" },
      data: { migratedTo: { channel: "telegram", connection: "main", chat: "-1001111111111" } },
    });
  });

  test("everything else is known by its name", () => {
    expect(plain(updates.inlineQuery)).toEqual({
      ...base,
      id: "24",
      kind: "telegram:inline_query",
      chat: direct,
      sender: ann,
      at: NOW,
    });
    expect(plain(updates.pollAnswer)).toMatchObject({ kind: "telegram:poll_answer", chat: direct });
    expect(plain(updates.joinRequest)).toMatchObject({
      kind: "telegram:chat_join_request",
      chat: { id: "-1001234567890", kind: "group" },
      at: 1_700_000_019_000,
    });
    expect(plain(strangeUpdates.future)).toMatchObject({ kind: "telegram:hologram", chat: direct });
    expect(plain(strangeUpdates.poll)).toMatchObject({
      kind: "telegram:poll",
      chat: { id: "0", kind: "broadcast" },
    });
    // It names nobody, so it is the account's.
    expect(parse(strangeUpdates.poll).type).toBe("account");
    expect(parse(updates.pollAnswer).type).toBe("event");
  });

  test("business chats are kept apart from the same person's own chat", () => {
    expect(plain(updates.business)).toMatchObject({
      kind: "telegram:business_message",
      chat: { id: "501", thread: "business-conn-1" },
      text: "do you have shoes?",
    });
    expect(plain(updates.business).selfAuthored).toBeUndefined();
    expect(plain(updates.businessEcho).selfAuthored).toBe(true);
  });

  test("ephemeral messages have ids of their own", () => {
    expect(plain(updates.ephemeral).messageId).toBe("e8");
  });

  test("rich messages give their words", () => {
    expect(plain(updates.rich).text).toBe("Order\ntwo shirts please\nsize M");
  });

  test("every event is JSON", () => {
    for (const update of [...Object.values(updates), ...Object.values(strangeUpdates)]) {
      const event = eventOf(update);
      expect(JSON.parse(JSON.stringify(event))).toEqual(event);
      expect(event.id).toBe(String(update.update_id));
      expect(event.semanticKey).toBeUndefined();
    }
  });

  test("native is left out above 16 kB", () => {
    const long = (length: number) => ({
      update_id: 1,
      message: { ...updates.text.message, text: "x".repeat(length) },
    });
    expect(eventOf(long(10_000)).native).toBeDefined();
    expect(eventOf(long(17_000)).native).toBeUndefined();
    expect(eventOf(long(17_000)).text).toHaveLength(17_000);
  });

  test("what cannot be understood is an item, not an error", () => {
    expect(
      parse({ update_id: 5, message: { message_id: "x", chat: { id: 501, type: "private" } } }),
    ).toMatchObject({
      type: "bad",
      id: "5",
      chat: { id: "501", kind: "direct" },
      error: "message_id is no integer",
    });
    expect(parse({ update_id: 6, message: "gone" })).toMatchObject({ type: "bad", id: "6" });
    expect(parse({ update_id: 7 })).toMatchObject({ type: "bad", id: "7", chat: { id: "0" } });
    expect(parse({ update_id: 8, message: { ...updates.photo.message, photo: {} } })).toMatchObject(
      {
        type: "bad",
      },
    );
    const nameless = parse({ message: updates.text.message });
    expect(nameless).toMatchObject({ type: "bad", error: "update_id is no integer" });
    expect(parse({ message: updates.text.message })).toEqual(nameless);
    const big = parse({ update_id: 9, message: { text: "😀".repeat(5_000) } });
    if (big.type !== "bad") throw new Error("not bad");
    expect([...big.sample].length).toBeLessThanOrEqual(2_000);
  });

  test("never throws on an update whose fields are anything at all", () => {
    const values: unknown[] = [null, 7, "x", [], {}, true];
    for (const [name, update] of Object.entries(updates)) {
      const kind = Object.keys(update).find((key) => key !== "update_id") ?? "";
      const payload = (update as Record<string, unknown>)[kind] as Record<string, unknown>;
      for (const field of Object.keys(payload)) {
        for (const value of values) {
          const mutated = { update_id: 1, [kind]: { ...payload, [field]: value } };
          expect(["account", "event", "bad"], `${name}.${field}`).toContain(parse(mutated).type);
        }
      }
    }
  });

  test("what is not Telegram's format at all is refused", () => {
    for (const body of ["", "{", "[]", "null", "7"]) {
      expect(() => parse(body), body).toThrow(SyntaxError);
    }
    const broken = request(new Uint8Array([0x22, 0xff, 0x22]));
    expect(() => inbound.parse(broken, { options, connection: "main", now: NOW })).toThrow(
      SyntaxError,
    );
  });
});

describe("answer", () => {
  test("200 and nothing else when it is committed", async () => {
    const response = inbound.answer([], { committed: true });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  });

  test("503 with Retry-After when it is not", () => {
    const response = inbound.answer([], { committed: false });
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    const later = inbound.answer([], { committed: false, retryAfterSeconds: 30 });
    expect(later.headers.get("retry-after")).toBe("30");
  });
});
