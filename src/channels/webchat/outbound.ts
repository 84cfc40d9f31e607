/**
 * What leaves for the web chat: one call to the session's room, which is an object of ours. It keeps
 * every marker for longer than any record that could repeat it, so a repeat is always recognised.
 *
 * @module
 */
import { encodePart } from "../../objects/names.ts";
import type { ChannelIo, Outbound, SendIo, SendResult } from "../channel.ts";
import type { JsonObject, PlainContent } from "../content.ts";
import { HoldfastError } from "../errors.ts";
import type { Address } from "../events.ts";
import type { WebChatConfig } from "./config.ts";
import type { RoomAnswer, RoomCalls, WebMessage } from "./protocol.ts";
import { messagesOf, render } from "./render.ts";

type Io = ChannelIo<WebChatConfig>;
type Message = { id: string; address: Address };

/** The outbound half of the channel. */
export const outbound: Outbound<WebChatConfig> = {
  render,
  send,
  edit,
  async delete(message, io) {
    const answer = await call(io, message.address, "remove", { id: message.id });
    // Gone is what was wanted.
    if (!answer.ok && answer.kind === "not_found") return done(message.id, "text");
    return resultOf(answer, "text");
  },
  async revise(message, request, io) {
    const answer = await call(io, message.address, "edit", { id: message.id, message: request });
    return resultOf(answer, "text");
  },
  async draft({ id, address, request }, io) {
    return resultOf(await call(io, address, "draft", { id, message: request }), "text");
  },
  async typing(address, io) {
    await call(io, address, "typing", {});
  },
  async answerPress() {
    // The room's ack has told the page that the press was taken.
  },
};

/**
 * One call, started before the first await. A throw means that the room may have run: the outbox takes
 * it so and repeats it under the same marker.
 */
async function send(request: JsonObject, io: SendIo<WebChatConfig>): Promise<SendResult> {
  const message = request as WebMessage;
  const answer = await call(io, io.address, "deliver", { marker: io.marker, message });
  return resultOf(answer, message.media === undefined ? "text" : "media", message.replyTo);
}

async function edit(target: Message, content: PlainContent, io: Io): Promise<SendResult> {
  const [message, ...more] = messagesOf(content);
  if (message === undefined || more.length > 0) {
    return {
      ok: false,
      kind: "payload_too_large",
      evidence: "not_sent",
      message: "an edit must fit one message",
    };
  }
  const answer = await call(io, target.address, "edit", { id: target.id, message });
  return resultOf(answer, message.media === undefined ? "text" : "media");
}

async function call<M extends keyof RoomCalls>(
  io: Io,
  address: Address,
  method: M,
  payload: RoomCalls[M],
): Promise<RoomAnswer> {
  const room = `${io.scope}/${encodePart(address.chat)}`;
  const text = await io.actors.call("WebChat", room, method, JSON.stringify(payload));
  const answer = JSON.parse(text) as Partial<RoomAnswer> | null;
  if (typeof answer?.ok !== "boolean") {
    throw new HoldfastError(`the room of the web chat answered ${method} with something else`, {
      code: "bad_answer",
      kind: "unknown",
    });
  }
  return answer as RoomAnswer;
}

function resultOf(
  answer: RoomAnswer,
  kind: "text" | "media",
  replyToId?: string | undefined,
): SendResult {
  if (!answer.ok) {
    return { ok: false, kind: answer.kind, evidence: "not_sent", message: answer.message };
  }
  const result = done(answer.id, kind);
  if (replyToId !== undefined) result.receipt.replyToId = replyToId;
  return result;
}

function done(id: string, kind: "text" | "media"): Extract<SendResult, { ok: true }> {
  return { ok: true, receipt: { id, kind } };
}
