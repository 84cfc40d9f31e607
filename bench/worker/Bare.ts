/**
 * What Holdfast is measured against: the least that a careful author would write by hand. It compares the
 * secret, parses the update, and keeps it in one table with a unique id; where asked, it answers with
 * one call. No retries, no turns, no record of what was said.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import type { BenchEnv } from "./env.ts";

/** A Durable Object that does one insert, and one call where asked. */
export class Bare extends DurableObject<BenchEnv> {
  constructor(ctx: DurableObjectState, env: BenchEnv) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        payload TEXT NOT NULL) STRICT`,
    );
  }

  /** Keeps an update. Returns whether it was new. */
  insert(id: string, payload: string): boolean {
    const { sql } = this.ctx.storage;
    const query = `INSERT INTO log (id, payload) VALUES (?, ?) ON CONFLICT DO NOTHING`;
    return sql.exec(query, id, payload).rowsWritten > 0;
  }

  /** Keeps an update and answers it; resolves once it is kept. */
  answer(id: string, payload: string, chatId: number, text: string): void {
    if (this.insert(id, payload)) this.ctx.waitUntil(this.#send(chatId, `you said: ${text}`));
  }

  /** Keeps an update and leaves the answer to an alarm, `inMs` from now. */
  answerLater(id: string, payload: string, inMs: number): void {
    this.insert(id, payload);
    void this.ctx.storage.setAlarm(Date.now() + inMs);
  }

  override async alarm(): Promise<void> {
    const query = `SELECT payload FROM log ORDER BY seq DESC LIMIT 1`;
    const [row] = this.ctx.storage.sql.exec<{ payload: string }>(query).toArray();
    if (row === undefined) return;
    const { message } = JSON.parse(row.payload) as Update;
    await this.#send(message.chat.id, `you said: ${message.text}`);
  }

  async #send(chatId: number, text: string): Promise<void> {
    const { TELEGRAM_API_BASE: base, TELEGRAM_BOT_TOKEN: token } = this.env;
    const response = await fetch(`${base}/bot${token}/sendMessage`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ chat_id: chatId, text }),
    });
    await response.json();
  }
}

interface Update {
  update_id: number;
  message: { chat: { id: number }; text: string };
}

/** The Worker in front of it: `/bare/insert`, `/bare/answer`, `/bare/later?ms=`. */
export async function bareFetch(request: Request, env: BenchEnv): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const given = request.headers.get("x-telegram-bot-api-secret-token") ?? "";
  if (!same(given, env.TELEGRAM_WEBHOOK_SECRET)) return new Response(null, { status: 401 });
  const body = await request.text();
  const update = JSON.parse(body) as Update;
  const { chat, text } = update.message;
  const object = env.BARE.getByName(String(chat.id));
  const id = String(update.update_id);
  if (pathname === "/bare/insert") await object.insert(id, body);
  else if (pathname === "/bare/answer") await object.answer(id, body, chat.id, text);
  else await object.answerLater(id, body, Number(searchParams.get("ms")));
  return new Response(null, { status: 200 });
}

const encoder = new TextEncoder();

function same(given: string, secret: string): boolean {
  const [a, b] = [encoder.encode(given), encoder.encode(secret)];
  return a.byteLength === b.byteLength && crypto.subtle.timingSafeEqual(a, b);
}
