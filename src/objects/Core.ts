/**
 * What the parts of one chat's engine share: the host, the journal, the bot and the counters of this
 * incarnation.
 *
 * @module
 */
import { AlarmClock } from "../alarms/AlarmClock.ts";
import type { AnyChannel, ChannelIo } from "../channels/channel.ts";
import { ConfigError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type { Host } from "../host/Host.ts";
import { type Identity, Journal } from "../journal/Journal.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import type { Settings } from "../turns/options.ts";
import { Metrics } from "./Metrics.ts";
import { scopeOf } from "./names.ts";

/** The shared middle of one actor incarnation. */
export class Core {
  readonly host: Host;
  readonly bot: BotRuntime;
  readonly journal: Journal;
  readonly alarm: AlarmClock;
  readonly metrics = new Metrics();
  /** The actor's full name. */
  readonly name: string;
  /** One life of the actor in memory. */
  readonly incarnation: string;
  /** When this incarnation began: epoch milliseconds. */
  readonly startedAt: number;
  /** What the rows and the loops want to be woken for; filled in by the engine. */
  wanted: () => number | undefined = () => undefined;
  /** When unfinished work is due next; `undefined` when there is none. */
  unfinished: () => number | undefined = () => undefined;
  /** Something is dead, unknown, deferred, scheduled or recovered: others shall know; filled in by the engine. */
  onTrouble: () => void = () => undefined;
  /** The platform has renamed the chat; call inside a commit; filled in by the engine. */
  moved: (to: { chat: string; thread?: string | undefined }) => void = () => undefined;
  #claims = 0;

  constructor(host: Host, bot: BotRuntime, name: string) {
    this.host = host;
    this.bot = bot;
    this.name = name;
    this.incarnation = host.uuid();
    this.startedAt = host.clock.now();
    this.alarm = new AlarmClock(host, () => this.wanted());
    this.journal = new Journal(host, this.alarm);
  }

  get settings(): Settings {
    return this.bot.settings;
  }

  /**
   * How far ahead the watchdog stands, in ms. Not over a minute: local workerd drops detached work of an
   * object that nothing has touched for 70 to 140 s, and the alarm is what touches it.
   */
  get watchdogMs(): number {
    return Math.min(this.settings.inbox.leaseMs, 60_000);
  }

  now(): number {
    return this.host.clock.now();
  }

  /** A fresh claim: no other run, in this life or another, has the same. */
  claim(): string {
    this.#claims += 1;
    return `${this.incarnation}.${this.#claims}`;
  }

  /** Who this actor is. @throws {ConfigError} when it has never been told */
  identity(): Identity {
    const identity = this.journal.identity();
    if (identity === undefined) throw new ConfigError(`the chat ${this.name} has no journal yet`);
    return identity;
  }

  /** The channel of this chat's connection. @throws {ConfigError} when the bot no longer has it */
  channel(): AnyChannel {
    const { connection } = this.identity();
    const found = this.bot.channel(connection);
    if (found === undefined) {
      throw new ConfigError(
        `the bot "${this.bot.id}" has no connection "${connection}"; add its channel to \`channels\``,
      );
    }
    return found;
  }

  /** This chat's address. */
  address(): Address {
    const { channel, connection, chat, thread } = this.identity();
    return { channel, connection, chat, ...(thread === undefined ? {} : { thread }) };
  }

  /** What a channel's calls get. @throws {ConfigError} naming the variables that are not set */
  channelIo(channel: AnyChannel, signal: AbortSignal): ChannelIo<unknown> {
    const configured = channel.configure(this.host.env);
    if (!configured.ok) {
      throw new ConfigError(
        `connection "${channel.connection}" is not configured: set ${configured.missing.join(", ")}`,
        { kind: "auth", code: "not_configured" },
      );
    }
    const { host } = this;
    return {
      options: configured.options,
      fetch: (input, init) => host.fetch(input, init),
      signal,
      now: () => host.clock.now(),
      actors: host.actors,
      scope: scopeOf(this.name),
    };
  }
}
