/**
 * Updates for tests, written by us from the documented shapes of the Bot API.
 *
 * @module
 */
import type { Message, Update } from "@grammyjs/types";

const ANN = {
  id: 501,
  is_bot: false,
  first_name: "Ann",
  last_name: "Lee",
  username: "annlee",
  language_code: "en",
} as const;
const PRIVATE = {
  id: 501,
  type: "private",
  first_name: "Ann",
  last_name: "Lee",
  username: "annlee",
} as const;
const GROUP = { id: -42, type: "group", title: "Kitchen" } as const;
const FORUM = {
  id: -1001234567890,
  type: "supergroup",
  title: "Forum",
  is_forum: true,
} as const;
const NEWS = { id: -1009876543210, type: "channel", title: "News", username: "newsroom" } as const;
const BOT = { id: 4200, is_bot: true, first_name: "Helper", username: "helper_bot" } as const;

type Answered = NonNullable<Message["reply_to_message"]>;
// The types demand a field that is always undefined, which exact optional properties forbid to write.
const ANSWERED = {
  message_id: 10,
  date: 1_699_999_999,
  chat: GROUP,
  from: BOT,
  text: "yes?",
} as unknown as Answered;
const TOPIC_START = {
  message_id: 7,
  message_thread_id: 7,
  is_topic_message: true,
  date: 1_699_000_000,
  chat: FORUM,
  from: ANN,
  forum_topic_created: { name: "Orders", icon_color: 7322096 },
} as unknown as Answered;

