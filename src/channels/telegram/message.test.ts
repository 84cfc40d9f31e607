/** Who said it, where, and what belongs together: what decides whether a person is answered at all. */
import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../events.ts";
import { updates } from "./fixtures.ts";
import { inbound } from "./inbound.ts";

const FORUM = { id: -1001234567890, type: "supergroup", title: "Forum", is_forum: true };
const NEWS = { id: -1009876543210, type: "channel", title: "News", username: "newsroom" };
const ANN = { id: 501, is_bot: false, first_name: "Ann" };
const ANONYMOUS = {
  id: 1_087_968_824,
  is_bot: true,
  first_name: "Group",
  username: "GroupAnonymousBot",
};

function eventOf(update: Record<string, unknown>): InboundEvent {
  const request = {
    method: "POST",
    url: "https://bot.example/webhooks/telegram",
    headers: new Headers(),
    body: new TextEncoder().encode(JSON.stringify({ update_id: 1, ...update })),
  };
  const options = { token: "4200:x", webhookSecret: "s", apiBase: "https://api.telegram.org" };
  const [item] = inbound.parse(request, { options, connection: "main", now: 7_000 });
  if (item?.type !== "event") throw new Error(`not an event: ${JSON.stringify(item)}`);
  return item.event;
}

function said(fields: Record<string, unknown>, kind = "message"): InboundEvent {
  const message = { message_id: 5, date: 1, chat: FORUM, from: ANN, text: "hi", ...fields };
  return eventOf({ [kind]: message });
}

describe("people who do not look like people", () => {
  test("an anonymous admin is no bot, in a message and in a membership change", () => {
    expect(said({ from: ANONYMOUS, sender_chat: FORUM })).toMatchObject({
      kind: "message",
      sender: { id: String(FORUM.id), name: "Forum" },
    });
    expect(said({ from: ANONYMOUS, sender_chat: FORUM }).sender).not.toHaveProperty("isBot");
    // A membership change names no chat as its author, only the stand-in.
    const change = {
      chat: FORUM,
      from: ANONYMOUS,
      date: 1,
      old_chat_member: { user: ANN, status: "member" },
      new_chat_member: { user: ANN, status: "kicked" },
    };
    for (const kind of ["chat_member", "my_chat_member"]) {
      expect(eventOf({ [kind]: change }).sender, kind).toEqual({
        id: "1087968824",
        name: "Group",
        username: "GroupAnonymousBot",
      });
    }
  });

  test("a channel that speaks in a group, and its posts forwarded there, are the channel's", () => {
    const channelBot = { id: 136_817_688, is_bot: true, first_name: "Channel" };
    expect(said({ from: channelBot, sender_chat: NEWS }).sender).toEqual({
      id: String(NEWS.id),
      name: "News",
      username: "newsroom",
    });
    const service = { id: 777_000, is_bot: false, first_name: "Telegram" };
    const forwarded = said({
      from: service,
      sender_chat: NEWS,
      is_automatic_forward: true,
      forward_origin: { type: "channel", chat: NEWS, message_id: 3, date: 1 },
    });
    expect(forwarded).toMatchObject({ kind: "message", sender: { id: String(NEWS.id) } });
    expect(forwarded.sender).not.toHaveProperty("isBot");
  });

  test("what comes via an inline bot is said by the person", () => {
    const via = { id: 900, is_bot: true, first_name: "Gif", username: "gif" };
    expect(said({ via_bot: via }).sender).toEqual({ id: "501", name: "Ann" });
    // Also via this very bot: the person chose it.
    expect(said({ via_bot: { ...via, id: 4_200 } }).selfAuthored).toBeUndefined();
  });

  test("other bots are bots", () => {
    const other = { id: 901, is_bot: true, first_name: "Other" };
    expect(said({ from: other }).sender).toMatchObject({ id: "901", isBot: true });
  });
});

describe("threads", () => {
  const thread = (fields: Record<string, unknown>) => said(fields).chat.thread;

  test("a topic is a conversation of its own; a chain of replies is none", () => {
    expect(thread({ message_thread_id: 7, is_topic_message: true })).toBe("7");
    expect(thread({ message_thread_id: 7 })).toBeUndefined();
    expect(thread({})).toBeUndefined();
  });

  test("the General topic is one conversation, whether it is named or not", () => {
    expect(thread({ message_thread_id: 1, is_topic_message: true })).toBeUndefined();
  });

  test("comments under a channel's post stay in the group's conversation", () => {
    const post = { message_id: 40, date: 1, chat: FORUM, sender_chat: NEWS, text: "post" };
    const comment = said({ message_thread_id: 40, reply_to_message: post });
    expect(comment.chat.thread).toBeUndefined();
    expect(comment.replyTo).toBe("40");
  });

  test("a topic of a private chat, and of a channel's direct messages", () => {
    const chat = { id: 501, type: "private", first_name: "Ann" };
    expect(thread({ chat, message_thread_id: 9, is_topic_message: true })).toBe("9");
    expect(thread({ direct_messages_topic: { topic_id: 8, user: ANN } })).toBe("dm-8");
  });
});

