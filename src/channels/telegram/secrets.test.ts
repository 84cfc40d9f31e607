/** The token is in the path of every call. Whatever fails, it must be in nothing that anyone reads. */
import { describe, expect, test } from "vitest";
import type { ChannelIo, SendIo } from "../channel.ts";
import { telegramAddress } from "./address.ts";
import { redact } from "./call.ts";
import type { TelegramConfig } from "./config.ts";
import { telegramMedia } from "./media.ts";
import { outbound } from "./outbound.ts";
import { polling } from "./polling.ts";

const TOKEN = "987654321:AAF-secret_Half-0123456789abcdefghi";
const SECRET = "AAF-secret_Half-0123456789abcdefghi";
const address = telegramAddress(501);
const message = { id: "7", address };

/** Every way that a test knows to write the token down. */
const SPELLINGS: Record<string, (text: string) => string> = {
  plain: (text) => text,
  encoded: (text) => encodeURIComponent(text),
  "encoded twice": (text) => encodeURIComponent(encodeURIComponent(text)),
  "encoded in lower case": (text) => encodeURIComponent(text).replace("%3A", "%3a"),
  "encoded to the last character": (text) =>
    [...text].map((one) => `%${one.charCodeAt(0).toString(16)}`).join(""),
  "encoded to the last character, twice": (text) =>
    [...text].map((one) => `%25${one.charCodeAt(0).toString(16)}`).join(""),
  "without the bot's id": (text) => text.replace(TOKEN, SECRET),
};

/** Any stretch of the secret half that a reader could use, once encodings are undone. */
function leaks(text: string): boolean {
  let plain = text;
  for (let i = 0; i < 3; i += 1) {
    plain = plain.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
  for (let at = 0; at + 8 <= SECRET.length; at += 1) {
    if (plain.includes(SECRET.slice(at, at + 8))) return true;
  }
  return false;
}

/** What `fetch` may do instead of answering; `url` has the token in one spelling. */
const FAILURES: Record<string, (url: string) => Promise<Response>> = {
  "throws with the address": (url) => Promise.reject(new TypeError(`fetch failed: ${url}`)),
  "throws with the address cut by a limit": (url) =>
    Promise.reject(new TypeError(`${"x".repeat(240)} ${url}`)),
  "throws with a cause": (url) =>
    Promise.reject(new Error("failed", { cause: new Error(`connect ${url}`) })),
  "throws text": (url) => Promise.reject(`no route to ${url}`),
  "throws at once": (url) => {
    throw new TypeError(`Invalid URL: ${url}`);
  },
  "refuses with it": async (url) =>
    Response.json(
      { ok: false, error_code: 400, description: `Bad Request: ${url}` },
      { status: 400 },
    ),
  "refuses as unauthorized": async (url) =>
    Response.json({ ok: false, error_code: 401, description: url }, { status: 401 }),
  "limits with it": async (url) =>
    Response.json({ ok: false, error_code: 429, description: url }, { status: 429 }),
  "answers with a page": async (url) => new Response(`<a href="${url}">`, { status: 502 }),
  redirects: async (url) => new Response(null, { status: 302, headers: { location: url } }),
  "breaks off": async (url) =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.error(new Error(`reset while reading ${url}`));
        },
      }),
    ),
};

function ioOf(fail: (url: string) => Promise<Response>, spell: (text: string) => string) {
  const io: SendIo<TelegramConfig> = {
    options: { token: TOKEN, webhookSecret: "s", apiBase: "https://api.telegram.org" },
    fetch: (input) => fail(spell(String(input))),
    signal: new AbortController().signal,
    now: () => 0,
    actors: { call: () => Promise.reject(new Error("none")) },
    scope: "t/e/b/telegram",
    marker: "m",
    address,
  };
  return io;
}

