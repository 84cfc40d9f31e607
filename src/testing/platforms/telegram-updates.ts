/**
 * Updates as Telegram makes them, and their way to a webhook.
 *
 * @module
 */
import { chatObject, type TelegramState } from "./telegram-state.ts";

/** An update of the Bot API. */
export interface SimUpdate {
  update_id: number;
  [kind: string]: unknown;
}

/** A user: an id, or more. */
export type SimUser =
  | number
  | { id: number; first_name?: string; last_name?: string; username?: string; is_bot?: boolean };

/** What a message update is made of. */
export interface MessageInit {
  chatId: number | string;
  text: string;
  /** Default: the chat's user in a private chat, else user 1001. */
  from?: SimUser;
  /** Default: the next one. */
  updateId?: number;
  messageId?: number;
  threadId?: number;
  /** The id of the message that this one answers. */
  replyTo?: number;
  /** Further fields of the message (`photo`, `chat` …). */
  fields?: Record<string, unknown>;
}

/** What a press of a button is made of. */
export interface CallbackInit {
  chatId: number | string;
  messageId: number | string;
  data: string;
  from?: SimUser;
  updateId?: number;
  pressId?: string;
}

/** Makes updates; ids count up by themselves. */
export class UpdateMaker {
  readonly #state: TelegramState;
  #lastUpdateId = 100_000;
  #lastPress = 0;

  constructor(state: TelegramState) {
    this.#state = state;
  }

  message(init: MessageInit): SimUpdate {
    const chatId = String(init.chatId);
    const stored = this.#state.store(
      {
        chatId,
        from: userObject(init.from, chatId),
        date: this.#state.date,
        text: init.text,
        ...(init.threadId === undefined ? {} : { threadId: init.threadId }),
        ...(init.replyTo === undefined ? {} : { replyTo: init.replyTo }),
        ...entitiesIn(init.text),
      },
      init.messageId,
    );
    return this.#update(init.updateId, "message", { ...this.#state.show(stored), ...init.fields });
  }

  edited(init: MessageInit & { messageId: number }): SimUpdate {
    const chatId = String(init.chatId);
    const stored =
      this.#state.chat(chatId).messages.get(init.messageId) ??
      this.#state.store(
        { chatId, from: userObject(init.from, chatId), date: this.#state.date, text: "" },
        init.messageId,
      );
    stored.text = init.text;
    stored.edited = true;
    return this.#update(init.updateId, "edited_message", {
      ...this.#state.show(stored),
      ...init.fields,
    });
  }

  callback(init: CallbackInit): SimUpdate {
    const chatId = String(init.chatId);
    this.#lastPress += 1;
    const pressId = init.pressId ?? `press-${this.#lastPress}`;
    this.#state.presses.add(pressId);
    const message = this.#state.chat(chatId).messages.get(Number(init.messageId));
    return this.#update(init.updateId, "callback_query", {
      id: pressId,
      from: userObject(init.from, chatId),
      message:
        message === undefined
          ? { chat: chatObject(chatId), message_id: Number(init.messageId), date: 0 }
          : this.#state.show(message),
      chat_instance: `instance-${chatId}`,
      data: init.data,
    });
  }

  #update(updateId: number | undefined, kind: string, payload: unknown): SimUpdate {
    const id = updateId ?? this.#lastUpdateId + 1;
    this.#lastUpdateId = Math.max(this.#lastUpdateId, id);
    return { update_id: id, [kind]: payload };
  }
}

/** How a delivery to a webhook is made. */
export interface DeliverOptions {
  /** Default: the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
  /** The most tries. Default 5. */
  attempts?: number;
  /** Waits between two tries, by whatever clock the test has. Default: not at all. */
  wait?: (ms: number) => Promise<void>;
}

/** What became of a delivery. */
export interface Delivery {
  delivered: boolean;
  tries: { at: number; status?: number; error?: string; waitMs: number }[];
}

/** How long Telegram goes on trying, by kind; a message lives for a day. */
const EXPIRY_MS: Record<string, number> = {
  callback_query: 150_000,
  shipping_query: 150_000,
  pre_checkout_query: 150_000,
  inline_query: 30_000,
};

/**
 * Posts an update to a webhook, and again as Telegram does: at once, then after 2, 4, 8 … seconds up
 * to a minute, or after `Retry-After`, until a 2xx, the update's expiry, or the last try.
 */
export async function deliverUpdate(
  url: string,
  secret: string | undefined,
  update: SimUpdate,
  now: () => number,
  options: DeliverOptions = {},
): Promise<Delivery> {
  const post = options.fetch ?? ((request: Request) => fetch(request));
  const kind = Object.keys(update).find((key) => key !== "update_id") ?? "";
  const expires = now() + (EXPIRY_MS[kind] ?? 86_400_000);
  const tries: Delivery["tries"] = [];
  let waitMs = 0;
  for (let count = 0; count < (options.attempts ?? 5); count += 1) {
    if (now() + waitMs > expires) break;
    if (waitMs > 0) await options.wait?.(waitMs);
    const at = now();
    let retryAfter: string | null = null;
    try {
      const headers = new Headers({ "content-type": "application/json" });
      if (secret !== undefined) headers.set("x-telegram-bot-api-secret-token", secret);
      const body = JSON.stringify(update);
      const response = await post(new Request(url, { method: "POST", headers, body }));
      tries.push({ at, status: response.status, waitMs });
      await response.arrayBuffer();
      if (response.ok) return { delivered: true, tries };
      retryAfter = response.headers.get("retry-after");
    } catch (error) {
      tries.push({ at, error: String(error), waitMs });
    }
    const backoff = count === 0 ? 0 : Math.min(60_000, 1_000 * 2 ** count);
    const asked = retryAfter === null ? Number.NaN : Number(retryAfter);
    waitMs = asked >= 0 && asked <= 3_600 ? asked * 1_000 : backoff;
  }
  return { delivered: false, tries };
}

function userObject(user: SimUser | undefined, chatId: string): Record<string, unknown> {
  const given = user ?? (Number(chatId) > 0 ? Number(chatId) : 1001);
  if (typeof given === "number") return { id: given, is_bot: false, first_name: `User ${given}` };
  return { is_bot: false, first_name: `User ${given.id}`, ...given };
}

/** The entities that Telegram finds by itself: commands and mentions. */
function entitiesIn(text: string): { entities?: unknown } {
  const entities = [...text.matchAll(/(?<=^|\s)(?:\/\w{1,32}(?:@\w+)?|@\w{3,32})/g)].map(
    (found) => ({
      type: found[0].startsWith("/") ? "bot_command" : "mention",
      offset: found.index,
      length: found[0].length,
    }),
  );
  return entities.length === 0 ? {} : { entities };
}
