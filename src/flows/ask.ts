/**
 * Questions: how one is put, which events answer it, and what becomes of an answer that does not fit.
 *
 * @module
 */
import type { Content } from "../channels/content.ts";
import { FlowAnswerError } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { Press } from "../turns/Context.ts";
import { answerOf, type Candidate } from "./alternatives.ts";
import { choicesOf, chosen, pressed, questionOf } from "./choices.ts";
import type { Judgement, Resolution } from "./records.ts";
import type { AskAccept, AskChoices, AskSchema, AskText, Choice } from "./types.ts";
import type { WaitIo } from "./waitFor.ts";

/** Answers that do not fit and are sent back, unless the question says otherwise. */
const DEFAULT_RETRIES = 3;

/** Options of any question. */
export type AskOptions = AskText &
  Partial<AskChoices<string | Choice> & AskSchema<unknown> & AskAccept>;

/** What a question needs of its run. */
export interface AskIo extends WaitIo {
  run: string;
  /** The place of the next wait. */
  place(): number;
  hasButtons: boolean;
  reply(content: Content): Promise<unknown>;
  /** What the answer of a wait was worth, where that was judged before. */
  judged(wait: number): Judgement | undefined;
  judge(wait: number, judgement: Judgement): void;
}

/**
 * Puts a question until an answer fits.
 * @throws {FlowTimeoutError} after `timeout`
 * @throws {FlowAnswerError} after `retries` answers that do not fit
 */
export async function askFor(io: AskIo, question: Content, options: AskOptions): Promise<unknown> {
  const { accept, schema, timeout, invalid } = options;
  const choices = options.choices === undefined ? undefined : choicesOf(options.choices);
  const kind = choices !== undefined ? "choices" : schema !== undefined ? "schema" : "text";
  const retries = options.retries ?? DEFAULT_RETRIES;
  // The time of the whole question, however often it is answered badly.
  const dueAt = timeout === undefined ? undefined : io.later(timeout);
  // The buttons stay those of the first time.
  const at = { run: io.run, wait: io.place() };
  await io.reply(
    choices === undefined ? question : questionOf(question, choices, at, io.hasButtons),
  );
  const answers = ({ ctx, isCommand }: Candidate): Pick<Resolution, "event"> | undefined => {
    if (choices !== undefined && pressed(ctx.press, choices, at) !== undefined)
      return { event: { ...ctx.event, data: ctx.press } };
    if (ctx.event.kind !== "message" || isCommand) return undefined;
    const fits = accept === undefined ? ctx.text !== "" : accept.test(ctx);
    return fits ? { event: ctx.event } : undefined;
  };
  for (let tries = 0; ; tries += 1) {
    const { event } = await io.wait(accept?.name ?? kind, dueAt, answers);
    if (event === undefined) throw new Error("an answer without an event");
    const answer = answerOf({ event });
    if (accept !== undefined) return answer;
    // Kept: a deploy may reorder choices, and a schema may look at the time.
    const n = io.place() - 1;
    const fitting = io.judged(n) ?? (await judge(event, choices, at, schema));
    io.judge(n, fitting);
    if ("value" in fitting) return fitting.value;
    const { reason } = fitting;
    if (tries >= retries)
      throw new FlowAnswerError(`no answer fitted after ${tries + 1} tries: ${reason}`);
    await io.reply(typeof invalid === "function" ? invalid(reason, answer) : (invalid ?? reason));
  }
}

/** What an answer is worth, or why it does not fit. */
async function judge(
  event: InboundEvent,
  choices: readonly Choice[] | undefined,
  at: { run: string; wait: number },
  schema: AskOptions["schema"],
): Promise<Judgement> {
  if (choices !== undefined) {
    const press = pressed(event.data as Press | undefined, choices, at);
    const choice = press ?? chosen(event, choices);
    if (choice !== undefined) return { value: choice.value };
    return { reason: `Please choose one of: ${choices.map((one) => one.text).join(", ")}.` };
  }
  const text = event.text ?? "";
  if (schema === undefined) return { value: text };
  const checked = await schema["~standard"].validate(text);
  if (checked.issues === undefined) return { value: checked.value };
  return { reason: checked.issues[0]?.message ?? "That does not fit." };
}