type Io = SendIo<TelegramConfig>;
/** Every call that this channel makes. */
const CALLS: Record<string, (io: Io) => Promise<unknown> | undefined> = {
  send: (io) => outbound.send({ method: "sendMessage", body: { chat_id: 1, text: "x" } }, io),
  upload: (io) =>
    outbound.send(
      {
        method: "sendPhoto",
        body: { chat_id: 1 },
        upload: { field: "photo", base64: btoa("x"), filename: "a.jpg" },
      },
      io,
    ),
  edit: (io) => outbound.edit?.(message, { format: "plain", text: "x" }, io),
  "edit of buttons": (io) => outbound.edit?.(message, { format: "plain", buttons: [] }, io),
  delete: (io) => outbound.delete?.(message, io),
  react: (io) => outbound.react?.(message, "👍", io),
  typing: (io) => outbound.typing?.(address, io),
  "self test": (io) => outbound.selfTest?.(io),
  "answer of a press": (io) => outbound.answerPress?.("p", "x", io),
  api: (io) => outbound.api?.("getChat", { chat_id: 1 }, io),
  polling: (io) => polling.poll(undefined, io, { connection: "telegram", waitMs: 0, limit: 1 }),
  "polling's question who it is": (io) => polling.account(io),
  getFile: (io) => download(io),
  download: (io) =>
    download({
      ...io,
      fetch: (input) =>
        String(input).endsWith("/getFile")
          ? Promise.resolve(Response.json({ ok: true, result: { file_path: "files/x" } }))
          : io.fetch(input),
    }),
};

function download(io: ChannelIo<TelegramConfig>) {
  return telegramMedia([]).load({ kind: "file", ref: { fileId: "F" } }, io, 100);
}

/** Everything that a caller could write into a log: the value, or the error with all that hangs on it. */
async function told(run: () => Promise<unknown> | undefined): Promise<string> {
  try {
    return JSON.stringify(await run()) ?? "";
  } catch (error) {
    const seen: string[] = [];
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      seen.push(at.message, at.stack ?? "", JSON.stringify(at));
    }
    return seen.length === 0 ? String(error) : seen.join("\n");
  }
}

describe.each(Object.entries(CALLS))("%s", (_name, run) => {
  test.each(Object.entries(FAILURES))("when Telegram %s", async (_failure, fail) => {
    for (const [spelling, spell] of Object.entries(SPELLINGS)) {
      const said = await told(() => run(ioOf(fail, spell)));
      expect(leaks(said), `${spelling}: ${said}`).toBe(false);
    }
  });
});

test("raw calls fail with a type: kind, code, and whether to try again", async () => {
  const refuse = (status: number, description: string) => async () =>
    Response.json({ ok: false, error_code: status, description, parameters: {} }, { status });
  const api = (fail: () => Promise<Response>) => outbound.api?.("getChat", {}, ioOf(fail, String));
  await expect(api(refuse(400, "Bad Request: chat not found"))).rejects.toMatchObject({
    name: "DeliveryError",
    code: "delivery_failed",
    kind: "not_found",
    retryable: false,
    message: "getChat: Bad Request: chat not found",
  });
  await expect(api(refuse(429, "Too Many Requests: retry after 4"))).rejects.toMatchObject({
    name: "RateLimitedError",
    code: "rate_limited",
    retryable: true,
    retryAfterMs: 4_000,
  });
  await expect(api(refuse(403, "Forbidden: bot was blocked by the user"))).rejects.toMatchObject({
    name: "RecipientUnreachableError",
    kind: "recipient_unreachable",
  });
  await expect(api(() => Promise.reject(new Error("reset")))).rejects.toMatchObject({
    kind: "transient",
    retryable: true,
  });
});

test("what is no token stays", () => {
  expect(redact("bot was blocked at 4200 of 1:2", "1:a")).toBe("bot was blocked at 4200 of 1:2");
  expect(redact("https://x/bot1:a/getMe", "1:a")).toBe("https://x/bot<token>/getMe");
  // Another bot's token, in an address of the API.
  expect(redact("https://x/bot77:other/getMe", "1:a")).toBe("https://x/bot<token>/getMe");
  expect(redact("", "")).toBe("");
});
