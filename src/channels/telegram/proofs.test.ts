/** What `telegram()` declares, shown against the simulated Bot API, capability by capability. */
import { expect, test } from "vitest";
import {
  type CapabilityProofs,
  MockPlatform,
  mockProvider,
  verifyCapabilityProofs,
} from "../../testing/index.ts";
import { SIM_TOKEN, SimTelegram } from "../../testing/platforms/telegram.ts";
import type { Channel, InboundItem, Pace, SendIo, SendResult } from "../channel.ts";
import type { JsonObject, PlainContent } from "../content.ts";
import { MediaUnavailableError } from "../errors.ts";
import type { Address } from "../events.ts";
import type { TelegramConfig } from "./config.ts";
import { telegram } from "./index.ts";

const NOW = 1_700_000_000_000;
const HOOK = "https://bot.example/webhooks/telegram";
const ann = telegram.address(501);
type Telegram = Channel<TelegramConfig>;

/** A channel, a platform, and a webhook between them. */
function setUp(channel: Telegram) {
  const sim = new SimTelegram({ now: () => NOW });
  const configured = channel.configure({
    TELEGRAM_BOT_TOKEN: SIM_TOKEN,
    TELEGRAM_WEBHOOK_SECRET: "s",
  });
  if (!configured.ok) throw new Error("not configured");
  const io: SendIo<TelegramConfig> = {
    options: configured.options,
    fetch: (input, init) => sim.fetch(new Request(input, init)),
    signal: new AbortController().signal,
    now: () => NOW,
    actors: { call: () => Promise.reject(new Error("none")) },
    scope: "t/e/b/telegram",
    marker: "m",
    address: ann,
  };
  const render = (content: Partial<PlainContent>, to: Address = ann) =>
    channel.outbound.render({ format: "plain", ...content }, { address: to, options: io.options });
  const send = async (content: Partial<PlainContent>, to: Address = ann) => {
    const results: SendResult[] = [];
    for (const { request } of render(content, to)) {
      results.push(await channel.outbound.send(request, { ...io, address: to }));
    }
    return results;
  };
  /** Sends what must be one message, and gives what the platform was asked for. */
  const body = async (content: Partial<PlainContent>, to: Address = ann) => {
    const [result, ...more] = await send(content, to);
    expect(more).toEqual([]);
    expect(result).toMatchObject({ ok: true });
    return sim.sent.at(-1)?.body ?? {};
  };
  const got: InboundItem[] = [];
  /** The webhook: `commits` says whether the journal takes the next delivery. */
  const webhook = (commits: () => boolean) => async (request: Request) => {
    const raw = {
      method: request.method,
      url: request.url,
      headers: request.headers,
      body: new Uint8Array(await request.arrayBuffer()),
    };
    expect(await channel.inbound.verify(raw, io.options)).toBe(true);
    const items = channel.inbound.parse(raw, {
      options: io.options,
      connection: "telegram",
      now: NOW,
    });
    got.push(...items);
    const committed = commits();
    return channel.inbound.answer(items, committed ? { committed } : { committed });
  };
  const ids = () => got.map((item) => (item.type === "event" ? item.event.id : "?"));
  return { sim, io, send, render, body, webhook, got, ids, ...channel };
}

/** The most calls that a pace lets through in any minute. */
const inAMinute = ({ burst, perMs }: Pace) => burst * Math.ceil(60_000 / (burst * perMs));