/** One update of each kind that the channel treats in its own way, and some that it does not. */
export const updates = {
  text: {
    update_id: 1,
    message: { message_id: 11, date: 1_700_000_000, chat: PRIVATE, from: ANN, text: "hello" },
  },
  groupReply: {
    update_id: 2,
    message: {
      message_id: 12,
      date: 1_700_000_001,
      chat: GROUP,
      from: ANN,
      text: "hi @helper_bot, look",
      entities: [{ type: "mention", offset: 3, length: 11 }],
      reply_to_message: ANSWERED,
    },
  },
  topic: {
    update_id: 3,
    message: {
      message_id: 13,
      message_thread_id: 7,
      is_topic_message: true,
      date: 1_700_000_002,
      chat: FORUM,
      from: ANN,
      text: "in a topic",
      reply_to_message: TOPIC_START,
    },
  },
  generalTopicReply: {
    update_id: 4,
    message: {
      message_id: 14,
      message_thread_id: 9,
      date: 1_700_000_003,
      chat: FORUM,
      from: ANN,
      text: "a reply in General",
    },
  },
  photo: {
    update_id: 5,
    message: {
      message_id: 15,
      date: 1_700_000_004,
      chat: PRIVATE,
      from: ANN,
      caption: "my cat",
      media_group_id: "album-1",
      photo: [
        { file_id: "small", file_unique_id: "u-small", width: 90, height: 60, file_size: 900 },
        { file_id: "big", file_unique_id: "u-big", width: 1280, height: 853, file_size: 90_000 },
        { file_id: "mid", file_unique_id: "u-mid", width: 320, height: 213, file_size: 9_000 },
      ],
    },
  },
  document: {
    update_id: 6,
    message: {
      message_id: 16,
      date: 1_700_000_005,
      chat: PRIVATE,
      from: ANN,
      document: {
        file_id: "doc",
        file_unique_id: "u-doc",
        file_name: "bill.pdf",
        mime_type: "application/pdf",
        file_size: 1_234,
      },
    },
  },
  voice: {
    update_id: 7,
    message: {
      message_id: 17,
      date: 1_700_000_006,
      chat: PRIVATE,
      from: ANN,
      voice: { file_id: "voice", file_unique_id: "u-voice", duration: 3, mime_type: "audio/ogg" },
    },
  },
  animation: {
    update_id: 8,
    message: {
      message_id: 18,
      date: 1_700_000_007,
      chat: PRIVATE,
      from: ANN,
      animation: {
        file_id: "gif",
        file_unique_id: "u-gif",
        width: 10,
        height: 10,
        duration: 1,
        mime_type: "video/mp4",
      },
      document: { file_id: "gif", file_unique_id: "u-gif", mime_type: "video/mp4" },
    },
  },
  venue: {
    update_id: 9,
    message: {
      message_id: 19,
      date: 1_700_000_008,
      chat: PRIVATE,
      from: ANN,
      location: { latitude: 52.5, longitude: 13.4 },
      venue: { location: { latitude: 52.5, longitude: 13.4 }, title: "Café", address: "Street 1" },
    },
  },
  edited: {
    update_id: 10,
    edited_message: {
      message_id: 11,
      date: 1_700_000_000,
      edit_date: 1_700_000_060,
      chat: PRIVATE,
      from: ANN,
      text: "hello!",
    },
  },
  channelPost: {
    update_id: 11,
    channel_post: {
      message_id: 3,
      date: 1_700_000_009,
      chat: NEWS,
      sender_chat: NEWS,
      text: "breaking",
    },
  },
  editedChannelPost: {
    update_id: 12,
    edited_channel_post: {
      message_id: 3,
      date: 1_700_000_009,
      edit_date: 1_700_000_010,
      chat: NEWS,
      sender_chat: NEWS,
      text: "broken",
    },
  },
  anonymousAdmin: {
    update_id: 13,
    message: {
      message_id: 20,
      date: 1_700_000_011,
      chat: FORUM,
      from: { id: 1_087_968_824, is_bot: true, first_name: "Group", username: "GroupAnonymousBot" },
      sender_chat: FORUM,
      text: "from the staff",
    },
  },
  press: {
    update_id: 14,
    callback_query: {
      id: "900719925474099301",
      from: ANN,
      chat_instance: "-55",
      data: "buy:1",
      message: {
        message_id: 21,
        message_thread_id: 7,
        is_topic_message: true,
        date: 1_700_000_012,
        chat: FORUM,
        from: BOT,
        text: "choose",
      },
    },
  },
  pressOnOldMessage: {
    update_id: 15,
    callback_query: {
      id: "2",
      from: ANN,
      chat_instance: "-55",
      data: "x",
      message: { message_id: 22, date: 0, chat: GROUP },
    },
  },
  pressInInlineMode: {
    update_id: 16,
    callback_query: { id: "3", from: ANN, chat_instance: "-56", inline_message_id: "i", data: "y" },
  },
  gamePress: {
    update_id: 17,
    callback_query: { id: "4", from: ANN, chat_instance: "-57", game_short_name: "chess" },
  },
  reaction: {
    update_id: 18,
    message_reaction: {
      chat: GROUP,
      message_id: 12,
      user: ANN,
      date: 1_700_000_013,
      old_reaction: [
        { type: "emoji", emoji: "👍" },
        { type: "custom_emoji", custom_emoji_id: "77" },
      ],
      new_reaction: [
        { type: "emoji", emoji: "👍" },
        { type: "emoji", emoji: "🔥" },
        { type: "paid" },
      ],
    },
  },
  anonymousReaction: {
    update_id: 19,
    message_reaction: {
      chat: FORUM,
      message_id: 12,
      actor_chat: FORUM,
      date: 1_700_000_014,
      old_reaction: [],
      new_reaction: [{ type: "emoji", emoji: "👍" }],
    },
  },
  botKicked: {
    update_id: 20,
    my_chat_member: {
      chat: GROUP,
      from: ANN,
      date: 1_700_000_015,
      old_chat_member: { user: BOT, status: "member" },
      new_chat_member: { user: BOT, status: "left" },
    },
  },
  memberJoined: {
    update_id: 21,
    chat_member: {
      chat: FORUM,
      from: ANN,
      date: 1_700_000_016,
      old_chat_member: { user: { ...ANN, id: 502 }, status: "left" },
      new_chat_member: { user: { ...ANN, id: 502 }, status: "member" },
    },
  },
  joinedService: {
    update_id: 22,
    message: {
      message_id: 23,
      date: 1_700_000_017,
      chat: GROUP,
      from: ANN,
      new_chat_members: [BOT],
    },
  },
  migration: {
    update_id: 23,
    message: {
      message_id: 24,
      date: 1_700_000_018,
      chat: GROUP,
      from: ANN,
      migrate_to_chat_id: -1_001_111_111_111,
    },
  },
  inlineQuery: {
    update_id: 24,
    inline_query: { id: "q", from: ANN, query: "cats", offset: "" },
  },
  pollAnswer: {
    update_id: 25,
    poll_answer: { poll_id: "p", user: ANN, option_ids: [1], option_persistent_ids: ["b"] },
  },
  joinRequest: {
    update_id: 26,
    chat_join_request: { chat: FORUM, from: ANN, user_chat_id: 501, date: 1_700_000_019 },
  },
  business: {
    update_id: 27,
    business_message: {
      message_id: 25,
      business_connection_id: "conn-1",
      date: 1_700_000_020,
      chat: PRIVATE,
      from: ANN,
      text: "do you have shoes?",
    },
  },
  businessEcho: {
    update_id: 28,
    business_message: {
      message_id: 26,
      business_connection_id: "conn-1",
      date: 1_700_000_021,
      chat: PRIVATE,
      from: { id: 777, is_bot: false, first_name: "Owner" },
      sender_business_bot: BOT,
      text: "yes",
    },
  },
  ephemeral: {
    update_id: 29,
    message: {
      message_id: 0,
      ephemeral_message_id: 8,
      date: 1_700_000_022,
      chat: GROUP,
      from: ANN,
      text: "psst",
    },
  },
  rich: {
    update_id: 30,
    message: {
      message_id: 27,
      date: 1_700_000_023,
      chat: PRIVATE,
      from: ANN,
      rich_message: {
        blocks: [
          { type: "heading", size: 1, text: "Order" },
          { type: "paragraph", text: ["two ", { type: "bold", text: "shirts" }, " please"] },
          {
            type: "list",
            items: [{ label: "•", blocks: [{ type: "paragraph", text: "size M" }] }],
          },
        ],
      },
    },
  },
} satisfies Record<string, Update>;

/** An update of a name that no version of the types knows, and one without chat or person. */
export const strangeUpdates = {
  future: { update_id: 90, hologram: { from: ANN, beam: "blue" } },
  poll: { update_id: 91, poll: { id: "p", question: "?", options: [], is_closed: true } },
};
