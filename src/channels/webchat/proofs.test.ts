/** What `webchat()` declares, shown against its real room, capability by capability. */
import { expect, test } from "vitest";
import { type CapabilityProofs, verifyCapabilityProofs } from "../../testing/index.ts";
import type { Channel, SendIo, SendResult } from "../channel.ts";
import type { PlainContent } from "../content.ts";
import { UnsupportedContentError } from "../errors.ts";
import type { WebChatConfig } from "./config.ts";
import { webchat } from "./index.ts";
import type { Entry, ServerFrame, WebMessage } from "./protocol.ts";
import { NAME, World } from "./roomLab.ts";

type WebChat = Channel<WebChatConfig>;
const address = webchat.address("s1");
const CID = "cid-00000001";

/** A channel, the room of its one session, and a page. */
function setUp(channel: WebChat) {
  const world = new World();
  let room = world.room();
  let lostAnswers = 0;
  const configured = channel.configure({});
  if (!configured.ok) throw new Error("not configured");
  const io: SendIo<WebChatConfig> = {
    options: configured.options,
    fetch: () => Promise.reject(new Error("the web chat fetches nothing")),
    signal: new AbortController().signal,
    now: () => world.now,
    actors: {
      call: async (kind, name, method, payload) => {
        expect([kind, name]).toEqual(["WebChat", NAME]);
        const answer = await room.call(method, payload);
        if (lostAnswers > 0) {
          lostAnswers -= 1;
          throw new Error("the object was reset");
        }
        return answer;
      },
    },
    scope: "t/e/shop/webchat",
    marker: "m1",
    address,
  };
  const render = (content: Partial<PlainContent>) =>
    channel.outbound.render({ format: "plain", ...content }, { address, options: io.options });
  const send = async (content: Partial<PlainContent>, marker = "m") => {
    const parts = render(content);
    const results: SendResult[] = [];
    for (const [at, { request }] of parts.entries()) {
      results.push(await channel.outbound.send(request, { ...io, marker: `${marker}${at + 1}` }));
    }
    return results;
  };
  /** A page says something; what it alone is told. */
  const say = async (frame: object) => {
    const frames: ServerFrame[] = [];
    const socket = {
      send: (text: string) => void frames.push(JSON.parse(text) as ServerFrame),
      greet: () => {},
    };
    await room.message(JSON.stringify(frame), socket);
    return frames;
  };
  /** What a page shows that opens now. */
  const shown = async (): Promise<WebMessage[]> => {
    const frames = await say({ t: "hello", lastSeq: 0 });
    const entries: Entry[] = frames.flatMap((frame) => (frame.t === "log" ? frame.entries : []));
    const messages = new Map<string, WebMessage>();
    for (const entry of entries) {
      if (entry.kind === "remove") messages.delete(entry.mid);
      else if ("message" in entry) messages.set(entry.mid, entry.message);
    }
    return [...messages.values()];
  };
  return {
    world,
    io,
    render,
    send,
    say,
    shown,
    /** The room's object dies and another comes over its storage. */
    reopen: () => {
      room = world.room();
    },
    loseAnswers: (count: number) => {
      lostAnswers = count;
    },
  };
}

const itemsOf = (call: { payload: string } | undefined) =>
  (JSON.parse(call?.payload ?? "{}") as { items: { event: Record<string, unknown> }[] }).items;

