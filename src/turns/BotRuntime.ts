/**
 * What the engine sees of a bot. `Bot` implements it; the engine never imports `Bot`, so that the
 * contract between them stays this small.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import type { DeliveryStatus } from "../channels/events.ts";
import type { FlowFunction, FlowOptions } from "../flows/types.ts";
import type { Log } from "../host/Host.ts";
import type { AmbiguousAction } from "../journal/records.ts";
import type { BotScope } from "../objects/names.ts";
import type { BusySettings } from "./busyOptions.ts";
import type { Client } from "./Client.ts";
import type { EngineContext } from "./Context.ts";
import type { Settings } from "./options.ts";
import type { OutgoingSend, SentEvent } from "./sends.ts";

/** A record died. */
export interface DeadEvent {
  kind: "inbound" | "outbound";
  /** The inbox id, or the outbox key. */
  id: string;
  /** The chat, as `formatAddress` writes it. */
  chatId: string;
  error: string;
  /** The error kind of a send. */
  errorKind?: string;
}

/** A send may have happened, and nobody knows yet. */
export interface AmbiguousEvent {
  key: string;
  /** The chat, as `formatAddress` writes it. */
  chatId: string;
  /** `crash`: the process died in the call. `no_answer`: the answer was lost. */
  cause: string;
  action: AmbiguousAction;
}

/** Messages of other bots rest for a while: they came too fast. */
export interface PausedEvent {
  /** The chat, as `formatAddress` writes it. */
  chatId: string;
  reason: "loop_guard";
  /** The bot whose message was too many. */
  sender: string;
  /** Epoch milliseconds. */
  until: number;
}

/** A handler threw. */
export interface ErrorEvent {
  error: unknown;
  /** The inbox id of the turn. */
  id: string;
  chatId: string;
}

/** What listeners get besides the event. */
export interface ListenerTools<Env = unknown> {
  env: Env;
  client: Client;
  log: Log;
}

/** Announcements and their payloads. */
export interface Announcements {
  error: ErrorEvent;
  "durability:dead": DeadEvent;
  "durability:ambiguous": AmbiguousEvent;
  "durability:paused": PausedEvent;
  status: DeliveryStatus & { key: string };
}

/** Work by the clock: what `bot.cron` registered. */
export interface CronJob {
  /** Unique in the bot; part of each run's id. */
  name: string;
  /** Five fields, UTC. */
  expression: string;
  run(tools: ListenerTools): unknown;
}

/** A flow, as `bot.flow` registered it. */
export interface FlowDefinition {
  name: string;
  version: number;
  options: FlowOptions;
  run: FlowFunction<unknown, unknown, unknown>;
}

/** The bot as the engine runs it. */
export interface BotRuntime {
  readonly id: string;
  readonly scope: BotScope;
  readonly settings: Settings;
  readonly busy: BusySettings;
  readonly crons: readonly CronJob[];
  readonly channels: readonly AnyChannel[];
  /** The channel of a connection. */
  channel(connection: string): AnyChannel | undefined;
  /** Runs middleware and the first matching handler, or the run of a flow that waits for the event. */
  handle(context: EngineContext): Promise<void>;
  /** Whether any `before("send")` hook exists; without one a send is recorded with no await before it. */
  readonly hasBeforeSend: boolean;
  beforeSend(send: OutgoingSend): Promise<void>;
  readonly hasAfterSend: boolean;
  afterSend(event: SentEvent, tools: ListenerTools): Promise<void>;
  /** Calls the listeners of an announcement, in order; rejects with the first failure. */
  announce<K extends keyof Announcements>(
    kind: K,
    event: Announcements[K],
    tools: ListenerTools,
  ): Promise<void>;
  hasListener(kind: keyof Announcements): boolean;
  /** Whether `bot.on(kind, …)` was called for this kind of event. */
  handles(kind: string): boolean;
  /** A flow by name: of one version, or the newest. */
  flowOf(name: string, version?: number): FlowDefinition | undefined;
  /** Whether a text is a command that the bot handles. */
  isCommand(text: string): boolean;
}
