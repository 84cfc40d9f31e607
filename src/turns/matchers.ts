/**
 * Matchers: what `bot.when` takes. Each narrows the context that its handler gets.
 *
 * @module
 */
import type { MediaRef } from "../channels/events.ts";
import type { Context } from "./Context.ts";

/** A matcher whose handler gets a context of type `C & Narrow`. */
export interface Matcher<Narrow = unknown> {
  readonly name: string;
  test(ctx: Context): boolean;
  /** Carries the type; never set. */
  readonly narrows?: Narrow;
}

/** At least one media reference. */
export interface HasMedia {
  readonly media: readonly [MediaRef, ...MediaRef[]];
}

/** A location. */
export interface HasLocation {
  readonly event: { readonly location: { latitude: number; longitude: number; name?: string } };
}

function media(kind: MediaRef["kind"]): Matcher<HasMedia> {
  return { name: kind.toUpperCase(), test: (ctx) => ctx.media.some((ref) => ref.kind === kind) };
}

/** A message with text. */
export const TEXT: Matcher<{ readonly text: string }> = {
  name: "TEXT",
  test: (ctx) => ctx.text !== "",
};
/** A message with an image. */
export const IMAGE: Matcher<HasMedia> = media("image");
/** A message with audio. */
export const AUDIO: Matcher<HasMedia> = media("audio");
/** A message with a video. */
export const VIDEO: Matcher<HasMedia> = media("video");
/** A message with a file. */
export const FILE: Matcher<HasMedia> = media("file");
/** A message with a location. */
export const LOCATION: Matcher<HasLocation> = {
  name: "LOCATION",
  test: (ctx) => ctx.event.location !== undefined,
};
/** A message that mentions the bot. */
export const MENTION: Matcher = { name: "MENTION", test: (ctx) => ctx.event.mentioned === true };
/** A message in a one-to-one chat. */
export const DIRECT: Matcher = { name: "DIRECT", test: (ctx) => ctx.chat.kind === "direct" };
/** A message in a group. */
export const GROUP: Matcher = { name: "GROUP", test: (ctx) => ctx.chat.kind === "group" };
