/**
 * A bot under test in plain Node: users who say, press and send, a clock that the test moves, platforms
 * that fail on request, and deaths at any labelled step.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import type { DeliveryStatus, InboundEvent } from "../channels/events.ts";
import { runCrons, type TickParts } from "../edge/cron.ts";
import { runScheduled } from "../edge/scheduled.ts";
import type { Log, ProbeSide } from "../host/Host.ts";
import { Chat } from "../objects/Chat.ts";
import { ConnectionBook } from "../objects/ConnectionBook.ts";
import { chatActorName } from "../objects/names.ts";
import { RegistryBook } from "../objects/RegistryBook.ts";
import { type Duration, notADuration, parseDuration } from "../time/duration.ts";
import { ActorClient } from "../turns/ActorClient.ts";
import type { Bot } from "../turns/Bot.ts";
import type { Announcements, BotRuntime } from "../turns/BotRuntime.ts";
import type { Client } from "../turns/Client.ts";
import type { MockPlatform } from "./MockPlatform.ts";
import { NodeRuntime, type ProbeHit } from "./node/NodeRuntime.ts";
import { busyUntil } from "./quiet.ts";
import { refuseFetch, within } from "./scope.ts";
import { standIn } from "./standIn.ts";
import { TestUser, type UserOptions } from "./TestUser.ts";

/** Options of {@link testBot}. */
export interface TestBotOptions {
  /** The bot's environment. */
  env?: Record<string, unknown> | undefined;
  /** Where time begins: epoch milliseconds or a date. Default 2026-01-01. */
  now?: number | Date | undefined;
  /** Makes every random decision repeatable. Default 1. */
  seed?: number | undefined;
  /** Answers the bot's own `fetch` of other services. Default: throws with the URL. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Default: silent. */
  log?: Log | undefined;
}

/** An announcement that the bot's runtime made. */
export type Announced = {
  [K in keyof Announcements]: { kind: K; event: Announcements[K] };
}[keyof Announcements];

const MINUTE_MS = 60_000;
/** How long `idle` lets virtual time run before it says that the bot never comes to rest, in ms. */
/** What hooks of flows need, where the test gives nothing else. */
const TEST_ENV = {
  HOLDFAST_SEAL_KEY: "a-seal-key-for-tests-only",
  HOLDFAST_URL: "https://bot.test",
};
const IDLE_LIMIT_MS = 3_600_000;
/** A platform redelivers what was not answered with success after this, in ms, doubling. */
const REDELIVER_MS = 1_000;
const REDELIVERIES = 12;

/** A bot under test. */
export class TestBot {
  readonly runtime: NodeRuntime;
  /** The client, as listeners and own routes have it. */
  readonly client: Client;
  /** What the runtime announced (`error`, `durability:dead`, `durability:ambiguous`), oldest first. */
  readonly announced: Announced[] = [];
  readonly #bot: BotRuntime;
  readonly #ticks: TickParts;
  readonly #platforms = new Map<string, MockPlatform>();
  readonly #channels = new Map<string, AnyChannel>();
  readonly #users = new Map<string, TestUser>();
  #ids = 0;

  constructor(bot: BotRuntime, options: TestBotOptions = {}) {
    this.#bot = bot;
    const seen = this.#wrap(options.fetch ?? refuseFetch);
    this.runtime = new NodeRuntime({
      make: (host, kind, name) => {
        if (kind === "Registry") return new RegistryBook(host);
        if (kind === "Connection") return new ConnectionBook(host, seen, name);
        return new Chat(host, seen, name);
      },
      env: { ...TEST_ENV, ...options.env },
      ...(options.now === undefined ? {} : { now: Number(options.now) }),
      ...(options.seed === undefined ? {} : { seed: options.seed }),
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
      ...(options.log === undefined ? {} : { log: options.log }),
    });
    for (const channel of bot.channels) {
      const made = standIn(channel, this.runtime);
      this.#platforms.set(channel.connection, made.platform);
      this.#channels.set(channel.connection, made.channel);
    }
    const { runtime } = this;
    this.#ticks = { bot: seen, actors: runtime, env: runtime.env, log: runtime.log };
    this.client = new ActorClient(
      runtime,
      seen,
      () => runtime.uuid(),
      "bot",
      runtime.clock,
      runtime.env,
    );
  }

