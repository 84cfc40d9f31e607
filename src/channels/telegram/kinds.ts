/** Every kind of update that Telegram has. Imports nothing at run time. @module */
import type { Update } from "@grammyjs/types";

type Kind = Exclude<keyof Update, "update_id">;

/** One entry for each kind, or this does not compile. */
const KINDS: Readonly<Record<Kind, true>> = {
  message: true,
  edited_message: true,
  channel_post: true,
  edited_channel_post: true,
  business_connection: true,
  business_message: true,
  edited_business_message: true,
  deleted_business_messages: true,
  guest_message: true,
  stopped_message_generation: true,
  message_reaction: true,
  message_reaction_count: true,
  inline_query: true,
  chosen_inline_result: true,
  callback_query: true,
  shipping_query: true,
  pre_checkout_query: true,
  purchased_paid_media: true,
  poll: true,
  poll_answer: true,
  my_chat_member: true,
  chat_member: true,
  chat_join_request: true,
  chat_boost: true,
  removed_chat_boost: true,
  managed_bot: true,
  subscription: true,
};

/** For `allowed_updates`: reactions and members come only to bots that name them. */
export const ALL_UPDATES: readonly string[] = Object.keys(KINDS);
