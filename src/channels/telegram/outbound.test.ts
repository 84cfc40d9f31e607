import { describe, expect, test } from "vitest";
import type { Actors } from "../../host/Host.ts";
import { type FaultEffect, SIM_TOKEN, SimTelegram } from "../../testing/platforms/telegram.ts";
import type { SendIo, SendResult } from "../channel.ts";
import type { JsonObject, PlainContent } from "../content.ts";
import { DeliveryError } from "../errors.ts";
import type { Address } from "../events.ts";
import { telegramAddress } from "./address.ts";
import type { TelegramConfig } from "./config.ts";
import { NO_MESSAGE_ID, outbound } from "./outbound.ts";

const address = telegramAddress(501);
const actors: Actors = { call: () => Promise.reject(new Error("no actors here")) };

function setUp(options: { signal?: AbortSignal; token?: string } = {}) {
  const sim = new SimTelegram({ now: () => 1_700_000_000_000 });
  const urls: string[] = [];
  const io: SendIo<TelegramConfig> = {
    options: {
      token: options.token ?? SIM_TOKEN,
      webhookSecret: "s",
      apiBase: "https://api.telegram.org",
    },
    fetch: (input, init) => {
      const request = new Request(input, init);
      urls.push(request.url);
      return sim.fetch(request);
    },
    signal: options.signal ?? new AbortController().signal,
    now: () => 1_700_000_000_000,
    actors,
    scope: "t/e/b/telegram",
    marker: "m",
    address,
  };
  const send = async (content: Partial<PlainContent>, to: Address = address) => {
    const results: SendResult[] = [];
    const full: PlainContent = { format: "plain", ...content };
    for (const part of outbound.render(full, { address: to, options: io.options })) {
      results.push(await outbound.send(part.request, { ...io, address: to }));
    }
    return results;
  };
  const one = async (content: Partial<PlainContent>) => {
    const [result, ...more] = await send(content);
    if (result === undefined || more.length > 0) throw new Error("not one part");
    return result;
  };
  return { sim, io, urls, send, one };
}

const RESULT = { ok: true, receipt: { id: "1", kind: "text" } };