  /** Epoch milliseconds of the virtual clock. */
  get now(): number {
    return this.runtime.clock.now();
  }

  /** A user in a one-to-one chat of their own, or in `chat`. The same name is the same user. */
  user(name: string, options: UserOptions = {}): TestUser {
    const connection = options.connection ?? this.#bot.channels[0]?.connection;
    if (connection === undefined) throw new Error("the bot has no channels");
    const key = JSON.stringify([name, connection, options.chat ?? null]);
    let user = this.#users.get(key);
    if (user === undefined) {
      user = new TestUser(this, name, { ...options, connection });
      this.#users.set(key, user);
    }
    return user;
  }

  /** The simulated platform of a connection (default: the first): its ledger, its faults. */
  platform(connection = this.#bot.channels[0]?.connection ?? ""): MockPlatform {
    const platform = this.#platforms.get(connection);
    if (platform === undefined) throw new Error(`the bot has no connection "${connection}"`);
    return platform;
  }

  /** The simulated channel of a connection. */
  channel(connection: string): AnyChannel {
    const channel = this.#channels.get(connection);
    if (channel === undefined) throw new Error(`the bot has no connection "${connection}"`);
    return channel;
  }

  /** Moves time on; whatever comes due on the way happens, the bot's cron jobs too. */
  async advance(duration: Duration): Promise<void> {
    const ms = parseDuration(duration);
    if (ms === undefined) throw new Error(notADuration(duration));
    const end = this.now + ms;
    if (this.#bot.crons.length > 0) {
      const first = (Math.floor(this.now / MINUTE_MS) + 1) * MINUTE_MS;
      for (let minute = first; minute <= end; minute += MINUTE_MS) {
        await this.runtime.advance(Math.max(0, minute - this.now));
        await this.#drive(runCrons(this.#ticks, minute));
      }
    }
    await this.runtime.advance(Math.max(0, end - this.now));
  }

  /**
   * Calls the Worker's scheduled handler once, as its cron does each minute: chats that slept past their
   * time are woken, quarantined events are tried, cron jobs that are due run.
   */
  async tick(): Promise<void> {
    await this.#drive(runScheduled(this.#ticks, this.now));
  }

  /**
   * Lets the bot come to rest: turns ended, sends sent or given up, crashed work recovered. Time moves
   * only as far as that needs; what is scheduled for later stays.
   */
  async idle(): Promise<void> {
    const rested = await this.runtime.until(() => !busyUntil(this.runtime), IDLE_LIMIT_MS);
    if (!rested)
      throw new Error(`the bot did not come to rest within ${IDLE_LIMIT_MS / 60_000} minutes`);
  }

  /** Kills the process at a labelled step, once: `t.crash.before("outbox.markSent")`. */
  readonly crash = {
    before: (label: string, nth = 1) => this.#crashAt(label, "before", nth),
    after: (label: string, nth = 1) => this.#crashAt(label, "after", nth),
  };

  /** Kills the process now: all memory is lost, storage stays. */
  async restart(): Promise<void> {
    this.runtime.kill();
    await this.idle();
  }

