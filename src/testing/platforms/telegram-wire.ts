/**
 * Requests and answers of the simulated Bot API.
 *
 * @module
 */
import type { Params } from "./telegram-checks.ts";
import type { UploadedFile } from "./telegram-methods.ts";
import type { StoredMessage } from "./telegram-state.ts";

/** A message as somebody in the chat sees it now. */
export interface ScreenMessage {
  messageId: string;
  from: "bot" | "user";
  text: string;
  threadId?: string;
  edited: boolean;
  media?: string;
  buttons?: { text: string; data?: string; url?: string }[][];
  reactions: string[];
}

/** An error answer. */
export function refusal(
  status: number,
  description: string,
  parameters?: Record<string, unknown>,
): Response {
  const body = { ok: false, error_code: status, description, ...(parameters && { parameters }) };
  return Response.json(body, { status });
}

/** A stored message as it looks. */
export function screenOf(message: StoredMessage): ScreenMessage {
  const rows = (message.markup as { inline_keyboard?: Record<string, string>[][] } | undefined)
    ?.inline_keyboard;
  return {
    messageId: String(message.id),
    from: message.from === undefined ? "bot" : "user",
    text: message.text,
    ...(message.threadId === undefined ? {} : { threadId: String(message.threadId) }),
    edited: message.edited,
    ...(message.media === undefined ? {} : { media: message.media.field }),
    ...(rows === undefined ? {} : { buttons: rows.map((row) => row.map(buttonOf)) }),
    reactions: message.reactions,
  };
}

function buttonOf(button: Record<string, string>): { text: string; data?: string; url?: string } {
  const { text = "", callback_data, url } = button;
  return {
    text,
    ...(callback_data === undefined ? {} : { data: callback_data }),
    ...(url === undefined ? {} : { url }),
  };
}

/**
 * Reads parameters from wherever the Bot API takes them: query, JSON, or a form; `undefined` where they
 * cannot be read.
 */
export async function readParams(
  request: Request,
): Promise<{ params: Params; files: Map<string, UploadedFile> } | undefined> {
  const params: Params = {};
  const files = new Map<string, UploadedFile>();
  for (const [name, value] of new URL(request.url).searchParams)
    params[name] = decoded(name, value);
  const type = request.headers.get("content-type") ?? "";
  if (type.includes("application/json")) {
    try {
      Object.assign(params, await request.json());
    } catch {
      return undefined;
    }
  } else if (type.includes("form")) {
    const form = await request.formData();
    for (const [name, value] of form as unknown as Iterable<[string, string | File]>) {
      if (typeof value === "string") {
        params[name] = decoded(name, value);
        continue;
      }
      const bytes = new Uint8Array(await value.arrayBuffer());
      files.set(name, { bytes, filename: value.name, mimeType: value.type });
      params[name] = { filename: value.name, mimeType: value.type, size: bytes.byteLength };
    }
  }
  return { params, files };
}

/** Forms carry everything but text as JSON. */
function decoded(name: string, value: string): unknown {
  if (name === "text" || name === "caption") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
