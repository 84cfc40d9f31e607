/**
 * What the tests of this folder share: a simulated Telegram behind the global `fetch`, chats that
 * nobody used before, and ways to look into an object.
 *
 * @module
 */
/// <reference types="@cloudflare/vitest-plugin/types" />
import { runInDurableObject } from "cloudflare:test";
import { exports, env as workerEnv } from "cloudflare:workers";
import { beforeEach, onTestFailed, vi } from "vitest";
import {
  type SentMessage,
  SimTelegram,
  type SimUpdate,
} from "../../src/testing/platforms/telegram.ts";
import { gates, starts, type TestEnv } from "./bots.ts";
import { type Meter, meterOf, peek } from "./meter.ts";
import type { ClientAnswer, ClientCall } from "./worker.ts";

export const env = workerEnv as unknown as TestEnv;

/** The default export of `worker.ts`, through the runtime. */
const worker = (exports as unknown as { default: Fetcher }).default;

/** The platform. */
export const sim = new SimTelegram();
/** How long its network takes to bring a call, in ms. */
export const network = { latencyMs: 0 };
vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
  const request = new Request(input, init);
  if (new URL(request.url).origin !== env.TELEGRAM_API_BASE)
    throw new Error(`a call to ${request.url}, which no test expects`);
  if (network.latencyMs > 0) await scheduler.wait(network.latencyMs);
  return sim.fetch(request);
});

/** What the runtime logged in this test: shown when the test fails, noise when it does not. */
const logged: string[] = [];
for (const level of ["info", "warn", "error"] as const) {
  vi.spyOn(console, level).mockImplementation((...parts: unknown[]) => {
    logged.push(`${level}: ${parts.map(String).join(" ")}`);
  });
}
beforeEach(() => {
  logged.length = 0;
  onTestFailed(() => console.log(logged.slice(-50).join("\n")));
});

/** Which of the two bots. */
export type BotName = "plain" | "quick";

/** A record in a list. */
export interface Row {
  ref: string;
  id: string;
  key?: string;
  address: string;
  state: string;
  kind: string;
  error?: string;
}

/** A page of a list. */
export interface Listing {
  rows: Row[];
  cursor?: string;
}

let lastChat = 5_000;

/** A chat that nobody used before. */
export class TestChat {
  readonly id: number;
  readonly bot: BotName;
  readonly connection: string;
  /** Its webhook. */
  readonly path: string;

  constructor(bot: BotName = "plain", connection = "telegram") {
    lastChat += 1;
    this.id = lastChat;
    this.bot = bot;
    this.connection = connection;
    const hook = connection === "telegram" ? "telegram" : `telegram/${connection}`;
    this.path = `${bot === "quick" ? "/quick" : ""}/webhooks/${hook}`;
  }

  /** The name of its actor. */
  get name(): string {
    return `main/production/${this.bot}/${this.connection}/${this.id}`;
  }

  /** As the client takes it. */
  get address(): string {
    return `telegram/${this.connection}/${this.id}`;
  }

  get namespace(): DurableObjectNamespace {
    return this.bot === "quick" ? env.QUICK_ACTOR : env.CHAT_ACTOR;
  }

  get stub(): DurableObjectStub {
    return this.namespace.getByName(this.name);
  }

  get meter(): Meter {
    return meterOf(this.name);
  }

  /** An update in which somebody writes `text`. */
  update(text: string): SimUpdate {
    return sim.messageUpdate({ chatId: this.id, text });
  }

  /** Delivers an update once. */
  async deliver(update: SimUpdate, secret = env.TELEGRAM_WEBHOOK_SECRET): Promise<Response> {
    const response = await post(this.path, JSON.stringify(update), {
      "x-telegram-bot-api-secret-token": secret,
    });
    await response.arrayBuffer();
    return response;
  }

  /** Somebody writes, and the platform is told that it arrived. Resolves to the inbox id. */
  async say(text: string): Promise<string> {
    const update = this.update(text);
    const { status } = await this.deliver(update);
    if (status !== 200) throw new Error(`the webhook answered ${status}`);
    return String(update.update_id);
  }

  /** What the platform accepted for this chat, in order. */
  get sent(): SentMessage[] {
    return sim.sent.filter((message) => message.chatId === String(this.id));
  }

  /** The texts of {@link sent}. */
  get replies(): string[] {
    return this.sent.map((message) => message.text);
  }

