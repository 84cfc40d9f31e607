/** Updates as Telegram sends them. @module */

let lastUpdate = 700_000_000;
let lastChat = 5_000_000_000;

/** The text of a message: unique by its number, and as long as people write. */
export interface SentUpdate {
  text: string;
  json: string;
}

/** A chat that nobody used before. */
export function freshChat(): number {
  lastChat += 1;
  return lastChat;
}

/** Somebody writes in a private chat. */
export function messageIn(chatId: number): SentUpdate {
  lastUpdate += 1;
  const text = `message ${lastUpdate}: could you move my table to eight o'clock, please?`;
  const person = { id: chatId, first_name: "Ann", last_name: "Example", username: "ann_example" };
  const update = {
    update_id: lastUpdate,
    message: {
      message_id: lastUpdate - 700_000_000,
      from: { ...person, is_bot: false, language_code: "en" },
      chat: { ...person, type: "private" },
      date: 1_790_000_000,
      text,
    },
  };
  return { text, json: JSON.stringify(update) };
}
