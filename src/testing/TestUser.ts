/** A user of a bot under test. @module */
import type { Address, ChatInfo, InboundEvent, Sender } from "../channels/events.ts";
import type { LedgerEntry } from "./MockPlatform.ts";
import type { TestBot } from "./TestBot.ts";

/** Where a user is. */
export interface UserOptions {
  /** A group that the user writes in. Default: a one-to-one chat. */
  chat?: string | undefined;
  thread?: string | undefined;
  /** Which of the bot's connections. Default: the first. */
  connection?: string | undefined;
}

/** What a user can send beyond text. */
export type UserEvent = Partial<Omit<InboundEvent, "channel" | "connection" | "chat" | "sender">>;

/** A user. */
export class TestUser {
  readonly name: string;
  readonly connection: string;
  readonly chat: ChatInfo;
  readonly sender: Sender;
  readonly #bot: TestBot;
  #messages = 0;

  constructor(bot: TestBot, name: string, options: UserOptions & { connection: string }) {
    this.#bot = bot;
    this.name = name;
    this.connection = options.connection;
    this.chat = {
      id: options.chat ?? name,
      kind: options.chat === undefined ? "direct" : "group",
      ...(options.thread === undefined ? {} : { thread: options.thread }),
    };
    this.sender = { id: name, name };
  }

  /** Where to send to reach this user. */
  get address(): Address {
    return {
      channel: this.connection,
      connection: this.connection,
      chat: this.chat.id,
      ...(this.chat.thread === undefined ? {} : { thread: this.chat.thread }),
    };
  }

  /** What the chat shows of the bot's messages now, after edits and deletions, oldest first. */
  get screen(): string[] {
    return this.#visible().map((entry) => entry.text);
  }

  /** The bot's last message. */
  get last(): string | undefined {
    return this.screen.at(-1);
  }

  /** The buttons that the chat shows, oldest first. */
  get buttons(): string[] {
    return this.#visible().flatMap((entry) => entry.buttons.map((button) => button.text));
  }

  /** Says something, and lets the bot come to rest. */
  async say(text: string): Promise<void> {
    await this.send({ text });
  }

  /** Presses the newest button with this text, and lets the bot come to rest. */
  async press(text: string): Promise<void> {
    const entry = this.#visible().findLast((one) =>
      one.buttons.some((button) => button.text === text),
    );
    const button = entry?.buttons.find((one) => one.text === text);
    if (entry === undefined || button === undefined) {
      throw new Error(
        `${this.name} sees no button "${text}"; there are: ${this.buttons.join(", ") || "none"}`,
      );
    }
    await this.send({
      kind: "action",
      press: { value: button.value, pressId: this.#bot.nextId() },
      messageId: entry.id,
    });
  }

  /** Sends any event, and lets the bot come to rest. */
  async send(event: UserEvent): Promise<void> {
    await this.post(event);
    await this.#bot.idle();
  }

  /** Sends an event without waiting for the bot: for tests of what happens meanwhile. */
  async post(event: UserEvent): Promise<void> {
    this.#messages += 1;
    const message = event.kind === undefined || event.kind === "message";
    await this.#bot.deliver(this.connection, {
      id: this.#bot.nextId(),
      kind: "message",
      chat: this.chat,
      sender: this.sender,
      at: this.#bot.now,
      ...(message ? { messageId: `${this.name}-${this.#messages}` } : {}),
      ...event,
    });
  }

  #visible(): LedgerEntry[] {
    return this.#bot
      .platform(this.connection)
      .ledger.filter((entry) => entry.chat === this.chat.id && !entry.deleted);
  }
}
