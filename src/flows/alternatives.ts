/**
 * Whether an event is what a flow waits for, and what it brings.
 *
 * @module
 */
import { ConfigError } from "../channels/errors.ts";
import type { Context } from "../turns/Context.ts";
import type { Matcher } from "../turns/matchers.ts";
import type { Alternative, Answer, Hook } from "./types.ts";

/** What a candidate event is. */
export interface Candidate {
  ctx: Context;
  /** Whether it is a command that the bot handles. */
  isCommand: boolean;
}

/** The value that an alternative gets from an event; `undefined` where it does not take it. */
export function take(
  alternative: Alternative,
  { ctx, isCommand }: Candidate,
): { value: unknown } | undefined {
  if (isHook(alternative)) return undefined;
  if (typeof alternative === "string") {
    const type = alternative.slice("event:".length);
    return ctx.event.kind === "event" && ctx.event.type === type
      ? { value: ctx.event.data }
      : undefined;
  }
  if ("button" in alternative) {
    const { press } = ctx;
    const mine = press !== undefined && "action" in press && press.action === alternative.name;
    return mine ? { value: press.data } : undefined;
  }
  if (ctx.event.kind !== "message" || isCommand) return undefined;
  const matches =
    alternative instanceof RegExp
      ? new RegExp(alternative.source, alternative.flags.replace(/[gy]/g, "")).test(ctx.text)
      : (alternative as Matcher).test(ctx);
  return matches ? { value: answerOf(ctx) } : undefined;
}

/** A message as an answer. */
export function answerOf({ event }: Pick<Context, "event">): Answer {
  return { text: event.text ?? "", media: event.media ?? [], event };
}

/** What an alternative is called when code is compared. @throws {ConfigError} for what cannot be waited for */
export function nameOf(key: string, alternative: Alternative): string {
  if (typeof alternative === "string") {
    if (!alternative.startsWith("event:"))
      throw new ConfigError(
        `a flow cannot wait for "${alternative}": an external event is "event:<type>"`,
      );
    return `${key}=${alternative}`;
  }
  if (alternative instanceof RegExp) return `${key}=text`;
  if (typeof alternative === "object" && alternative !== null && "name" in alternative)
    return `${key}=${alternative.name}`;
  throw new ConfigError(
    `a flow cannot wait for ${key}: give a hook, an action, a matcher such as TEXT, a regular expression or "event:<type>"`,
  );
}

export function isHook(alternative: unknown): alternative is Hook {
  return typeof alternative === "object" && alternative !== null && "token" in alternative;
}
