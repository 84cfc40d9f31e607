/** What the tests of streamed answers share. @module */
import type { Context, StreamOptions } from "../../src/index.ts";
import { ModelStream, type ModelStreamOptions } from "../../src/testing/index.ts";
import { type Code, type Lab, lab } from "./lab.ts";

/** Words that all differ, so that nothing can be lost or doubled unseen. */
export function prose(length: number): string {
  let text = "";
  for (let n = 1; text.length < length; n += 1) text += `word${n}${n % 12 === 0 ? ".\n" : " "}`;
  return text.slice(0, length).trimEnd();
}

/** A text without what splitting it may change. */
export const words = (text: string) => text.replace(/\s+/g, " ");

/** A bot under test that answers with a model's stream. */
export interface StreamLab extends Lab {
  /** The stream that was read last. */
  model(): ModelStream;
}

/** Puts a bot under test that answers everything with a model's stream. */
export function streaming(
  text: string | ((asked: string) => string),
  more: Partial<Code> & { options?: StreamOptions; model?: ModelStreamOptions } = {},
): StreamLab {
  const { options, model: how, ...code } = more;
  let model = new ModelStream("");
  const answer = (ctx: Context) => {
    model = new ModelStream(typeof text === "string" ? text : text(ctx.text), how);
    return ctx.stream(model, options);
  };
  const l = lab({ setup: (bot) => void bot.otherwise(answer), ...code });
  return Object.assign(l, { model: () => model });
}
