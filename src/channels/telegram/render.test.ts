import { describe, expect, test } from "vitest";
import type { PlainContent } from "../content.ts";
import { DeliveryError, UnsupportedContentError } from "../errors.ts";
import { telegramAddress } from "./address.ts";
import { render } from "./render.ts";
import { plain } from "./rework.ts";

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