describe("what belongs together", () => {
  test("members of an album name it, and their media do not", () => {
    const event = eventOf(updates.photo);
    expect(event.groupId).toBe("album-1");
    expect(event.media?.[0]?.ref).toEqual({ fileId: "big", uniqueId: "u-big" });
    expect(said({}).groupId).toBeUndefined();
  });

  test("both chats of an upgraded group are told where the other is", () => {
    const told = (fields: Record<string, unknown>) => {
      const { kind, migration, data } = said({ text: undefined, ...fields });
      return { kind, migration, data };
    };
    const address = (chat: string) => ({ channel: "telegram", connection: "main", chat });
    expect(told({ migrate_to_chat_id: -1_001 })).toEqual({
      kind: "telegram:migrate_to_chat_id",
      migration: { to: "-1001" },
      data: { migratedTo: address("-1001") },
    });
    expect(told({ migrate_from_chat_id: -42 })).toEqual({
      kind: "telegram:migrate_from_chat_id",
      migration: { from: "-42" },
      data: { migratedFrom: address("-42") },
    });
    expect(said({}).migration).toBeUndefined();
  });
});

describe("every kind of update", () => {
  const user = ANN;
  const source = { source: "premium", user };
  /** Kind of update, its payload, and the kind, chat and sender that it becomes. */
  const kinds: [string, Record<string, unknown>, string, string, string | undefined][] = [
    [
      "business_connection",
      { id: "b", user, date: 1 },
      "telegram:business_connection",
      "501",
      "501",
    ],
    [
      "deleted_business_messages",
      { business_connection_id: "b", chat: { id: 501, type: "private" }, message_ids: [1] },
      "telegram:deleted_business_messages",
      "501",
      undefined,
    ],
    [
      "message_reaction_count",
      { chat: FORUM, message_id: 4, date: 1, reactions: [] },
      "telegram:message_reaction_count",
      "-1001234567890",
      undefined,
    ],
    [
      "chosen_inline_result",
      { result_id: "r", from: user, query: "q" },
      "telegram:chosen_inline_result",
      "501",
      "501",
    ],
    ["shipping_query", { id: "s", from: user }, "telegram:shipping_query", "501", "501"],
    ["pre_checkout_query", { id: "c", from: user }, "telegram:pre_checkout_query", "501", "501"],
    [
      "purchased_paid_media",
      { from: user, paid_media_payload: "p" },
      "telegram:purchased_paid_media",
      "501",
      "501",
    ],
    [
      "poll_answer",
      { poll_id: "p", voter_chat: NEWS, option_ids: [] },
      "telegram:poll_answer",
      "-1009876543210",
      undefined,
    ],
    [
      "chat_boost",
      { chat: NEWS, boost: { boost_id: "b", source } },
      "telegram:chat_boost",
      "-1009876543210",
      "501",
    ],
    [
      "removed_chat_boost",
      { chat: NEWS, boost_id: "b", remove_date: 1, source },
      "telegram:removed_chat_boost",
      "-1009876543210",
      "501",
    ],
    [
      "managed_bot",
      { user, bot: { ...user, id: 9, is_bot: true } },
      "telegram:managed_bot",
      "501",
      "501",
    ],
    [
      "subscription",
      { user, invoice_payload: "i", state: "active" },
      "telegram:subscription",
      "501",
      "501",
    ],
    [
      "stopped_message_generation",
      { chat: { id: 501, type: "private" }, message_thread_id: 6, draft_id: 1 },
      "telegram:stopped_message_generation",
      "501",
      undefined,
    ],
    [
      "guest_message",
      { message_id: 1, date: 1, chat: FORUM, from: user, text: "x", guest_query_id: "g" },
      "telegram:guest_message",
      "-1001234567890",
      "501",
    ],
  ];

  test.each(kinds)("%s", (kind, payload, becomes, chat, sender) => {
    const event = eventOf({ [kind]: payload });
    expect(event.kind).toBe(becomes);
    expect(event.chat.id).toBe(chat);
    expect(event.sender?.id).toBe(sender);
    expect(event.native).toEqual({ [kind]: payload });
  });
});