  /** Waits for texts that the platform accepts, in this order, and no others. */
  async receives(texts: readonly string[], timeoutMs = 5_000): Promise<void> {
    await until(() => this.replies.length >= texts.length || undefined, timeoutMs).catch(() => {});
    if (JSON.stringify(this.replies) !== JSON.stringify(texts)) {
      throw new Error(
        `chat ${this.id} got ${JSON.stringify(this.replies)}, not ${JSON.stringify(texts)}`,
      );
    }
  }

  /** Rows of a query in the object's own database; none where it has no tables. */
  rows<T extends Record<string, SqlStorageValue>>(query: string): Promise<T[]> {
    return runInDurableObject(this.stub, (_object, { storage }) => {
      const made = peek(storage.sql, "SELECT 1 AS x FROM sqlite_master WHERE name = 'outbox'");
      return made.toArray().length === 0 ? [] : peek<T>(storage.sql, query).toArray();
    });
  }

  /** Runs a statement in the object's database, behind the runtime's back. */
  async sabotage(statement: string): Promise<void> {
    await runInDurableObject(this.stub, (_object, { storage }) => {
      peek(storage.sql, statement);
    });
  }

  /** When its alarm is set for. */
  alarm(): Promise<number | null> {
    return runInDurableObject(this.stub, (_object, { storage }) => storage.getAlarm());
  }

  /** Records that are not finished, as `box state`. */
  async open(): Promise<string[]> {
    const rows = await this.rows<{ what: string }>(
      `SELECT 'inbox ' || state AS what FROM inbox WHERE open = 1
       UNION ALL SELECT 'outbox ' || state FROM outbox
         WHERE state IN ('pending', 'sending', 'failed') OR due_at IS NOT NULL OR owed <> 0`,
    );
    return rows.map((row) => row.what);
  }

  /** The user blocks the bot: sends are refused for good, until the returned function is called. */
  refuses(): () => void {
    return sim.fault(({ method, params }) =>
      method === "sendMessage" && params.chat_id === this.id
        ? { type: "refuse", status: 403, description: "Forbidden: bot was blocked by the user" }
        : undefined,
    );
  }

  /** Waits until nothing is open. */
  async settles(timeoutMs = 5_000): Promise<void> {
    let last: string[] = [];
    await until(async () => {
      last = await this.open();
      return last.length === 0 || undefined;
    }, timeoutMs).catch(() => {
      throw new Error(`chat ${this.id} does not settle: ${last.join(", ")}`);
    });
  }

  /** Waits until all turns are over and this many sends are still to come. */
  async settledButFor(sends: number): Promise<void> {
    await until(async () => {
      const open = await this.open();
      const same = open.length === sends && open.every((one) => one.startsWith("outbox"));
      return same || undefined;
    });
  }

  /** The object dies where it stands, with everything that is not on disk. */
  async dies(): Promise<void> {
    const { stub } = this;
    await runInDurableObject(stub, (_object, state) => {
      state.abort("killed by the test");
    }).catch(() => {});
  }

  /** Asks the bot's own route to use the client. @throws what the client threw, as its parts */
  async client<T = unknown>(
    method: ClientCall["method"],
    call: Partial<ClientCall> = {},
  ): Promise<T> {
    const answer = await this.ask(method, call);
    if ("error" in answer) throw new Error(`${answer.error.name}: ${answer.error.message}`);
    return answer.value as T;
  }

  /** The same, with errors as values. */
  async ask(method: ClientCall["method"], call: Partial<ClientCall> = {}): Promise<ClientAnswer> {
    const path = this.bot === "quick" ? "/quick/client" : "/client";
    const response = await post(path, JSON.stringify({ address: this.address, ...call, method }));
    return (await response.json()) as ClientAnswer;
  }
}

/** Posts to the Worker. */
export function post(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
): Promise<Response> {
  return worker.fetch(
    new Request(`https://bot.test${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
    }),
  );
}

/**
 * Waits for `look` to find something, looking often.
 * @throws after `timeoutMs`
 */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 5_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`nothing came of it within ${timeoutMs} ms`);
    await scheduler.wait(5);
  }
}

let lastGate = 0;

/** A gate for slow handlers; opened at the end of a failed test too, so that no handler is left waiting. */
export function gate(): {
  name: string;
  open(): void;
  waiting(): number;
  reached(count?: number): Promise<void>;
} {
  lastGate += 1;
  const name = `gate-${lastGate}`;
  const open = () => {
    gates.open.add(name);
  };
  onTestFailed(open);
  const waiting = () => gates.waiting.get(name) ?? 0;
  const reached = async (count = 1) => {
    await until(() => waiting() >= count || undefined);
  };
  return { name, open, waiting, reached };
}

/** How often the turn of an event started. */
export function startsOf(id: string): number {
  return starts.filter((one) => one.id === id).length;
}