describe("send", () => {
  test("sends and says what Telegram said", async () => {
    const { sim, one } = setUp();
    expect(await one({ text: "hi" })).toEqual(RESULT);
    expect(sim.sent).toMatchObject([{ messageId: "1", chatId: "501", text: "hi" }]);
  });

  test("a reply in a topic", async () => {
    const { sim, send } = setUp();
    const topic = telegramAddress(-1001, { thread: 7 });
    sim.messageUpdate({ chatId: -1001, threadId: 7, text: "q", messageId: 30 });
    expect(await send({ text: "a", replyTo: "30" }, topic)).toEqual([
      { ok: true, receipt: { id: "31", kind: "text", threadId: "7", replyToId: "30" } },
    ]);
    expect(sim.screen(-1001, 7).map((message) => message.text)).toEqual(["q", "a"]);
  });

  test("Telegram accepts what Markdown becomes", async () => {
    const { sim, send } = setUp();
    const markdown = `# Hi 👋\n\n- **a** [b](https://x.org)\n- \`c\`\n\n> *q* ~~s~~\n\n\`\`\`ts\n${"const x = '👍';\n".repeat(500)}\`\`\`\n\n|a|b|\n|-|-|\n|1|2|`;
    const results = await send({ format: "markdown", text: markdown });
    expect(results.length).toBeGreaterThan(1);
    for (const result of results) expect(result.ok).toBe(true);
    expect(sim.sent).toHaveLength(results.length);
  });

  test("uploads bytes as multipart, in the same one call", async () => {
    const { sim, one, urls } = setUp();
    const result = await one({
      text: "here",
      media: [
        { kind: "file", base64: btoa("%PDF"), filename: "a.pdf", mimeType: "application/pdf" },
      ],
      buttons: [[{ text: "ok", value: "1" }]],
    });
    expect(result).toEqual({ ok: true, receipt: { id: "1", kind: "media" } });
    expect(urls).toHaveLength(1);
    expect(sim.sent[0]).toMatchObject({
      method: "sendDocument",
      text: "here",
      body: {
        document: { filename: "a.pdf", mimeType: "application/pdf", size: 4 },
        reply_markup: { inline_keyboard: [[{ text: "ok", callback_data: "1" }]] },
      },
    });
  });

  test("a file that is not base64 is refused without a call", async () => {
    const { urls, one } = setUp();
    expect(await one({ media: [{ kind: "file", base64: "***" }] })).toMatchObject({
      ok: false,
      kind: "invalid_payload",
      evidence: "not_sent",
    });
    expect(urls).toHaveLength(0);
  });

  test("calls fetch once, before the first await, with text and with a file", () => {
    for (const content of [
      { text: "x" },
      { media: [{ kind: "image", base64: btoa("x") }] },
    ] as Partial<PlainContent>[]) {
      const { io } = setUp();
      let calls = 0;
      const [part] = outbound.render(
        { format: "plain", ...content },
        { address, options: io.options },
      );
      const counting = {
        ...io,
        fetch: () => {
          calls += 1;
          return new Promise<Response>(() => {});
        },
      };
      void outbound.send(part?.request ?? {}, counting);
      expect(calls).toBe(1);
    }
  });

  const LOST: FaultEffect[] = [
    { type: "5xx" },
    { type: "5xx", status: 500, description: "Internal Server Error: restart", accepted: true },
    { type: "drop" },
    { type: "acceptThenDrop" },
    { type: "torn" },
  ];
  test.each(LOST)("$type proves nothing", async (fault) => {
    const { sim, one } = setUp();
    sim.fault(fault);
    expect(await one({ text: "hi" })).toMatchObject({ ok: false, evidence: "maybe_sent" });
    // The fault is over.
    expect(await one({ text: "again" })).toMatchObject({ ok: true });
  });

  test("a call that hangs ends with the signal", async () => {
    const controller = new AbortController();
    const { sim, one } = setUp({ signal: controller.signal });
    sim.fault({ type: "hang", accepted: true });
    const result = one({ text: "hi" });
    controller.abort(new Error("timed out"));
    expect(await result).toMatchObject({
      ok: false,
      kind: "transient",
      evidence: "maybe_sent",
      message: "no answer to sendMessage: Error: timed out",
    });
    expect(sim.sent).toHaveLength(1);
  });

  test("a refusal is proof", async () => {
    const { sim, one } = setUp();
    sim.fault({ type: "rateLimit", retryAfter: 7 });
    expect(await one({ text: "hi" })).toMatchObject({
      kind: "rate_limit",
      evidence: "not_sent",
      retryAfterMs: 7_000,
    });
    sim.block(501);
    expect(await one({ text: "hi" })).toMatchObject({
      kind: "recipient_unreachable",
      evidence: "not_sent",
      code: "403",
    });
    expect(sim.sent).toHaveLength(0);
  });

  test("a moved group", async () => {
    const { sim, send } = setUp();
    sim.migrate(-42, -1_000_042);
    expect(await send({ text: "hi" }, telegramAddress(-42, { connection: "main" }))).toMatchObject([
      {
        kind: "conflict",
        migratedTo: { channel: "telegram", connection: "main", chat: "-1000042" },
      },
    ]);
  });

  test("a success that names no message is none", async () => {
    const { io } = setUp();
    const answers: [unknown, object][] = [
      [
        { ok: true, result: {} },
        { ok: false, kind: "unknown", evidence: "maybe_sent" },
      ],
      [{ ok: true }, { ok: false, evidence: "maybe_sent" }],
      [
        { ok: true, result: { message_id: "7" } },
        { ok: false, evidence: "maybe_sent" },
      ],
      ["<html>", { ok: false, evidence: "maybe_sent" }],
      // Scheduled by Telegram itself.
      [
        { ok: true, result: { message_id: 0 } },
        { ok: true, receipt: { id: NO_MESSAGE_ID } },
      ],
      [
        { ok: true, result: { message_id: 0, ephemeral_message_id: 4 } },
        { ok: true, receipt: { id: "e4" } },
      ],
    ];
    for (const [answer, expected] of answers) {
      const fetch = async () => Response.json(answer);
      const request: JsonObject = { method: "sendMessage", body: { chat_id: 1, text: "x" } };
      expect(await outbound.send(request, { ...io, fetch })).toMatchObject(expected);
    }
  });

  test("a message that was deleted at once was sent", async () => {
    const { sim, one } = setUp();
    const description = "Internal Server Error: sent message was immediately deleted";
    sim.fault({ type: "5xx", status: 500, description, accepted: true });
    expect(await one({ text: "hi" })).toEqual({
      ok: true,
      receipt: { id: NO_MESSAGE_ID, kind: "text" },
    });
  });

  test("a record that is none of ours is refused", async () => {
    const { io, urls } = setUp();
    expect(await outbound.send({ some: "thing" }, io)).toMatchObject({
      ok: false,
      kind: "invalid_payload",
      evidence: "not_sent",
    });
    expect(urls).toHaveLength(0);
  });

  test("the token is in the path and in no message", async () => {
    const { io, sim } = setUp();
    const url = `${io.options.apiBase}/bot${SIM_TOKEN}/sendMessage`;
    const request: JsonObject = { method: "sendMessage", body: { chat_id: 1, text: "x" } };
    const bad: (typeof io.fetch)[] = [
      () => Promise.reject(new TypeError(`fetch failed for ${url}`)),
      () => Promise.reject(new Error("failed", { cause: new Error(`connect ${url}`) })),
      () => {
        throw new Error(encodeURIComponent(url));
      },
      async () =>
        Response.json({ ok: false, error_code: 400, description: `no ${url}` }, { status: 400 }),
      async () => new Response(`<a href="${url}">moved</a>`, { status: 302 }),
    ];
    for (const fetch of bad) {
      const result = await outbound.send(request, { ...io, fetch });
      expect(result.ok).toBe(false);
      expect(JSON.stringify(result)).not.toContain("SIM-token");
    }
    expect(JSON.stringify([sim.sent, sim.calls])).not.toContain("SIM-token");
  });

  test("a wrong token is an auth error", async () => {
    const { one } = setUp({ token: "4200:wrong" });
    expect(await one({ text: "x" })).toMatchObject({ kind: "auth", evidence: "not_sent" });
  });
});

