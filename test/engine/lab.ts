/**
 * What the behaviour tests share: a bot over a mock platform of any delivery class, a deploy of other
 * code onto the same storage, and a look into the journal.
 *
 * @module
 */
import { afterEach } from "vitest";
import type {
  Capabilities,
  DeliveryClass,
  InboundItem,
  Outbound,
} from "../../src/channels/channel.ts";
import type { DeliveryStatus, InboundEvent } from "../../src/channels/events.ts";
import type { Log } from "../../src/host/Host.ts";
import { Bot, type DurabilityOptions } from "../../src/index.ts";
import type { InboxRow, OutboxRow } from "../../src/journal/records.ts";
import type { ReceiveAnswer } from "../../src/objects/Admission.ts";
import { Chat } from "../../src/objects/Chat.ts";
import type { MetricValues } from "../../src/objects/Metrics.ts";
import { chatActorName } from "../../src/objects/names.ts";
import {
  MockPlatform,
  mockProvider,
  type TestBot,
  type TestUser,
  testBot,
} from "../../src/testing/index.ts";
import type { Announcements } from "../../src/turns/BotRuntime.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";

/** What a lab is made of. */
export interface Code {
  /** Default `blind`. */
  class?: DeliveryClass;
  capabilities?: Partial<Capabilities>;
  durability?: DurabilityOptions;
  busy?: BusyOptions;
  seed?: number;
  log?: Log;
  setup: (bot: Bot, lab: () => Lab) => void;
}

/** Other code for the same chats: its channel may differ, and only its own listeners exist. */
export interface Deploy extends Omit<Code, "seed" | "class" | "log"> {
  outbound?: (base: Outbound<MockPlatform>) => Partial<Outbound<MockPlatform>>;
}

const open = new Set<Lab>();
afterEach(() => {
  for (const one of open) one.t.close();
  open.clear();
});

/** A bot under test and what tests ask of it. */
export class Lab {
  readonly t: TestBot;
  readonly bot: Bot;
  readonly platform: MockPlatform;
  readonly ann: TestUser;
  /** Whatever a handler wants to tell its test. */
  readonly notes: unknown[] = [];
  readonly #code: Code;

