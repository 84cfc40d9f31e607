/**
 * A bot behind the simulated Telegram, its chats and its connection in plain Node: the edge and polling
 * with virtual time, and a look into the connection.
 *
 * @module
 */
import { afterEach } from "vitest";
import { edgeOf } from "../../src/edge/app.ts";
import type { Log } from "../../src/host/Host.ts";
import { Bot, type DurabilityOptions, telegram } from "../../src/index.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { ConnectionBook } from "../../src/objects/ConnectionBook.ts";
import { chatActorName, connectionActorName } from "../../src/objects/names.ts";
import type { PollStatus } from "../../src/objects/Polling.ts";
import type { QuarantinePage } from "../../src/objects/QuarantineDesk.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { settle } from "../../src/testing/node/VirtualClock.ts";
import { SIM_TOKEN, SimTelegram, type SimUpdate } from "../../src/testing/platforms/telegram.ts";

/** The secret of the webhook. */
export const SECRET = "hook-secret";
/** Turns of the event loop that the simulated platform may need for one answer. */
const TURNS = 12;

const open = new Set<ConnectionLab>();
afterEach(() => {
  for (const one of open) one.runtime.close();
  open.clear();
});

/** What a lab is made of. */
export interface ConnectionCode {
  setup?: (bot: Bot) => void;
  env?: Record<string, unknown>;
  durability?: DurabilityOptions;
}

/** The bot and everything around it. */
export class ConnectionLab {
  readonly sim: SimTelegram;
  /** Answers in the platform's place where it returns something. */
  answer: (request: Request) => Response | undefined = () => undefined;
  readonly runtime: NodeRuntime;
  readonly bot: Bot;
  /** Lines of the log at `error` and `info`, with what they are about. */
  readonly logged: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  readonly connection: string;

  constructor(code: ConnectionCode = {}) {
    this.bot = new Bot({ id: "tg", channels: [telegram()], durability: code.durability });
    if (code.setup === undefined) this.bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
    else code.setup(this.bot);
    this.connection = connectionActorName(this.bot.scope, "telegram");
    const say = (level: string): Log["info"] => {
      return (message, fields = {}) => this.logged.push({ level, message, fields });
    };
    this.runtime = new NodeRuntime({
      env: {
        TELEGRAM_BOT_TOKEN: SIM_TOKEN,
        TELEGRAM_WEBHOOK_SECRET: SECRET,
        ...code.env,
      },
      log: { debug: () => {}, info: say("info"), warn: say("warn"), error: say("error") },
      make: (host, kind, name) => {
        if (kind === "Registry") return new RegistryBook(host);
        if (kind === "Connection") return new ConnectionBook(host, this.bot, name);
        return new Chat(host, this.bot, name);
      },
      fetch: async (request) => this.answer(request) ?? this.sim.fetch(request),
    });
    const { clock } = this.runtime;
    this.sim = new SimTelegram({
      now: () => clock.now(),
      setTimer: (ms, fn) => clock.setTimer(ms, fn),
    });
    open.add(this);
  }

  /** Calls the connection. */
  async call<T>(method: string, input: object = {}): Promise<T> {
    const answer = await this.runtime.call(
      "Connection",
      this.connection,
      method,
      JSON.stringify(input),
    );
    return JSON.parse(answer) as T;
  }

  status(): Promise<PollStatus> {
    return this.call("poll.status");
  }

  quarantine(): Promise<QuarantinePage> {
    return this.call("quarantine.list");
  }

  /** Somebody writes, and the update waits to be fetched. */
  write(chatId: number, text: string): SimUpdate {
    const update = this.sim.messageUpdate({ chatId, text });
    this.sim.enqueue(update);
    return update;
  }

  /** Asks the Worker's edge. */
  async fetch(request: Request): Promise<Response> {
    const app = edgeOf({
      bot: this.bot,
      actors: () => this.runtime,
      log: () => this.runtime.log,
      now: () => this.runtime.clock.now(),
      clock: this.runtime.clock,
    });
    return app.fetch(request, this.runtime.env);
  }

  /** Delivers an update to the webhook once, as the edge sees it. Resolves to the status. */
  async post(update: SimUpdate): Promise<number> {
    const request = new Request("https://bot.example/webhooks/telegram", {
      method: "POST",
      headers: { "x-telegram-bot-api-secret-token": SECRET },
      body: JSON.stringify(update),
    });
    return (await this.fetch(request)).status;
  }

  /** The name of a chat's actor. */
  actor(chatId: number): string {
    return chatActorName(this.bot.scope, "telegram", String(chatId));
  }

  /** What the bot said in a chat, in order. */
  said(chatId: number): string[] {
    return this.sim.sent.filter((one) => one.chatId === String(chatId)).map((one) => one.text);
  }

  /** Ids that a chat's inbox holds, in order. */
  admitted(chatId: number): string[] {
    const storage = this.runtime.storage("ChatActor", this.actor(chatId));
    const known = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'inbox'`, []);
    if (known.length === 0) return [];
    return storage
      .all<{ id: string }>(`SELECT id FROM inbox ORDER BY seq`, [])
      .map((row) => row.id);
  }

  /** Calls of a chat's actor fail from now on, until the returned function is called. */
  breakChat(chatId: number): () => void {
    const name = this.actor(chatId);
    const before = this.runtime.onCall;
    this.runtime.onCall = (kind, actor, method) => {
      if (actor === name) throw new Error("the chat is broken");
      before(kind, actor, method);
    };
    return () => {
      this.runtime.onCall = before;
    };
  }

  /**
   * Moves time on until `done`.
   * @throws after `ms`
   */
  async until(done: () => boolean, ms = 120_000): Promise<void> {
    const end = this.runtime.clock.now() + ms;
    for (;;) {
      // The simulated platform answers in turns of the event loop, not in virtual time.
      for (let turn = 0; turn < TURNS; turn += 1) await settle();
      if (done()) return;
      if (!this.runtime.clock.step(end)) throw new Error(`nothing came of it within ${ms} ms`);
    }
  }

  /** Lets `ms` pass. */
  async pass(ms: number): Promise<void> {
    const end = this.runtime.clock.now() + ms;
    for (;;) {
      for (let turn = 0; turn < TURNS; turn += 1) await settle();
      if (!this.runtime.clock.step(end)) break;
    }
    await this.runtime.clock.advance(end - this.runtime.clock.now());
  }

  /** How often a method of the platform was called. */
  calls(method: string): number {
    return this.sim.calls.filter((call) => call.method === method).length;
  }
}
