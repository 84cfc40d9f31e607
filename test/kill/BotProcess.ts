/**
 * A bot in a process that can be killed, with the platform and the ledger in the test's own process:
 * what they saw outlives every kill.
 *
 * @module
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Listening, listen } from "../../src/testing/platforms/serve.ts";
import { SimTelegram, type SimUpdate } from "../../src/testing/platforms/telegram.ts";
import { WorkerdProcess } from "./WorkerdProcess.ts";

const SECRET = "hook-secret";
/** The longest that a delivery is tried, in ms. */
const DELIVERY_MS = 40_000;

/** What the bot announced of a send that may have happened. */
export interface Ambiguity {
  key: string;
  chatId: string;
  cause: string;
  action: string;
  at: number;
}

/** How the bot is set up. */
export interface BotSetup {
  leaseMs?: number;
  afterCrash?: "skip" | "resend-once" | "resend";
  /** Whether the objects are bound under the names that the runtime looks for. Default true. */
  bound?: boolean;
  /** Further variables of the Worker. */
  vars?: Record<string, string>;
  /** Called for each request to the platform's API, before and after it did its work. */
  network?: { before?: () => Promise<void>; after?: () => Promise<void> };
}

/** What the Worker says of a chat. */
export interface Look {
  open: string[];
  count: number;
}

/** The bot, its platform and its ledger. */
export class BotProcess {
  readonly sim = new SimTelegram();
  /** What the bot told, in order. */
  readonly ambiguous: Ambiguity[] = [];
  readonly dead: { id: string; error: string }[] = [];
  readonly starts: { id: string; attempt: number }[] = [];
  readonly steps: string[] = [];
  /** Inbox ids of slow handlers that were reached, and whether they are kept waiting. */
  readonly slow: string[] = [];
  holdsSlow = false;
  readonly #setup: BotSetup;
  #server: Listening | undefined;
  #directory: string | undefined;
  #workerd: WorkerdProcess | undefined;

  constructor(setup: BotSetup = {}) {
    this.#setup = setup;
  }

  get workerd(): WorkerdProcess {
    if (this.#workerd === undefined) throw new Error("not started");
    return this.#workerd;
  }

  async start(): Promise<void> {
    this.#server = await listen((request) => this.#answer(request));
    this.#directory = await mkdtemp(join(tmpdir(), "holdfast-kill-"));
    const classes = ["ChatActor", "Connection", "Registry"];
    const bindings = ["CHAT_ACTOR", "CONNECTION", "REGISTRY"];
    this.#workerd = new WorkerdProcess({
      entry: join(import.meta.dirname, "bot.ts"),
      directory: this.#directory,
      namespaces: classes.map((className, at) => ({
        bindingName: this.#setup.bound === false ? `UNKNOWN_${at}` : (bindings[at] ?? className),
        className,
        uniqueKey: className,
      })),
      vars: {
        TELEGRAM_BOT_TOKEN: this.sim.token,
        TELEGRAM_WEBHOOK_SECRET: SECRET,
        TELEGRAM_API_BASE: this.#server.url,
        LEDGER: `${this.#server.url}/ledger`,
        LEASE_MS: String(this.#setup.leaseMs ?? 2_000),
        AFTER_CRASH: this.#setup.afterCrash ?? "skip",
        ...this.#setup.vars,
      },
    });
    await this.#workerd.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#workerd?.stop();
    await this.#server?.close();
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  /** Delivers once. @throws when the Worker does not answer, as while it is down */
  async deliver(update: SimUpdate): Promise<number> {
    const response = await fetch(`${this.workerd.url}/webhooks/telegram`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-telegram-bot-api-secret-token": SECRET,
      },
      body: JSON.stringify(update),
      signal: AbortSignal.timeout(5_000),
    });
    await response.arrayBuffer();
    return response.status;
  }

  /** Delivers until it is told that the update arrived, as the platform does. Resolves to the number of tries. */
  async deliverSurely(update: SimUpdate): Promise<number> {
    const deadline = Date.now() + DELIVERY_MS;
    for (let tries = 1; ; tries += 1) {
      const status = await this.deliver(update).catch(() => 0);
      if (status >= 200 && status < 300) return tries;
      if (Date.now() > deadline) throw new Error(`update ${update.update_id} is not taken`);
      await delay(25);
    }
  }

  /** Somebody writes; resolves to the inbox id once the Worker took it. */
  async say(chatId: number, text: string): Promise<string> {
    const update = this.sim.messageUpdate({ chatId, text });
    await this.deliverSurely(update);
    return String(update.update_id);
  }

  /** Texts that the platform accepted in a chat, in order. */
  said(chatId: number): string[] {
    return this.sim.sent
      .filter((message) => message.chatId === String(chatId))
      .map((message) => message.text);
  }

  /** What the Worker says of a chat. Traffic: only when a test no longer needs silence. */
  async look(chatId: number): Promise<Look> {
    return (await this.#get(`/look?chat=${chatId}`)) as Look;
  }

  /** The record of a send. */
  async record(chatId: number, key: string): Promise<{ state: string } | null> {
    const query = new URLSearchParams({ chat: String(chatId), key });
    return (await this.#get(`/look?${query}`)) as { state: string } | null;
  }

  /** Waits until nothing is open in a chat. */
  async settles(chatId: number, timeoutMs = 5_000): Promise<Look> {
    let last: Look | undefined;
    return until(async () => {
      last = await this.look(chatId);
      return last.open.length === 0 ? last : undefined;
    }, timeoutMs).catch(() => {
      throw new Error(`chat ${chatId} does not settle: ${last?.open.join(", ")}`);
    });
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(`${this.workerd.url}${path}`, {
      signal: AbortSignal.timeout(5_000),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.json();
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/ledger/")) return this.#note(pathname.slice(8), request);
    await this.#setup.network?.before?.();
    const response = await this.sim.fetch(request);
    await this.#setup.network?.after?.();
    return response;
  }

  async #note(what: string, request: Request): Promise<Response> {
    const about = (await request.json()) as Record<string, unknown> & { id: string };
    switch (what) {
      case "ambiguous":
        this.ambiguous.push({ ...(about as unknown as Omit<Ambiguity, "at">), at: Date.now() });
        break;
      case "dead":
        this.dead.push({ id: about.id, error: String(about.error) });
        break;
      case "start":
        this.starts.push({ id: about.id, attempt: Number(about.attempt) });
        break;
      case "step":
        this.steps.push(about.id);
        break;
      case "slow":
        this.slow.push(about.id);
        if (this.holdsSlow) await aborted(request.signal);
        break;
      default:
        return new Response(null, { status: 404 });
    }
    return new Response(null, { status: 204 });
  }
}

/** Resolves when the caller is gone. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    signal.addEventListener("abort", () => done(), { once: true });
  });
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
    await delay(5);
  }
}