  /** Delivers an event as a platform would: again, until it is admitted. */
  async deliver(
    connection: string,
    event: Omit<InboundEvent, "channel" | "connection">,
  ): Promise<void> {
    const channel = this.channel(connection);
    const full = { ...event, channel: channel.name, connection } as InboundEvent;
    const name = chatActorName(this.#bot.scope, connection, channel.chatKey(event.chat));
    const payload = JSON.stringify({
      connection,
      channel: channel.name,
      chat: event.chat,
      items: [{ type: "event", event: full }],
    });
    for (let attempt = 0; attempt < REDELIVERIES; attempt += 1) {
      if (await this.#admit(name, payload)) return;
      await this.runtime.advance(REDELIVER_MS * 2 ** attempt);
    }
    throw new Error(`the event ${event.id} was never admitted`);
  }

  /** Delivers a delivery status of a message of a chat. */
  async deliverStatus(connection: string, status: DeliveryStatus): Promise<void> {
    const channel = this.channel(connection);
    const name = chatActorName(this.#bot.scope, connection, channel.chatKey(status.chat));
    const items = [{ type: "status", status }];
    await this.#admit(
      name,
      JSON.stringify({ connection, channel: channel.name, chat: status.chat, items }),
    );
  }

  /** The name of a chat's actor, for reaching into the runtime. */
  actorOf(user: TestUser): string {
    return chatActorName(this.#bot.scope, user.connection, this.#keyOf(user));
  }

  /** A fresh id for an event. */
  nextId(): string {
    this.#ids += 1;
    return `e${this.#ids}`;
  }

  /** The value of a key of the chat's state, as committed. */
  state(user: TestUser, key: string): unknown {
    const name = chatActorName(this.#bot.scope, user.connection, this.#keyOf(user));
    const storage = this.runtime.storage("ChatActor", name);
    const known = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'state'`, []);
    if (known.length === 0) return undefined;
    const row = storage.all<{ v: string }>(`SELECT v FROM state WHERE scope = '' AND k = ?`, [
      key,
    ])[0];
    return row === undefined ? undefined : JSON.parse(row.v);
  }

  /** Frees what the test used. */
  close(): void {
    this.runtime.close();
  }

  /** Lets time pass until something that the test itself started is done. */
  async #drive(work: Promise<unknown>): Promise<void> {
    let over = false;
    const end = () => {
      over = true;
    };
    work.then(end, end);
    if (!(await this.runtime.until(() => over, IDLE_LIMIT_MS)))
      throw new Error(`the scheduled run did not end within ${IDLE_LIMIT_MS / 60_000} minutes`);
    await work;
  }

  #keyOf(user: TestUser): string {
    const channel = this.#channels.get(user.connection);
    return channel?.chatKey(user.chat) ?? user.chat.id;
  }

  async #admit(name: string, payload: string): Promise<boolean> {
    try {
      const answer = JSON.parse(await this.runtime.call("ChatActor", name, "receive", payload)) as {
        ok: boolean;
      };
      return answer.ok;
    } catch {
      return false;
    }
  }

  #crashAt(label: string, side: ProbeSide, nth: number): void {
    if (this.#crashes.length === 0) {
      const before = this.runtime.onProbe;
      this.runtime.onProbe = (hit: ProbeHit) => this.#isDue(hit) || before(hit);
    }
    this.#crashes.push({ label, side, left: nth });
  }
  readonly #crashes: { label: string; side: ProbeSide; left: number }[] = [];

  /** Whether a crash was ordered for this very step. Every order counts every step. */
  #isDue(hit: ProbeHit): boolean {
    let due = false;
    for (const order of this.#crashes) {
      if (order.left === 0 || order.label !== hit.label || order.side !== hit.side) continue;
      order.left -= 1;
      due ||= order.left === 0;
    }
    return due;
  }

  /** The bot as the engine sees it, with stand-ins for its channels and a record of announcements. */
  #wrap(answer: (request: Request) => Promise<Response>): BotRuntime {
    const bot = this.#bot;
    const channels = this.#channels;
    const announced = this.announced;
    const here = <T>(run: () => T) => within({ answer, clock: this.runtime.clock }, run);
    return {
      id: bot.id,
      scope: bot.scope,
      settings: bot.settings,
      busy: bot.busy,
      crons: bot.crons,
      get channels() {
        return [...channels.values()];
      },
      channel: (connection) => channels.get(connection),
      handles: (kind) => bot.handles(kind),
      flowOf: (name, version) => bot.flowOf(name, version),
      isCommand: (text) => bot.isCommand(text),
      handle: (context) => here(() => bot.handle(context)),
      get hasBeforeSend() {
        return bot.hasBeforeSend;
      },
      beforeSend: (send) => here(() => bot.beforeSend(send)),
      get hasAfterSend() {
        return bot.hasAfterSend;
      },
      afterSend: (event, tools) => here(() => bot.afterSend(event, tools)),
      // Every announcement is recorded, so every one has a listener.
      hasListener: (kind) => kind !== "status" || bot.hasListener(kind),
      announce: async (kind, event, tools) => {
        announced.push({ kind, event } as Announced);
        await here(() => bot.announce(kind, event, tools));
      },
    };
  }
}

/**
 * Puts a bot under test. Its channels are replaced by simulated ones with the same abilities, so a test
 * needs no network and no secrets.
 */
export function testBot<Env, Shape>(bot: Bot<Env, Shape>, options: TestBotOptions = {}): TestBot {
  return new TestBot(bot, options);
}
