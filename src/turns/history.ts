/**
 * What was said in a chat, for a handler, and in the form that language models take.
 *
 * @module
 */
import type { LogEntry } from "./Client.ts";

/** One message of a conversation: the shape of the AI SDK's `ModelMessage` (`ai`), text only. */
export interface ModelMessage {
  role: "user" | "assistant";
  content: string;
}

/** Recent events and sends, oldest first. */
export interface History extends Array<LogEntry> {
  /**
   * People's messages as `user` and what the bot said as `assistant`, oldest first, with this turn's message
   * as the last. What was not said (dead, suppressed) and what has no text is left out; parts of one message
   * and messages of one side that follow each other are one.
   */
  toModelMessages(): ModelMessage[];
}

/** States of a send that nobody has heard, and will not hear. */
const UNSAID = ["dead", "suppressed"];

/** Entries as a history. */
export function historyOf(entries: readonly LogEntry[]): History {
  return Object.assign([...entries], { toModelMessages: () => modelMessages(entries) });
}

function modelMessages(entries: readonly LogEntry[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const { type, kind, state, text = "" } of entries) {
    const heard = type === "event" ? kind === "message" : !UNSAID.includes(state);
    if (!heard || text === "") continue;
    const role = type === "event" ? "user" : "assistant";
    const last = messages.at(-1);
    if (last?.role === role) last.content += `\n${text}`;
    else messages.push({ role, content: text });
  }
  return messages;
}
