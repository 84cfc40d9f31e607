/**
 * From a platform's items to the chats that they belong to. The webhook edge and polling share it, so
 * that an update is admitted the same way, and deduplicated, whichever way it came.
 *
 * @module
 */
import type { AnyChannel, InboundItem } from "../channels/channel.ts";
import type { ChatInfo, InboundEvent } from "../channels/events.ts";
import type { Actors } from "../host/Host.ts";
import type { ReceiveAnswer, ReceiveRequest } from "./Admission.ts";
import { type BotScope, chatActorName } from "./names.ts";

/** The items of one chat, in order of arrival. */
export interface ChatGroup {
  /** The chat's actor. */
  name: string;
  request: ReceiveRequest;
}

/** Items by where they go. */
export interface SortedItems {
  chats: ChatGroup[];
  /** What is about the account and belongs to no chat. */
  account: InboundEvent[];
}

/** Sorts items by chat; within a chat they keep their order. Pure. */
export function sortItems(
  scope: BotScope,
  channel: AnyChannel,
  items: readonly InboundItem[],
): SortedItems {
  const groups = new Map<string, ChatGroup>();
  const account: InboundEvent[] = [];
  for (const item of items) {
    if (item.type === "account") {
      account.push(item.event);
      continue;
    }
    const found = groupOf(scope, channel, chatOf(item));
    const group = groups.get(found.name) ?? found;
    group.request.items.push(item);
    groups.set(group.name, group);
  }
  return { chats: [...groups.values()], account };
}

/** The empty group of a chat. */
export function groupOf(scope: BotScope, channel: AnyChannel, chat: ChatInfo): ChatGroup {
  const { connection, name } = channel;
  return {
    name: chatActorName(scope, connection, channel.chatKey(chat)),
    request: { connection, channel: name, chat, items: [] },
  };
}

/**
 * Hands a group to its chat. Safe to repeat: the chat knows what it has.
 *
 * @param how `atCommit` where no platform waits for the answer
 * @throws whatever the chat or the way to it threw: the commit may have happened
 */
export async function admit(
  actors: Actors,
  group: ChatGroup,
  how: { atCommit?: true } = {},
): Promise<ReceiveAnswer> {
  const answer = await actors.call(
    "ChatActor",
    group.name,
    "receive",
    JSON.stringify({ ...group.request, ...how }),
  );
  return JSON.parse(answer) as ReceiveAnswer;
}

/** What a platform repeats when it delivers an item again. */
export function deliveryIdOf(item: InboundItem): string {
  if (item.type === "bad") return item.id;
  if (item.type !== "status") return item.event.id;
  const { platformId, marker, status, at } = item.status;
  return `status:${platformId ?? marker ?? ""}:${status}:${at}`;
}

function chatOf(item: Exclude<InboundItem, { type: "account" }>): ChatInfo {
  switch (item.type) {
    case "event":
      return item.event.chat;
    case "status":
      return item.status.chat;
    case "bad":
      return item.chat;
  }
}
