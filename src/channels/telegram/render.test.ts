import { describe, expect, test } from "vitest";
import type { PlainContent } from "../content.ts";
import { DeliveryError, PayloadTooLargeError, UnsupportedContentError } from "../errors.ts";
import { telegramAddress } from "./address.ts";
import { render } from "./render.ts";
import { plain, readdress, textOf } from "./rework.ts";

const address = telegramAddress(501);

/** The requests that content becomes. */
function requests(content: Partial<PlainContent>, refused: { format?: "plain" } = {}) {
  return render({ format: "plain", ...content }, { address }).map((part) => {
    const request = refused.format === "plain" ? plain(part.request) : part.request;
    const { method, body, upload } = request as {
      method: string;
      body: object;
      upload?: object;
    };
    return upload === undefined
      ? { kind: part.kind, method, ...body }
      : { kind: part.kind, method, upload, ...body };
  });
}
const text = (value: string, more: object = {}) => ({
  kind: "text",
  method: "sendMessage",
  chat_id: 501,
  text: value,
  ...more,
});

describe("text", () => {
  test("plain text goes as it is", () => {
    expect(requests({ text: "2 * 3 _ok_" })).toEqual([text("2 * 3 _ok_")]);
  });

  test("Markdown becomes entities, in UTF-16 units", () => {
    expect(
      requests({ format: "markdown", text: "👍 **b** `c` [l](https://x.org)\n\n> q" }),
    ).toEqual([
      text("👍 b c l\n\nq", {
        entities: [
          { type: "bold", offset: 3, length: 1 },
          { type: "code", offset: 5, length: 1 },
          { type: "text_link", offset: 7, length: 1, url: "https://x.org" },
          { type: "blockquote", offset: 10, length: 1 },
        ],
      }),
    ]);
    expect(requests({ format: "markdown", text: "~~s~~\n\n```py\nx\n```" })).toEqual([
      text("s\n\nx", {
        entities: [
          { type: "strikethrough", offset: 0, length: 1 },
          { type: "pre", offset: 3, length: 1, language: "py" },
        ],
      }),
    ]);
  });

  test("links that Telegram would refuse are written out", () => {
    const [part] = requests({ format: "markdown", text: "[a](http://localhost:8787) [b](/c)" });
    expect(part).toEqual(text("a (http://localhost:8787) b (/c)"));
  });

  test("the fallback keeps the words and drops their formatting", () => {
    expect(requests({ format: "markdown", text: "**b** _i_" }, { format: "plain" })).toEqual([
      text("b i"),
    ]);
  });

  test("splits at 4,096 code points, and code goes on as code", () => {
    expect(requests({ text: "😀".repeat(4_096) })).toHaveLength(1);
    const long = requests({ text: `${"word ".repeat(1_500)}end` });
    expect(long).toHaveLength(2);
    const code = requests({
      format: "markdown",
      text: `\`\`\`js\n${"let a;\n".repeat(900)}\`\`\``,
    });
    expect(code).toHaveLength(2);
    for (const part of code) {
      expect(part).toMatchObject({ entities: [{ type: "pre", offset: 0, language: "js" }] });
    }
  });

  test("an empty message is refused before anything is sent", () => {
    for (const content of [{}, { text: "" }, { text: " \n " }, { buttons: [] }]) {
      expect(() => requests(content)).toThrow(DeliveryError);
    }
  });
});

describe("targets", () => {
  const to = (target: ReturnType<typeof telegramAddress>) =>
    (render({ format: "plain", text: "x" }, { address: target })[0]?.request.body ?? {}) as object;

  test("chats, topics, direct messages of channels, business chats", () => {
    expect(to(telegramAddress("@news"))).toEqual({ chat_id: "@news", text: "x" });
    expect(to(telegramAddress(-100, { thread: 7 }))).toEqual({
      chat_id: -100,
      message_thread_id: 7,
      text: "x",
    });
    // The General topic is meant when no topic is named.
    expect(to(telegramAddress(-100, { thread: 1 }))).toEqual({ chat_id: -100, text: "x" });
    expect(to(telegramAddress(-100, { thread: "dm-9" }))).toMatchObject({
      direct_messages_topic_id: 9,
    });
    expect(to(telegramAddress(5, { thread: "business-a-b" }))).toMatchObject({
      business_connection_id: "a-b",
    });
    expect(() => to(telegramAddress(5, { thread: "guest" }))).toThrow(UnsupportedContentError);
  });

  test("what is no topic is refused: without one the message would land in General", () => {
    for (const thread of ["x", "7x", "-7", "dm-x", "1.5"]) {
      expect(() => to(telegramAddress(-100, { thread })), thread).toThrow(DeliveryError);
    }
  });

  test("a moved chat keeps nothing of the old place", () => {
    const [part] = render(
      { format: "plain", text: "x", replyTo: "9" },
      { address: telegramAddress(-42, { thread: 7 }) },
    );
    expect(readdress(part?.request ?? {}, telegramAddress(-1_001))).toEqual({
      method: "sendMessage",
      body: {
        chat_id: -1_001,
        text: "x",
        reply_parameters: { message_id: 9, allow_sending_without_reply: true },
      },
    });
  });
});