const proofs: CapabilityProofs<TelegramConfig> = {
  async text(channel) {
    const { sim, send } = setUp(channel);
    await send({ text: "2 * 3 _x_" });
    expect(sim.screen(501).map((message) => message.text)).toEqual(["2 * 3 _x_"]);
  },
  async markdown(channel) {
    expect(await setUp(channel).body({ format: "markdown", text: "a **b**" })).toMatchObject({
      text: "a b",
      entities: [{ type: "bold", offset: 2, length: 1 }],
    });
  },
  async media(channel) {
    const { sim, body } = setUp(channel);
    sim.addFile(new Uint8Array(2), { fileId: "F" });
    const media = [
      { kind: "image", url: "https://example.com/a.jpg" },
      { kind: "audio", fileId: "F" },
      { kind: "file", base64: btoa("%PDF"), filename: "a.pdf" },
      { kind: "video", base64: btoa("mp4") },
    ] as const;
    for (const item of media) await body({ media: [item], text: "look" });
    expect(sim.sent.map(({ method, text }) => [method, text])).toEqual([
      ["sendPhoto", "look"],
      ["sendAudio", "look"],
      ["sendDocument", "look"],
      ["sendVideo", "look"],
    ]);
  },
  async buttons(channel) {
    const { sim, body } = setUp(channel);
    await body({ text: "?", buttons: [[{ text: "yes", value: "y" }]] });
    expect(sim.screen(501)[0]?.buttons).toEqual([[{ text: "yes", data: "y" }]]);
  },
  async silent(channel) {
    const { body } = setUp(channel);
    expect(await body({ text: "x", silent: true })).toMatchObject({ disable_notification: true });
    expect(await body({ text: "x" })).not.toHaveProperty("disable_notification");
  },
  async reply(channel) {
    const { sim, send } = setUp(channel);
    sim.messageUpdate({ chatId: 501, text: "q", messageId: 30 });
    expect(await send({ text: "a", replyTo: "30" })).toMatchObject([
      { receipt: { replyToId: "30" } },
    ]);
  },
  async native(channel) {
    const { body } = setUp(channel);
    expect(await body({ text: "x", native: { protect_content: true } })).toMatchObject({
      protect_content: true,
    });
  },
  async textLimit(channel) {
    const { sim, send } = setUp(channel);
    const { limit } = channel.capabilities.text;
    const full = "😀".repeat(limit);
    expect(await send({ text: full })).toHaveLength(1);
    expect(await send({ text: `${full}!` })).toHaveLength(2);
    expect(sim.sent.map((message) => message.text).join("")).toBe(`${full}${full}!`);
    // One more in a single message is what the platform refuses.
    const over: JsonObject = { method: "sendMessage", body: { chat_id: 501, text: `${full}!` } };
    expect(await channel.outbound.send(over, setUp(channel).io)).toMatchObject({
      kind: "payload_too_large",
    });
  },
  async buttonData(channel) {
    const { sim, send, webhook, got } = setUp(channel);
    const value = "b".repeat(channel.capabilities.buttonDataBytes);
    await send({ text: "?", buttons: [[{ text: "yes", value }]] });
    const press = sim.callbackUpdate({ chatId: 501, messageId: 1, data: value });
    await sim.deliver(HOOK, "s", press, { fetch: webhook(() => true) });
    expect(got).toMatchObject([{ event: { kind: "action", press: { value } } }]);
    expect(await send({ text: "?", buttons: [[{ text: "x", value: `${value}b` }]] })).toMatchObject(
      [{ ok: false, evidence: "not_sent" }],
    );
  },
  async threads(channel) {
    const { sim, send, webhook, got } = setUp(channel);
    const topic = telegram.address(-1001, { thread: 7 });
    await send({ text: "in the topic" }, topic);
    expect(sim.screen(-1001, 7).map((message) => message.text)).toEqual(["in the topic"]);
    const update = sim.messageUpdate({ chatId: -1001, threadId: 7, text: "hi" });
    await sim.deliver(HOOK, "s", update, { fetch: webhook(() => true) });
    const [item] = got;
    if (item?.type !== "event") throw new Error("no event");
    expect(channel.chatKey(item.event.chat)).toBe("-1001:7");
    expect(channel.chatKey({ id: "-1001" })).toBe("-1001");
  },
  async edit(channel) {
    const { sim, send, io } = setUp(channel);
    await send({ text: "one" });
    // Twice: a repeat must be harmless.
    for (const _ of [1, 2]) {
      const message = { id: "1", address: ann };
      const result = await channel.outbound.edit?.(message, { format: "plain", text: "two" }, io);
      expect(result).toMatchObject({ ok: true });
    }
    expect(sim.screen(501)).toMatchObject([{ text: "two", edited: true }]);
  },
  async delete(channel) {
    const { sim, send, io } = setUp(channel);
    await send({ text: "one" });
    for (const _ of [1, 2]) {
      expect(await channel.outbound.delete?.({ id: "1", address: ann }, io)).toMatchObject({
        ok: true,
      });
    }
    expect(sim.screen(501)).toEqual([]);
  },
  async typing(channel) {
    const { sim, io } = setUp(channel);
    await channel.outbound.typing?.(ann, io);
    expect(sim.calls).toMatchObject([{ method: "sendChatAction", params: { action: "typing" } }]);
  },
  async reactions(channel) {
    const { sim, io } = setUp(channel);
    sim.messageUpdate({ chatId: 501, text: "hi", messageId: 4 });
    await channel.outbound.react?.({ id: "4", address: ann }, "🔥", io);
    expect(sim.screen(501)[0]?.reactions).toEqual(["🔥"]);
  },
  async finalizeInPlace(channel) {
    const { sim, send, render, io } = setUp(channel);
    await send({ text: "…" });
    const final = render({
      format: "markdown",
      text: "**done**",
      buttons: [[{ text: "ok", value: "1" }]],
    })[0]?.request;
    // The second is refused as "not modified", which is what was wanted.
    for (const _time of [1, 2]) {
      const result = await channel.outbound.revise?.({ id: "1", address: ann }, final ?? {}, io);
      expect(result).toEqual({ ok: true, receipt: { id: "1", kind: "text" } });
    }
    expect(sim.screen(501)).toMatchObject([{ text: "done", buttons: [[{ text: "ok" }]] }]);
    expect(sim.sent).toHaveLength(1);
    expect(sim.calls.at(-1)?.params.entities).toEqual([{ type: "bold", offset: 0, length: 4 }]);
    sim.fault({ type: "rateLimit", retryAfter: 3 });
    const limited = await channel.outbound.revise?.({ id: "1", address: ann }, final ?? {}, io);
    expect(limited).toMatchObject({
      kind: "rate_limit",
      evidence: "not_sent",
      retryAfterMs: 3_000,
    });
  },
  streaming(channel) {
    const { pacing, streaming } = channel.capabilities;
    // No more previews than messages are allowed, for as long as they last.
    expect(streaming?.everyMs).toBeGreaterThanOrEqual(pacing?.direct.perMs ?? Number.NaN);
    expect(streaming?.groupEveryMs).toBeGreaterThanOrEqual(pacing?.group?.perMs ?? Number.NaN);
  },
  async draft(channel) {
    const { sim, send, render, io } = setUp(channel);
    const show = (text: string, address: Address = ann) =>
      channel.outbound.draft?.(
        { id: "0123456789abcdef", address, request: render({ text }, address)[0]?.request ?? {} },
        io,
      );
    expect(await show("wri")).toMatchObject({ ok: true });
    expect(await show("writing")).toMatchObject({ ok: true });
    expect(sim.draft(501)).toBe("writing");
    expect(new Set(sim.calls.map(({ params }) => params.draft_id)).size).toBe(1);
    expect(sim.screen(501)).toEqual([]);
    await send({ text: "written" });
    expect(sim.draft(501)).toBeUndefined();
    // In groups there are none, and in a business chat it would show up in the wrong place.
    const group = await show("x", telegram.address(-100));
    expect(group).toMatchObject({ ok: false, evidence: "not_sent" });
    expect(await show("x", telegram.address(501, { thread: "business-1" }))).toMatchObject({
      kind: "unsupported_content",
    });
  },
  async blind(channel) {
    const { sim, send } = setUp(channel);
    sim.fault({ type: "acceptThenDrop" });
    expect(await send({ text: "x" })).toMatchObject([{ ok: false, evidence: "maybe_sent" }]);
    // Nothing tells that it arrived, and a repeat under the same marker is said twice.
    await send({ text: "x" });
    expect(sim.screen(501)).toHaveLength(2);
  },
  async selfTest(channel) {
    const { sim, io } = setUp(channel);
    expect(await channel.outbound.selfTest?.(io)).toBe(true);
    for (const fault of [{ type: "drop" }, { type: "5xx" }, { type: "torn" }] as const) {
      sim.fault(fault);
      expect(await channel.outbound.selfTest?.(io)).toBe(false);
    }
    expect(sim.sent).toEqual([]);
  },
  pacing({ capabilities: { pacing } }) {
    if (pacing === undefined) throw new Error("no pacing");
    // Telegram's FAQ: 20 a minute in a group, about 1 a second in a chat, about 30 a second in all.
    expect(inAMinute(pacing.group)).toBeLessThanOrEqual(20);
    expect(inAMinute(pacing.direct)).toBeLessThanOrEqual(60 + pacing.direct.burst);
    expect(pacing.perBot && 1_000 / pacing.perBot.perMs).toBeLessThanOrEqual(30);
    // A reply of a few parts goes out at once.
    expect(Math.min(pacing.direct.burst, pacing.group.burst)).toBeGreaterThanOrEqual(4);
  },
  async redelivery(channel) {
    const { sim, webhook, ids } = setUp(channel);
    let tries = 0;
    const update = sim.messageUpdate({ chatId: 501, text: "hi", updateId: 77 });
    const waits: number[] = [];
    const delivery = await sim.deliver(HOOK, "s", update, {
      fetch: webhook(() => {
        tries += 1;
        return tries === 3;
      }),
      wait: async (ms) => void waits.push(ms),
    });
    expect(delivery.delivered).toBe(true);
    expect(ids()).toEqual(["77", "77", "77"]);
    // The answer's own wait is honoured.
    expect(waits).toEqual([1_000, 1_000]);
  },
  async serialRedelivery(channel) {
    const { sim, webhook, ids } = setUp(channel);
    await sim.fetch(
      new Request(`https://api.telegram.org/bot${SIM_TOKEN}/setWebhook`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: HOOK, secret_token: "s" }),
      }),
    );
    sim.enqueue(sim.messageUpdate({ chatId: 501, text: "one", updateId: 1 }));
    sim.enqueue(sim.messageUpdate({ chatId: 501, text: "two", updateId: 2 }));
    let tries = 0;
    await sim.push({
      fetch: webhook(() => {
        tries += 1;
        return tries > 2;
      }),
    });
    expect(ids()).toEqual(["1", "1", "1", "2"]);
  },
  async journalFailure(channel) {
    const { journalFailure } = channel.capabilities;
    const response = channel.inbound.answer([], { committed: false });
    expect(response.status).toBe(journalFailure.status);
    expect(response.headers.get("retry-after")).toBe(String(journalFailure.retryAfterSeconds));
    // A day of 410 removes the webhook; success would lose the event.
    expect([200, 410]).not.toContain(response.status);
  },
  async dedupe(channel) {
    const { sim, webhook, ids } = setUp(channel);
    const first = sim.messageUpdate({ chatId: 501, text: "same" });
    const second = sim.messageUpdate({ chatId: 501, text: "same" });
    for (const update of [first, first, second]) {
      await sim.deliver(HOOK, "s", update, { fetch: webhook(() => true) });
    }
    const [a, again, b] = ids();
    expect(a).toBe(again);
    expect(a).not.toBe(b);
  },
  async polling(channel) {
    const { sim, io } = setUp(channel);
    sim.enqueue(sim.messageUpdate({ chatId: 501, text: "hi", updateId: 9 }));
    const context = { connection: "telegram", waitMs: 0, limit: 10 };
    const batch = await channel.polling?.poll(undefined, io, context);
    expect(batch).toMatchObject({
      ok: true,
      updates: [{ items: [{ type: "event", event: { id: "9", text: "hi" } }] }],
    });
    // Fetching confirms nothing: what was not committed comes again.
    expect(await channel.polling?.poll(undefined, io, context)).toEqual(batch);
    expect(sim.confirmed).toEqual([]);
    const cursor = batch?.ok === true ? batch.updates[0]?.cursor : undefined;
    expect(await channel.polling?.poll(cursor, io, context)).toEqual({ ok: true, updates: [] });
    expect(sim.confirmed).toEqual([9]);
  },
  async mediaReferences(channel) {
    const { sim, io, webhook, got } = setUp(channel);
    sim.addFile(new Uint8Array([7]), { fileId: "PIC" });
    const photo = [{ file_id: "PIC", file_unique_id: "U", width: 1, height: 1 }];
    const update = sim.messageUpdate({ chatId: 501, text: "", fields: { photo, caption: "me" } });
    await sim.deliver(HOOK, "s", update, { fetch: webhook(() => true) });
    const [item] = got;
    const ref = item?.type === "event" ? item.event.media?.[0] : undefined;
    if (channel.media === undefined || ref === undefined) throw new Error("no media");
    const stored = channel.media.serializeMediaRef(ref);
    if (stored === undefined) throw new Error("not kept");
    expect(JSON.stringify(stored)).not.toContain("SIM-token");
    const back = channel.media.rehydrateMediaRef(stored, { kind: ref.kind, ref: {} });
    expect(await channel.media.load(back, io, 10)).toEqual(new Uint8Array([7]));
    const foreign = { ...stored, provider: "slack" };
    expect(() => channel.media?.rehydrateMediaRef(foreign, ref)).toThrow(MediaUnavailableError);
  },
  async answerPress(channel) {
    const { sim, io } = setUp(channel);
    sim.callbackUpdate({ chatId: 501, messageId: 1, data: "x", pressId: "p" });
    await channel.outbound.answerPress?.("p", "got it", io);
    expect(sim.pressAnswers).toMatchObject([{ pressId: "p", text: "got it" }]);
  },
  async plain(channel) {
    const { sim, io, render } = setUp(channel);
    const [part] = render({ format: "markdown", text: "**a**" });
    if (part === undefined) throw new Error("no part");
    const description = "Bad Request: can't parse entities: unsupported";
    sim.fault({ type: "refuse", status: 400, description });
    const refused = await channel.outbound.send(part.request, io);
    expect(refused).toMatchObject({ ok: false, evidence: "not_sent", fallback: "plain" });
    await channel.outbound.send(channel.outbound.plain?.(part.request) ?? {}, io);
    expect(sim.sent).toMatchObject([{ text: "a" }]);
    expect(sim.sent[0]?.body).not.toHaveProperty("entities");
  },
  async readdress(channel) {
    const { sim, io, render } = setUp(channel);
    sim.migrate(-42, -1_042);
    const [part] = render({ text: "hi" }, telegram.address(-42));
    if (part === undefined) throw new Error("no part");
    const old = { ...io, address: telegram.address(-42) };
    const refused = await channel.outbound.send(part.request, old);
    if (refused.ok || refused.migratedTo === undefined) throw new Error("not moved");
    const moved = channel.outbound.readdress?.(part.request, refused.migratedTo) ?? {};
    await channel.outbound.send(moved, { ...io, address: refused.migratedTo });
    expect(sim.sent).toMatchObject([{ chatId: "-1042", text: "hi" }]);
  },
  async textOf(channel) {
    const { sim, send, render } = setUp(channel);
    const content: Partial<PlainContent> = { format: "markdown", text: "**a** b " };
    await send(content);
    const [part] = render(content);
    expect(channel.outbound.textOf?.(part?.request ?? {})).toBe(sim.sent[0]?.text);
  },
  async api(channel) {
    const { io, sim } = setUp(channel);
    expect(await channel.outbound.api?.("getMe", {}, io)).toMatchObject({ username: "sim_bot" });
    sim.fault({ type: "rateLimit", retryAfter: 2 });
    await expect(channel.outbound.api?.("getMe", {}, io)).rejects.toMatchObject({
      kind: "rate_limit",
      retryAfterMs: 2_000,
    });
  },
};

test("telegram() can do what it declares, and declares what it can do", async () => {
  const table = await verifyCapabilityProofs(telegram(), proofs);
  const missing = table.filter((row) => row.status === "not_declared").map((row) => row.capability);
  expect(missing).toEqual([
    "template",
    "keyed",
    "provable",
    "markerWindow",
    "reconcile",
    "statuses",
    "handshake",
    "prepare",
  ]);
});

test("the proofs are red on a channel that cannot", async () => {
  const platform = new MockPlatform({ now: () => NOW, setTimer: () => () => {} }, "blind");
  const fake = mockProvider({ platform, capabilities: telegram().capabilities });
  const { configure } = telegram();
  const impostor = { ...telegram(), outbound: fake.outbound, configure } as unknown as Telegram;
  const failed = await verifyCapabilityProofs(impostor, proofs).then(
    () => [],
    (error: { problems: string[] }) => error.problems.map((line) => line.split(":")[0]),
  );
  for (const name of ["text", "media", "edit", "delete", "typing", "threads", "blind"]) {
    expect(failed).toContain(name);
  }
});
