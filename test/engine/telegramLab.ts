/**
 * A bot on Telegram as it is: the edge, the channel and the simulated Bot API, over actors with virtual
 * time. What `lab` is for a mock platform.
 *
 * @module
 */
import { afterEach } from "vitest";
import { edgeOf } from "../../src/edge/app.ts";
import type { Log, LogFields } from "../../src/host/Host.ts";
import { Bot, type BotOptions, telegram } from "../../src/index.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { ConnectionBook } from "../../src/objects/ConnectionBook.ts";
import { chatActorName } from "../../src/objects/names.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { SIM_TOKEN, SimTelegram } from "../../src/testing/platforms/telegram.ts";
import type { SimUpdate } from "../../src/testing/platforms/telegram-updates.ts";
import { busyUntil } from "../../src/testing/quiet.ts";
import { ActorClient } from "../../src/turns/ActorClient.ts";

export const SECRET = "a-webhook-secret";
const HOOK = "https://bot.example/webhooks/telegram";

const open = new Set<TelegramLab>();
afterEach(() => {
  for (const one of open) one.runtime.close();
  open.clear();
});

/** A bot under test on simulated Telegram. */
export class TelegramLab {
  readonly sim: SimTelegram;
  readonly runtime: NodeRuntime;
  readonly bot: Bot;
  /** Every log line, at every level. */
  readonly logs: string[] = [];
  readonly notes: unknown[] = [];
  readonly #edge: ReturnType<typeof edgeOf>;
  readonly #env = { TELEGRAM_BOT_TOKEN: SIM_TOKEN, TELEGRAM_WEBHOOK_SECRET: SECRET };

  constructor(setup: (bot: Bot, lab: TelegramLab) => void, options: Partial<BotOptions> = {}) {
    this.bot = new Bot({ id: "tg", channels: [telegram()], ...options });
    setup(this.bot, this);
    const say = (level: string) => (message: string, fields?: LogFields) => {
      this.logs.push(JSON.stringify({ level, message, ...fields }));
    };
    const log: Log = {
      debug: say("debug"),
      info: say("info"),
      warn: say("warn"),
      error: say("error"),
    };
    this.runtime = new NodeRuntime({
      env: this.#env,
      log,
      fetch: (request) => this.sim.fetch(request),
      make: (host, kind, name) => {
        if (kind === "Registry") return new RegistryBook(host);
        if (kind === "Connection") return new ConnectionBook(host, this.bot, name);
        return new Chat(host, this.bot, name);
      },
    });
    this.sim = new SimTelegram({ now: () => this.runtime.clock.now() });
    this.#edge = edgeOf({
      bot: this.bot,
      actors: () => this.runtime,
      log: () => log,
      now: () => this.runtime.clock.now(),
    });
    open.add(this);
  }

  /** Delivers updates as Telegram does: each again until it is answered with success. */
  async deliver(...updates: SimUpdate[]): Promise<void> {
    for (const update of updates) {
      for (let tries = 0; ; tries += 1) {
        const answer = await this.post(update);
        if (answer === 200) break;
        if (tries === 8) throw new Error(`never admitted: ${answer}`);
        await this.runtime.advance(1_000);
      }
    }
  }

  /** Delivers an update once; resolves to the status of the answer. */
  async post(update: SimUpdate, secret = SECRET): Promise<number> {
    const request = new Request(HOOK, {
      method: "POST",
      headers: { "x-telegram-bot-api-secret-token": secret },
      body: JSON.stringify(update),
    });
    return (await this.#edge.fetch(request, this.#env)).status;
  }

  /** Lets time pass until nothing is at work. */
  async idle(): Promise<void> {
    await this.runtime.until(() => !busyUntil(this.runtime), 3_600_000);
  }

  actor(chat: number | string): string {
    return chatActorName(this.bot.scope, "telegram", String(chat));
  }

  client(chat: number | string) {
    return new ActorClient(this.runtime, this.bot, () => this.runtime.uuid()).chat(
      telegram.address(chat),
    );
  }

  texts(chat: number | string): (string | undefined)[] {
    return this.sim.screen(chat).map((message) => message.text);
  }

  /** Everything that is on any disk, as text. */
  disk(): string {
    const all: unknown[] = [];
    for (const kind of ["ChatActor", "Connection", "Registry"] as const) {
      for (const name of this.runtime.names(kind)) {
        const storage = this.runtime.storage(kind, name);
        const tables = storage.all<{ name: string }>(
          `SELECT name FROM sqlite_master WHERE type = 'table'`,
          [],
        );
        for (const table of tables) all.push(storage.all(`SELECT * FROM "${table.name}"`, []));
      }
    }
    return JSON.stringify(all);
  }
}