describe("edit, delete, react", () => {
  test("an edit may be repeated", async () => {
    const { sim, io, one } = setUp();
    await one({ text: "one", buttons: [[{ text: "b", value: "1" }]] });
    const message = { id: "1", address };
    const content: PlainContent = { format: "markdown", text: "**two**" };
    expect(await outbound.edit?.(message, content, io)).toEqual(RESULT);
    expect(await outbound.edit?.(message, content, io)).toEqual(RESULT);
    expect(sim.screen(501)).toMatchObject([{ text: "two", edited: true }]);
    expect(sim.screen(501)[0]).not.toHaveProperty("buttons");
    const buttons = [[{ text: "c", value: "2" }]];
    expect(await outbound.edit?.(message, { format: "plain", buttons }, io)).toEqual(RESULT);
    expect(sim.screen(501)).toMatchObject([{ text: "two", buttons: [[{ text: "c", data: "2" }]] }]);
  });

  test("an edit of media changes its caption", async () => {
    const { sim, io, one } = setUp();
    sim.addFile(new Uint8Array(3), { fileId: "P" });
    await one({ text: "one", media: [{ kind: "image", fileId: "P" }] });
    const message = { id: "1", address };
    expect(await outbound.edit?.(message, { format: "plain", text: "two" }, io)).toEqual(RESULT);
    expect(sim.screen(501)).toMatchObject([{ text: "two", media: "photo" }]);
  });

  test("an edit that cannot be", async () => {
    const { io } = setUp();
    const edit = (id: string, content: Partial<PlainContent>) =>
      outbound.edit?.({ id, address }, { format: "plain", ...content }, io);
    expect(await edit("9", { text: "x" })).toMatchObject({ kind: "not_found" });
    expect(await edit(NO_MESSAGE_ID, { text: "x" })).toMatchObject({ kind: "not_found" });
    expect(await edit("9", { text: "x".repeat(4_097) })).toMatchObject({
      kind: "payload_too_large",
    });
    expect(await edit("9", { media: [] })).toMatchObject({ kind: "unsupported_content" });
  });

  test("a delete may be repeated", async () => {
    const { sim, io, one } = setUp();
    await one({ text: "one" });
    expect(await outbound.delete?.({ id: "1", address }, io)).toEqual(RESULT);
    expect(await outbound.delete?.({ id: "1", address }, io)).toEqual(RESULT);
    expect(sim.screen(501)).toEqual([]);
    expect(sim.sent).toHaveLength(1);
  });

  test("reactions are set and taken away", async () => {
    const { sim, io } = setUp();
    sim.messageUpdate({ chatId: 501, text: "hi" });
    const message = { id: "1", address };
    expect(await outbound.react?.(message, "🔥", io)).toMatchObject({ ok: true });
    expect(sim.screen(501)[0]?.reactions).toEqual(["🔥"]);
    await outbound.react?.(message, "custom:77", io);
    expect(sim.screen(501)[0]?.reactions).toEqual(["77"]);
    await outbound.react?.(message, "", io);
    expect(sim.screen(501)[0]?.reactions).toEqual([]);
  });
});

