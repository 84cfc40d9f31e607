import { describe, expect, test } from "vitest";
import { chatActorName } from "../../objects/names.ts";
import type { SendIo } from "../channel.ts";
import type { PlainContent } from "../content.ts";
import { ConfigError } from "../errors.ts";
import type { GateState } from "../served.ts";
import type { WebChatConfig } from "./config.ts";
import { gate, MAX_FRAME_BYTES, WINDOW_MS } from "./gate.ts";
import { webchat } from "./index.ts";
import { messagesOf, render } from "./render.ts";

const text = (value: string): PlainContent => ({ format: "plain", text: value });

describe("the channel", () => {
  test("needs no secrets", () => {
    expect(webchat().configure({})).toEqual({
      ok: true,
      options: { title: "Chat", allowedOrigins: [] },
    });
  });

  test("has addresses that may be stored", () => {
    expect(webchat.address("s1")).toEqual({ channel: "webchat", chat: "s1" });
    expect(webchat.address("s1", { connection: "shop" })).toEqual({
      channel: "webchat",
      connection: "shop",
      chat: "s1",
    });
  });

  test.each(["example.com", "null", "", "about:blank"])("%j is no origin", (origin) => {
    expect(() => webchat({ allowedOrigins: [origin] })).toThrow(ConfigError);
  });

  test("origins lose what is no part of them", () => {
    const configured = webchat({ allowedOrigins: ["https://www.example.com/path"] }).configure({});
    expect(configured).toMatchObject({
      options: { allowedOrigins: ["https://www.example.com"] },
    });
  });

  test("takes nothing by webhook", async () => {
    const { inbound } = webchat();
    const request = {
      method: "POST",
      url: "https://x/webhooks/webchat",
      headers: new Headers(),
      body: new Uint8Array(),
    };
    expect(await inbound.verify(request, { title: "", allowedOrigins: [] })).toBe(false);
  });
});

describe("render", () => {
  test("plain text stays as it is, markup and all", () => {
    expect(render(text("**a** <b>"))).toEqual([{ kind: "text", request: { text: "**a** <b>" } }]);
  });

  test("markdown becomes text and spans", () => {
    const [message] = messagesOf({
      format: "markdown",
      text: "see [it](https://example.com) **now**",
    });
    expect(message).toEqual({
      text: "see it now",
      spans: [
        { start: 4, end: 6, type: "link", url: "https://example.com" },
        { start: 7, end: 10, type: "bold" },
      ],
    });
  });

  test("an address that is none of the web is written out, not linked", () => {
    const [message] = messagesOf({ format: "markdown", text: "[click](javascript:alert(1))" });
    expect(message).toEqual({ text: "click (javascript:alert(1))" });
  });

  test("long text is split; what belongs to one end goes to that end", () => {
    const messages = messagesOf({
      format: "plain",
      text: `${"a".repeat(15_990)}\n\n${"b".repeat(100)}`,
      media: [{ kind: "image", url: "https://example.com/a.png" }],
      buttons: [[{ text: "Yes", value: "y" }]],
      replyTo: "m1",
      silent: true,
    });
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject({ replyTo: "m1", media: [{ kind: "image" }], silent: true });
    expect(messages[0]).not.toHaveProperty("buttons");
    expect(messages[1]).toEqual({
      text: "b".repeat(100),
      buttons: [[{ text: "Yes", value: "y" }]],
      silent: true,
    });
  });

  test("code points are what counts", () => {
    expect(messagesOf(text("😀".repeat(16_000)))).toHaveLength(1);
    expect(messagesOf(text("😀".repeat(16_001)))).toHaveLength(2);
  });

  test("media has an https address, a name and a caption", () => {
    const [part] = render({
      format: "markdown",
      media: [
        { kind: "file", url: "https://example.com/a.pdf", filename: "a.pdf", caption: "*new*" },
      ],
    });
    expect(part).toEqual({
      kind: "media",
      request: {
        media: [
          {
            kind: "file",
            url: "https://example.com/a.pdf",
            name: "a.pdf",
            caption: { text: "new", spans: [{ start: 0, end: 3, type: "italic" }] },
          },
        ],
      },
    });
  });

  test.each<[string, PlainContent, string]>([
    [
      "bytes",
      { format: "plain", media: [{ kind: "image", base64: "AA==" }] },
      "unsupported_content",
    ],
    [
      "media over http",
      { format: "plain", media: [{ kind: "image", url: "http://example.com/a.png" }] },
      "unsupported_content",
    ],
    [
      "media by data",
      { format: "plain", media: [{ kind: "image", url: "data:image/png,x" }] },
      "unsupported_content",
    ],
    ["a template", { format: "plain", template: { name: "t" } }, "unsupported_content"],
    ["native fields", { ...text("a"), native: { x: 1 } }, "unsupported_content"],
    [
      "a button to a script",
      { ...text("a"), buttons: [[{ text: "x", url: "javascript:alert(1)" }]] },
      "invalid_payload",
    ],
    ["nothing", text(" \n"), "invalid_payload"],
  ])("%s is refused", (_name, content, kind) => {
    expect(() => render(content)).toThrow(expect.objectContaining({ kind }));
  });
});

