/**
 * Questions with choices: buttons where the channel has them, numbered text where not, and what an answer
 * chose.
 *
 * @module
 */
import type { Button, Content, ContentObject } from "../channels/content.ts";
import { ConfigError } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { Press } from "../turns/Context.ts";
import type { Choice } from "./types.ts";

/** The action of choice buttons: no bot's own, since names of actions are the author's words. */
export const CHOICE_ACTION = "~choice";

/** What a choice button carries: its run, the wait that it answers, and which text it had. */
interface ChoiceData {
  r: string;
  w: number;
  t: string;
}

/** Choices in one form. @throws {ConfigError} when there is none, or one has no text */
export function choicesOf(choices: readonly (string | Choice)[]): Choice[] {
  const list = choices.map((one) => (typeof one === "string" ? { text: one, value: one } : one));
  if (list.length === 0 || list.some((one) => typeof one.text !== "string" || one.text === ""))
    throw new ConfigError("`choices` needs texts, or objects with `text` and `value`");
  return list;
}

/** A question with its choices. */
export function questionOf(
  question: Content,
  choices: readonly Choice[],
  at: { run: string; wait: number },
  hasButtons: boolean,
): Content {
  const content: ContentObject = typeof question === "string" ? { text: question } : question;
  if (hasButtons) {
    const buttons = choices.map(({ text }): Button[] => [
      {
        text,
        action: CHOICE_ACTION,
        data: { r: shortOf(at.run), w: at.wait, t: shortOf(text) } satisfies ChoiceData,
      },
    ]);
    return { ...content, buttons };
  }
  const list = choices.map(({ text }, i) => `${i + 1}. ${text}`).join("\n");
  return { ...content, text: [content.text ?? "", list].filter(Boolean).join("\n\n") };
}

/** Which choice a press is of; `undefined` where it belongs to another question, or is no longer offered. */
export function pressed(
  press: Press | undefined,
  choices: readonly Choice[],
  at: { run: string; wait: number },
): Choice | undefined {
  const data = choiceData(press);
  if (data === undefined || data.r !== shortOf(at.run) || data.w !== at.wait) return undefined;
  return choices.find((one) => shortOf(one.text) === data.t);
}

/** Whether a press is of a choice, of whatever question. */
export function isChoice(press: Press | undefined): boolean {
  return press !== undefined && "action" in press && press.action === CHOICE_ACTION;
}

/** The choice that a text names: by its words or its number. */
export function chosen(event: InboundEvent, choices: readonly Choice[]): Choice | undefined {
  const said = (event.text ?? "").trim();
  const exact = choices.find((one) => one.text === said);
  if (exact !== undefined) return exact;
  const same = choices.find((one) => one.text.trim().toLowerCase() === said.toLowerCase());
  return same ?? (/^\d{1,4}$/.test(said) ? choices[Number(said) - 1] : undefined);
}

function choiceData(press: Press | undefined): ChoiceData | undefined {
  if (press === undefined || !("action" in press) || press.action !== CHOICE_ACTION)
    return undefined;
  const data = press.data as Partial<ChoiceData> | undefined;
  return typeof data?.r === "string" && typeof data.w === "number" && typeof data.t === "string"
    ? (data as ChoiceData)
    : undefined;
}

/** Enough of a text to tell it from others of the chat, within what a button may carry. */
function shortOf(text: string): string {
  let hash = 5_381;
  for (const char of text) hash = (Math.imul(hash, 33) ^ (char.codePointAt(0) ?? 0)) >>> 0;
  return hash.toString(36);
}