const proofs: CapabilityProofs<WebChatConfig> = {
  async text(channel) {
    const { send, shown } = setUp(channel);
    expect(await send({ text: "2 * 3 <b>" })).toMatchObject([{ ok: true, receipt: { id: "m1" } }]);
    expect(await shown()).toEqual([{ text: "2 * 3 <b>" }]);
  },
  async markdown(channel) {
    const { send, shown } = setUp(channel);
    await send({ format: "markdown", text: "a **b**" });
    expect(await shown()).toEqual([{ text: "a b", spans: [{ start: 2, end: 3, type: "bold" }] }]);
  },
  async media(channel) {
    const { send, shown } = setUp(channel);
    await send({ media: [{ kind: "image", url: "https://example.com/a.png", caption: "cat" }] });
    expect(await shown()).toEqual([
      { media: [{ kind: "image", url: "https://example.com/a.png", caption: { text: "cat" } }] },
    ]);
    await expect(send({ media: [{ kind: "image", base64: "AA==" }] })).rejects.toThrow(
      UnsupportedContentError,
    );
  },
  async buttons(channel) {
    const { send, shown, say, world } = setUp(channel);
    await send({ text: "?", buttons: [[{ text: "yes", value: "y" }]] });
    expect(await shown()).toEqual([{ text: "?", buttons: [[{ text: "yes", value: "y" }]] }]);
    await say({ t: "press", cid: CID, mid: "m1", value: "y" });
    expect(itemsOf(world.calls[0])).toMatchObject([
      { event: { kind: "action", messageId: "m1", press: { value: "y" } } },
    ]);
  },
  async silent(channel) {
    const { send, shown } = setUp(channel);
    await send({ text: "x", silent: true });
    expect(await shown()).toEqual([{ text: "x", silent: true }]);
  },
  async reply(channel) {
    const { send, shown } = setUp(channel);
    expect(await send({ text: "a", replyTo: CID })).toMatchObject([
      { receipt: { replyToId: CID } },
    ]);
    expect(await shown()).toEqual([{ text: "a", replyTo: CID }]);
  },
  async textLimit(channel) {
    const { send, shown } = setUp(channel);
    const full = "😀".repeat(channel.capabilities.text.limit);
    expect(await send({ text: full }, "a")).toHaveLength(1);
    expect(await send({ text: `${full}!` }, "b")).toHaveLength(2);
    expect((await shown()).map((message) => message.text).join("")).toBe(`${full}${full}!`);
  },
  async buttonData(channel) {
    const { say, world, send } = setUp(channel);
    await send({ text: "?" });
    const value = "b".repeat(channel.capabilities.buttonDataBytes);
    await say({ t: "press", cid: CID, mid: "m1", value });
    expect(itemsOf(world.calls[0])).toMatchObject([{ event: { press: { value } } }]);
    expect(await say({ t: "press", cid: "cid-00000002", mid: "m1", value: `${value}b` })).toEqual([
      { t: "error", code: "too_long", cid: "cid-00000002" },
    ]);
  },
  async edit(channel) {
    const { send, shown, io } = setUp(channel);
    await send({ text: "one" });
    // Twice: a repeat must be harmless.
    for (const _ of [1, 2]) {
      const message = { id: "m1", address };
      const result = await channel.outbound.edit?.(message, { format: "plain", text: "two" }, io);
      expect(result).toMatchObject({ ok: true });
    }
    expect(await shown()).toEqual([{ text: "two" }]);
  },
  async delete(channel) {
    const { send, shown, io } = setUp(channel);
    await send({ text: "one" });
    for (const _ of [1, 2]) {
      expect(await channel.outbound.delete?.({ id: "m1", address }, io)).toMatchObject({
        ok: true,
      });
    }
    expect(await shown()).toEqual([]);
  },
  async typing(channel) {
    const { io, world } = setUp(channel);
    await channel.outbound.typing?.(address, io);
    expect(world.wire).toMatchObject([{ t: "typing" }]);
  },
  async finalizeInPlace(channel) {
    const { send, shown, render, io } = setUp(channel);
    await send({ text: "…" });
    const [final] = render({
      format: "markdown",
      text: "**done**",
      buttons: [[{ text: "ok", value: "1" }]],
    });
    for (const _ of [1, 2]) {
      const message = { id: "m1", address };
      const done = await channel.outbound.revise?.(message, final?.request ?? {}, io);
      expect(done).toEqual({ ok: true, receipt: { id: "m1", kind: "text" } });
    }
    expect(await shown()).toMatchObject([{ text: "done", buttons: [[{ text: "ok" }]] }]);
  },
  streaming(channel) {
    // The room sets no limit; each look is a request that is paid for.
    expect(channel.capabilities.streaming?.everyMs).toBeGreaterThanOrEqual(250);
  },
  async draft(channel) {
    const { send, shown, render, io, world } = setUp(channel);
    const show = (text: string) =>
      channel.outbound.draft?.(
        { id: "d1", address, request: render({ format: "markdown", text })[0]?.request ?? {} },
        io,
      );
    expect(await show("It is")).toMatchObject({ ok: true });
    await show("It is **so**");
    expect(world.wire).toEqual([
      { t: "draft", id: "d1", keep: 0, text: "It is" },
      { t: "draft", id: "d1", keep: 5, text: " so", spans: [{ start: 6, end: 8, type: "bold" }] },
    ]);
    expect(await shown()).toEqual([]);
    await send({ text: "It is so." });
    expect(await shown()).toEqual([{ text: "It is so." }]);
  },
  async keyed(channel) {
    const { send, shown, reopen, loseAnswers } = setUp(channel);
    loseAnswers(1);
    await expect(send({ text: "hi" })).rejects.toThrow("reset");
    reopen();
    // The same marker is the same message, also for a room that remembers nothing but its storage.
    const again = await send({ text: "hi" });
    expect(again).toMatchObject([{ ok: true, receipt: { id: "m1" } }]);
    expect(await shown()).toEqual([{ text: "hi" }]);
    await send({ text: "hi" }, "other");
    expect(await shown()).toHaveLength(2);
  },
  async redelivery(channel) {
    const { say, world } = setUp(channel);
    world.receive = () => Promise.reject(new Error("reset"));
    await say({ t: "msg", cid: CID, text: "hi" });
    world.receive = async () => `{"ok":true,"results":["accepted"]}`;
    // Neither the page nor anybody else says anything: the room forwards it by its alarm.
    await world.fire();
    const ids = world.calls.map((call) => itemsOf(call)[0]?.event.id);
    expect(ids).toEqual([CID, CID]);
    expect(world.wire).toContainEqual(expect.objectContaining({ t: "ack", cid: CID }));
  },
  async journalFailure(channel) {
    const { say, world } = setUp(channel);
    world.receive = async () => `{"ok":false}`;
    await say({ t: "msg", cid: CID, text: "hi" });
    const about = world.wire.filter((frame) => "cid" in frame && frame.cid === CID);
    // "Not yet": the page keeps the message and sends it again.
    expect(about).toMatchObject([{ t: "nack", retry: true }]);
    expect(channel.capabilities.journalFailure.status).toBe(503);
  },
  async dedupe(channel) {
    const { say, world } = setUp(channel);
    await say({ t: "msg", cid: CID, text: "hi" });
    await say({ t: "msg", cid: CID, text: "hi" });
    await say({ t: "msg", cid: "cid-00000002", text: "hi" });
    expect(world.calls.map((call) => itemsOf(call)[0]?.event.id)).toEqual([CID, "cid-00000002"]);
  },
  async answerPress(channel) {
    const { say, send, world, io } = setUp(channel);
    await send({ text: "?", buttons: [[{ text: "yes", value: "y" }]] });
    await say({ t: "press", cid: CID, mid: "m1", value: "y" });
    // The ack has stopped the page's spinner; the answer has nothing left to do.
    expect(world.wire).toContainEqual(expect.objectContaining({ t: "ack", cid: CID }));
    const before = world.wire.length;
    await channel.outbound.answerPress?.(CID, "ok", io);
    expect(world.wire).toHaveLength(before);
  },
};

test("webchat() can do what it declares, and declares what it can do", async () => {
  const table = await verifyCapabilityProofs(webchat(), proofs);
  const missing = table.filter((row) => row.status === "not_declared").map((row) => row.capability);
  expect(missing).toEqual([
    "template",
    "native",
    "threads",
    "reactions",
    "provable",
    "blind",
    "markerWindow",
    "reconcile",
    "selfTest",
    "statuses",
    "pacing",
    "serialRedelivery",
    "handshake",
    "polling",
    "mediaReferences",
    "prepare",
    "plain",
    "readdress",
    "textOf",
    "api",
  ]);
});