describe("outbound", () => {
  const scope = "t/e/shop/webchat";

  function io(answer: (call: string[]) => string | Error) {
    const calls: string[][] = [];
    const made: SendIo<WebChatConfig> = {
      options: { title: "", allowedOrigins: [] },
      fetch: () => Promise.reject(new Error("no")),
      signal: new AbortController().signal,
      now: () => 0,
      actors: {
        async call(...call) {
          calls.push(call);
          const said = answer(call);
          if (said instanceof Error) throw said;
          return said;
        },
      },
      scope,
      marker: "m1",
      address: webchat.address("a/b"),
    };
    return { io: made, calls };
  }

  const { outbound } = webchat();
  const ok = () => `{"ok":true,"id":"m1","seq":7}`;

  test("a send is one call to the room, whose name is the chat actor's", async () => {
    const { io: at, calls } = io(ok);
    const result = outbound.send({ text: "hi", replyTo: "c1" }, at);
    // Before the first await: the output gate holds the call until the mark is on disk.
    expect(calls).toHaveLength(1);
    expect(await result).toEqual({
      ok: true,
      receipt: { id: "m1", kind: "text", replyToId: "c1" },
    });
    const name = chatActorName({ tenant: "t", environment: "e", bot: "shop" }, "webchat", "a/b");
    expect(calls[0]).toEqual([
      "WebChat",
      name,
      "deliver",
      `{"marker":"m1","message":{"text":"hi","replyTo":"c1"}}`,
    ]);
  });

  test("a refusal of the room has sent nothing", async () => {
    const { io: at } = io(() => `{"ok":false,"kind":"payload_too_large","message":"too much"}`);
    expect(await outbound.send({ text: "hi" }, at)).toEqual({
      ok: false,
      kind: "payload_too_large",
      evidence: "not_sent",
      message: "too much",
    });
  });

  test("a broken call, or an answer that is none, throws: nobody knows", async () => {
    await expect(outbound.send({ text: "hi" }, io(() => new Error("reset")).io)).rejects.toThrow();
    for (const answer of ["", "null", "{}", `{"ok":1}`]) {
      await expect(outbound.send({ text: "hi" }, io(() => answer).io)).rejects.toThrow();
    }
  });

  test("an edit must fit one message", async () => {
    const { io: at, calls } = io(ok);
    const target = { id: "m1", address: at.address };
    expect(await outbound.edit?.(target, text("x".repeat(16_001)), at)).toMatchObject({
      ok: false,
      kind: "payload_too_large",
    });
    expect(calls).toHaveLength(0);
    expect(await outbound.edit?.(target, text("x"), at)).toMatchObject({ ok: true });
    expect(calls[0]?.[2]).toBe("edit");
  });

  test("deleting what is gone is done", async () => {
    const { io: at } = io(() => `{"ok":false,"kind":"not_found","message":"no such message"}`);
    const target = { id: "m1", address: at.address };
    expect(await outbound.delete?.(target, at)).toMatchObject({ ok: true });
    expect(await outbound.edit?.(target, text("x"), at)).toMatchObject({
      ok: false,
      kind: "not_found",
    });
  });
});

describe("the gate", () => {
  const pass = (state: GateState, frame: string, now: number) => {
    const admission = gate.admit(state, frame, now);
    if (!admission.ok) throw new Error(String(admission.close.code));
    return admission.state;
  };

  test("twenty frames in ten seconds, then 4429", () => {
    let state = gate.open(0);
    for (let i = 0; i < 20; i += 1) state = pass(state, "{}", i);
    expect(gate.admit(state, "{}", 9_999)).toMatchObject({ ok: false, close: { code: 4429 } });
    expect(pass(state, "{}", WINDOW_MS)).toMatchObject({ n: 1, from: WINDOW_MS });
  });

  test("64 KB of bytes, not of characters, then 4413", () => {
    const state = gate.open(0);
    expect(gate.admit(state, "x".repeat(MAX_FRAME_BYTES), 0).ok).toBe(true);
    expect(gate.admit(state, "x".repeat(MAX_FRAME_BYTES + 1), 0)).toMatchObject({
      close: { code: 4413 },
    });
    expect(gate.admit(state, "界".repeat(MAX_FRAME_BYTES / 2), 0)).toMatchObject({
      close: { code: 4413 },
    });
  });

  test("bytes are no frame", () => {
    expect(gate.admit(gate.open(0), new ArrayBuffer(1), 0)).toMatchObject({
      close: { code: 4400 },
    });
  });

  test("an attachment survives as it was; anything else is a new socket", () => {
    const state = { ...gate.open(5), n: 3, greeted: true };
    expect(gate.read(structuredClone(state), 99)).toEqual(state);
    expect(gate.read(null, 99)).toEqual(gate.open(99));
    expect(gate.read("x", 99)).toEqual(gate.open(99));
  });
});
