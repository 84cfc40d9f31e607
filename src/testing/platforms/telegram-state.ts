/**
 * What the simulated Bot API remembers: chats with their messages, files, presses.
 *
 * @module
 */
import { ApiError, badRequest } from "./telegram-checks.ts";

/** A message in a chat, the bot's or somebody's. */
export interface StoredMessage {
  id: number;
  chatId: string;
  threadId?: number;
  /** Who wrote it; absent for the bot itself. */
  from?: Record<string, unknown>;
  /** Epoch seconds. */
  date: number;
  /** The text, or the caption of media. */
  text: string;
  entities?: unknown;
  /** The media's field (`photo` …) and what is in it. */
  media?: { field: string; value: unknown };
  markup?: unknown;
  replyTo?: number;
  edited: boolean;
  reactions: string[];
}

/** A message that the bot is still writing. */
export interface StoredDraft {
  id: number;
  text: string;
  /** Epoch milliseconds. */
  at: number;
}

/** A file that the platform holds. */
export interface StoredFile {
  fileId: string;
  uniqueId: string;
  path: string;
  bytes: Uint8Array;
  mimeType?: string;
  filename?: string;
}

interface StoredChat {
  messages: Map<number, StoredMessage>;
  lastMessageId: number;
  blocked: boolean;
  migratedTo?: string;
  draft?: StoredDraft;
}

/** The state behind `SimTelegram`. */
export class TelegramState {
  readonly botId: number;
  readonly username: string;
  readonly now: () => number;
  readonly presses = new Set<string>();
  readonly files = new Map<string, StoredFile>();
  readonly #chats = new Map<string, StoredChat>();

  constructor(botId: number, username: string, now: () => number) {
    this.botId = botId;
    this.username = username;
    this.now = now;
  }

  /** The bot, as messages and getMe show it. */
  get bot(): Record<string, unknown> {
    return { id: this.botId, is_bot: true, first_name: this.username, username: this.username };
  }

  /** The platform's clock, in seconds. */
  get date(): number {
    return Math.floor(this.now() / 1_000);
  }

  /** A chat by its id, made on first use. */
  chat(chatId: string): StoredChat {
    let chat = this.#chats.get(chatId);
    if (chat === undefined) {
      chat = { messages: new Map(), lastMessageId: 0, blocked: false };
      this.#chats.set(chatId, chat);
    }
    return chat;
  }

  /**
   * The chat that a call may write to.
   * @throws {ApiError} where the user blocked the bot or the group has moved
   */
  writable(chatId: string): StoredChat {
    if (!/^(?:-?\d+|@\w+)$/.test(chatId)) throw badRequest("chat not found");
    const chat = this.chat(chatId);
    if (chat.blocked) throw new ApiError(403, "Forbidden: bot was blocked by the user");
    if (chat.migratedTo !== undefined) {
      throw new ApiError(400, "Bad Request: group chat was upgraded to a supergroup chat", {
        migrate_to_chat_id: Number(chat.migratedTo),
      });
    }
    return chat;
  }

  /** Puts a message into its chat under the next id of that chat, or under the id that it has. */
  store(message: Omit<StoredMessage, "id" | "edited" | "reactions">, id?: number): StoredMessage {
    const chat = this.chat(message.chatId);
    const stored = { ...message, id: id ?? chat.lastMessageId + 1, edited: false, reactions: [] };
    chat.lastMessageId = Math.max(chat.lastMessageId, stored.id);
    chat.messages.set(stored.id, stored);
    // A message of the bot takes the place of what it was writing.
    if (stored.from === undefined) delete chat.draft;
    return stored;
  }

  /** Takes a file in, under a new file id or under the one given. */
  addFile(
    bytes: Uint8Array,
    about: { fileId?: string; mimeType?: string; filename?: string } = {},
  ): StoredFile {
    const number = this.files.size + 1;
    const { fileId = `file-${number}`, ...rest } = about;
    const extension = /\.\w+$/.exec(about.filename ?? "")?.[0] ?? "";
    const path = `files/file_${number}${extension}`;
    const file: StoredFile = { fileId, uniqueId: `unique-${number}`, path, bytes, ...rest };
    this.files.set(fileId, file);
    return file;
  }

  /** A message as the Bot API shows it. */
  show(message: StoredMessage): Record<string, unknown> {
    const shown: Record<string, unknown> = {
      message_id: message.id,
      from: message.from ?? this.bot,
      chat: chatObject(message.chatId),
      date: message.date,
    };
    if (message.threadId !== undefined) {
      shown.message_thread_id = message.threadId;
      shown.is_topic_message = true;
    }
    if (message.media !== undefined) shown[message.media.field] = message.media.value;
    const [text, entities] =
      message.media === undefined ? ["text", "entities"] : ["caption", "caption_entities"];
    if (message.text !== "") shown[text] = message.text;
    if (message.entities !== undefined) shown[entities] = message.entities;
    if (message.markup !== undefined) shown.reply_markup = message.markup;
    const target = message.replyTo && this.chat(message.chatId).messages.get(message.replyTo);
    if (target) shown.reply_to_message = this.show({ ...target, replyTo: 0 });
    if (message.edited) shown.edit_date = this.date;
    return shown;
  }
}

/** A chat as the Bot API shows it; the kind is told by the id, as Telegram's ids do. */
export function chatObject(chatId: string): Record<string, unknown> {
  const id = Number(chatId);
  if (Number.isNaN(id)) return { id: -1_000_000_000_001, type: "channel", title: chatId };
  if (id > 0) return { id, type: "private", first_name: `User ${id}` };
  const type = id < -1_000_000_000_000 ? "supergroup" : "group";
  return { id, type, title: `Group ${-id}` };
}
