/**
 * One call of the Bot API. The token is in the path of the URL, so neither the URL nor an error that
 * may quote it leaves this module unredacted.
 *
 * @module
 */
import type { ChannelIo } from "../channel.ts";
import type { JsonObject } from "../content.ts";
import type { TelegramConfig } from "./config.ts";

/** A file that goes out with a call, as multipart. */
export interface Upload {
  /** The field of the method: `photo`, `document` … */
  field: string;
  base64: string;
  filename: string;
  mimeType?: string;
}

/** What came of a call. Only `refused` proves that Telegram did nothing. */
export type Reply =
  | { outcome: "ok"; result: unknown }
  | {
      /** The body says `ok: false`. */
      outcome: "refused";
      status: number;
      description: string;
      parameters: { migrate_to_chat_id?: unknown; retry_after?: unknown };
      retryAfterHeader: string | null;
    }
  | {
      /** No answer, or none that can be read. */
      outcome: "lost";
      status?: number;
      message: string;
      retryAfterHeader: string | null;
    };

/** The part of {@link ChannelIo} that a call needs. */
export type CallIo = Pick<ChannelIo<TelegramConfig>, "options" | "fetch" | "signal">;

/**
 * Calls a method. `fetch` runs before the first `await`, as the output gate demands; never throws.
 */
export async function call(
  io: CallIo,
  method: string,
  body: JsonObject,
  upload?: Upload,
): Promise<Reply> {
  const { token } = io.options;
  const content = encode(body, upload);
  if (content === undefined) return refusedHere("invalid file: not base64");
  let response: Response;
  try {
    response = await io.fetch(methodUrl(io.options, method), {
      method: "POST",
      // Telegram never redirects; followed, a redirect would carry the token to another host.
      redirect: "manual",
      signal: io.signal,
      ...content,
    });
  } catch (error) {
    const message = `no answer to ${method}: ${reasonOf(error, token)}`;
    return { outcome: "lost", message, retryAfterHeader: null };
  }
  const { status } = response;
  const retryAfterHeader = response.headers.get("retry-after");
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    const message = `the answer to ${method} broke off: ${reasonOf(error, token)}`;
    return { outcome: "lost", status, message, retryAfterHeader };
  }
  const answer = parseAnswer(text);
  if (answer === undefined) {
    const message = `the answer to ${method} (HTTP ${status}) is not Telegram's`;
    return { outcome: "lost", status, message, retryAfterHeader };
  }
  if (answer.ok === true) return { outcome: "ok", result: answer.result };
  return {
    outcome: "refused",
    status: typeof answer.error_code === "number" ? answer.error_code : status,
    description: redact(String(answer.description ?? ""), token).slice(0, 500),
    parameters: isRecord(answer.parameters) ? answer.parameters : {},
    retryAfterHeader,
  };
}

/**
 * Replaces the token wherever a text quotes it: as it is, percent-encoded (once or more, in whole or in
 * part), and its secret half alone.
 */
export function redact(text: string, token: string): string {
  const secret = token.slice(token.indexOf(":") + 1);
  let clean = text;
  if (token !== "") clean = clean.replace(anyEncodingOf(token), "<token>");
  // A short secret is a test's; it would blank out ordinary words.
  if (secret.length >= 8) clean = clean.replace(anyEncodingOf(secret), "<token>");
  return clean.replace(/\/bot\d+(?::|%(?:25)*3a)[^/\s"']+/gi, "/bot<token>");
}

function anyEncodingOf(text: string): RegExp {
  const characters = [...text].map((character) => {
    const hex = (character.codePointAt(0) ?? 0).toString(16).padStart(2, "0");
    const itself = character.replace(/[^A-Za-z0-9]/, "\\$&");
    const encoded = hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
    return `(?:${itself}|%(?:25)*${encoded})`;
  });
  return new RegExp(characters.join(""), "g");
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function methodUrl(options: TelegramConfig, method: string): string {
  return `${options.apiBase}/bot${options.token}/${method}`;
}

function parseAnswer(text: string): Record<string, unknown> | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return isRecord(answer) && typeof answer.ok === "boolean" ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** A refusal that Telegram need not be asked for. */
function refusedHere(reason: string): Reply {
  const description = `Bad Request: ${reason}`;
  return { outcome: "refused", status: 400, description, parameters: {}, retryAfterHeader: null };
}

/** The body as JSON, or as multipart where a file goes along; `undefined` for a file that is none. */
function encode(body: JsonObject, upload: Upload | undefined): RequestInit | undefined {
  if (upload === undefined) {
    return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  }
  const bytes = bytesOf(upload.base64);
  if (bytes === undefined) return undefined;
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) {
    form.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const type = upload.mimeType ?? "application/octet-stream";
  form.set(upload.field, new File([bytes], upload.filename, { type }));
  return { body: form };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** What an error says, without the token; errors of fetch quote the address that they failed on. */
export function reasonOf(error: unknown, token: string): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const text = `${String(error)}${cause === "" ? "" : `: ${cause}`}`;
  // Cut first, half a token could be left that no search finds.
  return redact(text, token).slice(0, 300);
}