  constructor(code: Code) {
    this.#code = code;
    this.bot = this.#make(
      code,
      new MockPlatform({ now: () => 0, setTimer: () => () => {} }, code.class ?? "blind"),
    );
    this.t = testBot(this.bot, { seed: code.seed, log: code.log });
    this.platform = this.t.platform();
    this.ann = this.t.user("ann");
    open.add(this);
  }

  get now(): number {
    return this.t.now;
  }

  /** What ann sees. */
  get screen(): string[] {
    return this.ann.screen;
  }

  /** Texts of all calls that reached the platform. */
  get called(): string[] {
    return this.platform.calls.map((call) => call.text);
  }

  /** Virtual sleep, for handlers of ann's chat: never ends once their process is dead. */
  sleep(ms: number): Promise<void> {
    const life = () => this.t.runtime.engine("ChatActor", this.actor());
    const mine = life();
    return new Promise((resolve) => {
      this.t.runtime.clock.setTimer(ms, () => {
        if (life() === mine) resolve();
      });
    });
  }

  /** Announcements of one kind. */
  told<K extends keyof Announcements>(kind: K): Announcements[K][] {
    return this.t.announced
      .filter((one) => one.kind === kind)
      .map((one) => one.event as Announcements[K]);
  }

  /** Replaces the code of every chat that wakes from now on. Announcements go to its listeners only. */
  deploy(code: Deploy): Bot {
    const bot = this.#make({ ...code, class: this.platform.class }, this.platform);
    const make = this.t.runtime.make;
    this.t.runtime.make = (host, kind, name) =>
      kind === "ChatActor" ? new Chat(host, bot, name) : make(host, kind, name);
    this.t.runtime.kill();
    return bot;
  }

  /** The name of a user's chat. */
  actor(user: TestUser = this.ann): string {
    const { chat } = user;
    return chatActorName(
      this.bot.scope,
      "mock",
      chat.thread === undefined ? chat.id : `${chat.id}:${chat.thread}`,
    );
  }

  /** Delivers items as the edge does, once. */
  async receive(items: readonly InboundItem[], user: TestUser = this.ann): Promise<ReceiveAnswer> {
    const request = { connection: "mock", channel: "mock", chat: user.chat, items };
    const answer = await this.t.runtime.call(
      "ChatActor",
      this.actor(user),
      "receive",
      JSON.stringify(request),
    );
    return JSON.parse(answer) as ReceiveAnswer;
  }

  /** A message of ann as the edge hands it on. */
  message(id: string, text: string, more: Partial<InboundEvent> = {}): InboundItem {
    return {
      type: "event",
      event: {
        id,
        kind: "message",
        channel: "mock",
        connection: "mock",
        chat: this.ann.chat,
        sender: this.ann.sender,
        at: this.now,
        text,
        ...more,
      },
    };
  }

  /** Delivers a status of one of the bot's messages. */
  async status(status: Omit<DeliveryStatus, "at" | "chat">): Promise<void> {
    await this.receive([
      { type: "status", status: { ...status, at: this.now, chat: this.ann.chat } },
    ]);
  }

  /** Rows of ann's outbox in order. */
  sends(user: TestUser = this.ann): OutboxRow[] {
    return this.sql<OutboxRow>("SELECT * FROM outbox ORDER BY turn, pos", user);
  }

  /** Rows of ann's inbox in order. */
  events(user: TestUser = this.ann): InboxRow[] {
    return this.sql<InboxRow>("SELECT * FROM inbox ORDER BY seq", user);
  }

  /** States of ann's sends in order. */
  get states(): string[] {
    return this.sends().map((row) => row.state);
  }

  /** Asks ann's journal. */
  sql<R>(query: string, user: TestUser = this.ann): R[] {
    const storage = this.t.runtime.storage("ChatActor", this.actor(user));
    if (storage.all("SELECT 1 AS x FROM sqlite_master WHERE name = 'outbox'", []).length === 0)
      return [];
    return storage.all(query, []) as R[];
  }

  /** Damages ann's journal, as a bug or a bad disk would. */
  damage(statement: string): void {
    this.t.runtime.storage("ChatActor", this.actor()).run(statement, []);
  }

  /** Counters of ann's chat since it woke. */
  async metrics(): Promise<MetricValues> {
    return this.client.metrics();
  }

  /** Ann's chat from outside. */
  get client(): ReturnType<TestBot["client"]["chat"]> {
    return this.t.client.chat(this.ann.address);
  }

  /** Refuses commits for which `refuses` holds, as a full disk does. */
  refuseCommits(refuses: (label: string) => boolean): void {
    this.t.runtime.onCommit = (actor, label) => {
      if (actor === this.actor() && refuses(label))
        throw new Error("database or disk is full: SQLITE_FULL");
    };
  }

  #make(code: Code | Deploy, platform: MockPlatform): Bot {
    const change = "outbound" in code && code.outbound ? code.outbound : () => ({});
    const base = mockProvider({
      platform,
      ...(code.capabilities === undefined ? {} : { capabilities: code.capabilities }),
    });
    const channel = { ...base, outbound: { ...base.outbound, ...change(base.outbound) } };
    const durability = code.durability ?? this.#code.durability;
    const bot = new Bot({ id: "lab", channels: [channel], durability, ...(code.busy ?? {}) });
    code.setup(bot, () => this);
    return bot;
  }
}

/** Puts a bot under test over a mock platform. */
export function lab(code: Code): Lab {
  return new Lab(code);
}

/** A bot that answers everything with "ok <text>". */
export function echoing(bot: Bot): void {
  bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`));
}

/** The first element, which must be there. */
export function only<T>(list: readonly T[]): T {
  const [first, ...more] = list;
  if (first === undefined || more.length > 0) throw new Error(`expected one, got ${list.length}`);
  return first;
}