describe("buttons, replies, silence", () => {
  test("the first part replies, the last has the buttons, all are silent", () => {
    const parts = requests({
      text: "word ".repeat(1_500),
      replyTo: "9",
      silent: true,
      buttons: [
        [
          { text: "Yes", value: "a:1" },
          { text: "Site", url: "https://x.org" },
        ],
      ],
    });
    expect(parts).toHaveLength(2);
    expect(parts[0]).toMatchObject({
      disable_notification: true,
      reply_parameters: { message_id: 9, allow_sending_without_reply: true },
    });
    expect(parts[0]).not.toHaveProperty("reply_markup");
    expect(parts[1]).toMatchObject({
      disable_notification: true,
      reply_markup: {
        inline_keyboard: [
          [
            { text: "Yes", callback_data: "a:1" },
            { text: "Site", url: "https://x.org" },
          ],
        ],
      },
    });
    expect(parts[1]).not.toHaveProperty("reply_parameters");
  });

  test("an answer to what is no message is refused before anything is sent", () => {
    for (const replyTo of ["x", "", "1e9x", "null"]) {
      expect(() => requests({ text: "x", replyTo }), replyTo).toThrow(DeliveryError);
    }
  });

  test("a reply to an ephemeral message", () => {
    expect(requests({ text: "x", replyTo: "e8" })[0]).toMatchObject({
      reply_parameters: { ephemeral_message_id: 8 },
    });
  });
});

describe("media", () => {
  test("by url, by file id, by bytes", () => {
    expect(
      requests({
        media: [
          { kind: "image", url: "https://x.org/a.jpg" },
          { kind: "audio", fileId: "A1" },
          { kind: "video", base64: "AAEC", mimeType: "video/mp4" },
          { kind: "file", base64: "AAEC", filename: "bill.pdf", mimeType: "application/pdf" },
        ],
      }),
    ).toEqual([
      { kind: "media", method: "sendPhoto", chat_id: 501, photo: "https://x.org/a.jpg" },
      { kind: "media", method: "sendAudio", chat_id: 501, audio: "A1" },
      {
        kind: "media",
        method: "sendVideo",
        chat_id: 501,
        upload: { field: "video", base64: "AAEC", filename: "video.mp4", mimeType: "video/mp4" },
      },
      {
        kind: "media",
        method: "sendDocument",
        chat_id: 501,
        upload: {
          field: "document",
          base64: "AAEC",
          filename: "bill.pdf",
          mimeType: "application/pdf",
        },
      },
    ]);
    expect(() => requests({ media: [{ kind: "file" }] })).toThrow(DeliveryError);
  });

  test("the text of a single file is its caption, formatted, with the buttons", () => {
    expect(
      requests({
        format: "markdown",
        text: "a **cat**",
        media: [{ kind: "image", fileId: "P" }],
        buttons: [[{ text: "ok", value: "1" }]],
      }),
    ).toEqual([
      {
        kind: "media",
        method: "sendPhoto",
        chat_id: 501,
        photo: "P",
        caption: "a cat",
        caption_entities: [{ type: "bold", offset: 2, length: 3 }],
        reply_markup: { inline_keyboard: [[{ text: "ok", callback_data: "1" }]] },
      },
    ]);
  });

  test("a caption over 1,024 characters follows as text", () => {
    const image = { kind: "image", fileId: "P" } as const;
    const fits = requests({ text: "😀".repeat(1_024), media: [image] });
    expect(fits).toHaveLength(1);
    const long = "x".repeat(1_025);
    for (const content of [
      { text: long, media: [image] },
      { media: [{ ...image, caption: long }] },
    ]) {
      const parts = requests(content);
      expect(parts.map((part) => part.kind)).toEqual(["media", "text"]);
      expect(parts[0]).not.toHaveProperty("caption");
      expect(parts[1]).toMatchObject({ text: long });
    }
  });

  test("files over Telegram's limits are refused, with what would go", () => {
    const bytes = (count: number) => "A".repeat(Math.ceil(count / 3) * 4);
    const send = (kind: "image" | "file", count: number) =>
      requests({ media: [{ kind, base64: bytes(count) }] });
    const MB = 2 ** 20;
    expect(send("image", 10 * MB)).toHaveLength(1);
    expect(() => send("image", 10 * MB + 9)).toThrow(PayloadTooLargeError);
    expect(() => send("image", 10 * MB + 9)).toThrow('as kind "file" it may have 50 MB');
    expect(send("file", 50 * MB)).toHaveLength(1);
    expect(() => send("file", 50 * MB + 9)).toThrow(PayloadTooLargeError);
  });

  test("an address is an address and a file id a file id: neither opens a server's own files", () => {
    const image = { kind: "image" } as const;
    for (const item of [
      { ...image, url: "file:///etc/passwd" },
      { ...image, url: "/etc/passwd" },
      { ...image, url: "data:image/png;base64,AA" },
      { ...image, url: "attach://x" },
      { ...image, fileId: "file:///etc/passwd" },
      { ...image, fileId: "https://x.org/a.jpg" },
      { ...image, fileId: "" },
    ]) {
      expect(() => requests({ media: [item] }), JSON.stringify(item)).toThrow(DeliveryError);
    }
  });

  test("several files, each its part, then the text", () => {
    const parts = requests({
      text: "both",
      media: [
        { kind: "image", fileId: "A", caption: "one" },
        { kind: "image", fileId: "B" },
      ],
    });
    expect(parts).toMatchObject([{ photo: "A", caption: "one" }, { photo: "B" }, { text: "both" }]);
  });
});

