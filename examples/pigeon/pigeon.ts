/**
 * Pigeon post, a made-up platform: letters to lofts, signed webhooks, and an idempotency key that it
 * honours for a day. Read it with `docs/writing-a-channel.md`.
 */
import {
  type Address,
  type Capabilities,
  type Channel,
  type ChannelSendResult,
  type ErrorKind,
  type InboundItem,
  type JsonObject,
  type PlainContent,
  type RawRequest,
  type RenderedPart,
  type SendIo,
  splitText,
  UnsupportedContentError,
} from "holdfast";

/** What the channel's calls need; read from the environment. */
export interface PigeonConfig {
  /** Opens the API. */
  key: string;
  /** Signs the webhooks. */
  secret: string;
  apiBase: string;
}

const DAY_MS = 86_400_000;
/** The most characters of a letter. */
const TEXT_LIMIT = 500;

const capabilities: Capabilities = {
  text: { limit: TEXT_LIMIT, unit: "codepoints" },
  kinds: ["text"],
  buttonDataBytes: 0,
  threads: false,
  edit: false,
  delete: false,
  typing: false,
  reactions: false,
  finalizeInPlace: false,
  redelivery: {
    behaviour: "The whole batch again, every minute for an hour.",
    windowMs: 3_600_000,
  },
  deadlineMs: 5_000,
  journalFailure: { status: 503 },
  delivery: { class: "keyed", markerWindowMs: DAY_MS, afterWindow: "blind" },
  dedupe: "the letter's id",
};

/** Connects a pigeon loft. Reads `PIGEON_KEY`, `PIGEON_SECRET` and, for tests, `PIGEON_API_BASE`. */
export function pigeon(at: { connection?: string } = {}): Channel<PigeonConfig> {
  return {
    name: "pigeon",
    connection: at.connection ?? "pigeon",
    capabilities,
    configure(env) {
      const { PIGEON_KEY: key, PIGEON_SECRET: secret, PIGEON_API_BASE: base } = env;
      const apiBase = typeof base === "string" ? base : "https://api.pigeon.example";
      if (typeof key === "string" && typeof secret === "string") {
        return { ok: true, options: { key, secret, apiBase } };
      }
      const missing = ["PIGEON_KEY", "PIGEON_SECRET"].filter((name) => !env[name]);
      return { ok: false, missing };
    },
    chatKey: (chat) => chat.id,
    inbound: {
      maxBodyBytes: 100_000,
      verify,
      parse,
      answer: (_items, { committed }) =>
        new Response(null, { status: committed ? 204 : capabilities.journalFailure.status }),
    },
    outbound: { render, send },
  };
}

/** Where a letter goes. */
pigeon.address = (loft: string): Address => ({ channel: "pigeon", chat: loft });

/** `crypto.subtle.verify` compares in constant time. */
async function verify(request: RawRequest, { secret }: PigeonConfig): Promise<boolean> {
  const hex = request.headers.get("x-pigeon-signature") ?? "";
  if (!/^[0-9a-f]{64}$/.test(hex)) return false;
  const signature = Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = new TextEncoder().encode(secret);
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, signature, new Uint8Array(request.body));
}

/** One item per letter. A letter that makes no sense is an item too: refused, it would come for ever. */
function parse(request: RawRequest, context: { connection: string; now: number }): InboundItem[] {
  const body: unknown = JSON.parse(new TextDecoder().decode(request.body));
  const letters = (body as { letters?: unknown } | null)?.letters;
  if (!Array.isArray(letters)) throw new SyntaxError("not a batch of letters");
  return letters.map((letter: unknown) => {
    const { id, loft, from, text, sentAt } = Object(letter) as Record<string, unknown>;
    const chat = { id: String(loft ?? "unknown"), kind: "direct" as const };
    if (typeof id !== "string" || typeof loft !== "string" || typeof text !== "string") {
      const sample = JSON.stringify(letter).slice(0, 1_000);
      // The same letter must have the same id whenever it comes.
      const name = typeof id === "string" ? id : `bad:${sample.slice(0, 200)}`;
      return { type: "bad", id: name, chat, error: "a letter without id, loft or text", sample };
    }
    return {
      type: "event",
      event: {
        id,
        kind: "message",
        channel: "pigeon",
        connection: context.connection,
        chat,
        sender: { id: String(from ?? loft) },
        at: typeof sentAt === "number" ? sentAt : context.now,
        text,
        messageId: id,
      },
    };
  });
}

/** Pure: the same content always becomes the same parts, and no secret is in them. */
function render(content: PlainContent, { address }: { address: Address }): RenderedPart[] {
  const { text, format, ...rest } = content;
  const [more] = Object.keys(rest);
  if (text === undefined || format !== "plain" || more !== undefined) {
    throw new UnsupportedContentError(`a pigeon carries plain text, and no ${more ?? format}`);
  }
  return splitText(text, TEXT_LIMIT, "codepoints").map((part) => ({
    kind: "text",
    request: { loft: address.chat, text: part },
  }));
}

/** Statuses with which the platform says no: it has done nothing. */
const REFUSALS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid_payload",
  401: "auth",
  403: "permission",
  404: "not_found",
  410: "recipient_unreachable",
  413: "payload_too_large",
  429: "rate_limit",
};

/** One call, begun before the first `await`. What throws counts as "maybe sent", and so it is. */
async function send(request: JsonObject, io: SendIo<PigeonConfig>): Promise<ChannelSendResult> {
  const response = await io.fetch(
    `${io.options.apiBase}/lofts/${encodeURIComponent(String(request.loft))}/letters`,
    {
      method: "POST",
      // Followed, a redirect would carry the key to another host.
      redirect: "manual",
      signal: io.signal,
      headers: {
        authorization: `Bearer ${io.options.key}`,
        "content-type": "application/json",
        "idempotency-key": io.marker,
      },
      body: JSON.stringify({ text: request.text }),
    },
  );
  const { status } = response;
  const code = String(status);
  const kind = REFUSALS[status];
  if (kind !== undefined) {
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    const wait = seconds >= 0 ? { retryAfterMs: seconds * 1_000 } : {};
    const message = `pigeon post refused it with ${code}`;
    return { ok: false, kind, evidence: "not_sent", code, message, ...wait };
  }
  if (!response.ok) {
    // A server error, a redirect, something new: nobody knows.
    const message = `pigeon post answered ${code}`;
    return { ok: false, kind: "transient", evidence: "maybe_sent", code, message };
  }
  const { id } = (await response.json()) as { id?: unknown };
  if (typeof id === "string" && id !== "") return { ok: true, receipt: { id, kind: "text" } };
  const message = "pigeon post named no letter";
  return { ok: false, kind: "unknown", evidence: "maybe_sent", message };
}