describe("the rest", () => {
  test("the self test shows whether Telegram answers", async () => {
    const { sim, io } = setUp();
    expect(await outbound.selfTest?.(io)).toBe(true);
    for (const fault of [{ type: "drop" }, { type: "5xx" }, { type: "torn" }] as const) {
      sim.fault({ ...fault, method: "getMe" });
      expect(await outbound.selfTest?.(io)).toBe(false);
    }
  });

  test("typing never fails", async () => {
    const { sim, io } = setUp();
    await outbound.typing?.(address, io);
    sim.fault({ type: "drop" });
    await outbound.typing?.(address, io);
    await outbound.typing?.(telegramAddress(1, { thread: "guest" }), io);
    expect(sim.calls.map((call) => call.method)).toEqual(["sendChatAction"]);
  });

  test("presses are answered; too late is fine, wrong is not", async () => {
    const { sim, io } = setUp();
    sim.callbackUpdate({ chatId: 501, messageId: 1, data: "x", pressId: "p1" });
    await outbound.answerPress?.("p1", "x".repeat(300), io);
    await outbound.answerPress?.("p0", undefined, io);
    expect(sim.pressAnswers).toHaveLength(1);
    expect(sim.pressAnswers[0]?.text).toHaveLength(200);
    sim.fault({ type: "refuse", status: 401, description: "Unauthorized" });
    await expect(outbound.answerPress?.("p1", undefined, io)).rejects.toMatchObject({
      kind: "auth",
    });
  });

  test("raw calls", async () => {
    const { io } = setUp();
    expect(await outbound.api?.("getMe", {}, io)).toMatchObject({ username: "sim_bot" });
    await expect(outbound.api?.("../x", {}, io)).rejects.toThrow(TypeError);
    await expect(
      outbound.api?.("deleteMessage", { chat_id: 1, message_id: 2 }, io),
    ).rejects.toBeInstanceOf(DeliveryError);
  });
});