describe("native", () => {
  test("passes through, but does not move or change the message", () => {
    expect(
      requests({
        text: "x",
        native: { protect_content: true, chat_id: 1, text: "y", parse_mode: "HTML" },
      }),
    ).toEqual([text("x", { protect_content: true, parse_mode: "HTML" })]);
    expect(
      requests({ format: "markdown", text: "**x**", native: { parse_mode: "HTML" } })[0],
    ).not.toHaveProperty("parse_mode");
    expect(requests({ text: "<b>x", native: { parse_mode: "HTML" } }, { format: "plain" })).toEqual(
      [text("<b>x")],
    );
  });

  test("keyboards go last, effects first", () => {
    const parts = requests({
      text: "word ".repeat(1_500),
      native: {
        reply_markup: { force_reply: true },
        message_effect_id: "1",
        protect_content: true,
      },
    });
    expect(parts[0]).toMatchObject({ message_effect_id: "1", protect_content: true });
    expect(parts[0]).not.toHaveProperty("reply_markup");
    expect(parts[1]).toMatchObject({ reply_markup: { force_reply: true }, protect_content: true });
    expect(parts[1]).not.toHaveProperty("message_effect_id");
  });
});

test("templates are no kind of Telegram's", () => {
  expect(() => requests({ template: { name: "welcome" } })).toThrow(UnsupportedContentError);
});

describe("what a request says", () => {
  const said = (content: Partial<PlainContent>) =>
    render({ format: "plain", ...content }, { address }).map((part) => textOf(part.request));

  test("is its text or caption, as people read it", () => {
    expect(said({ format: "markdown", text: "**a** [b](https://x.org)" })).toEqual(["a b"]);
    expect(said({ text: " a \n" })).toEqual(["a"]);
    expect(said({ text: "cat", media: [{ kind: "image", fileId: "P" }] })).toEqual(["cat"]);
    expect(said({ media: [{ kind: "image", fileId: "P" }] })).toEqual([undefined]);
    expect(said({ text: "word ".repeat(1_500) })).toHaveLength(2);
  });

  test("is unknown where a parse mode changes it", () => {
    expect(said({ text: "<b>a</b>", native: { parse_mode: "HTML" } })).toEqual([undefined]);
    expect(textOf({})).toBeUndefined();
  });
});
