/**
 * The bot: channels, options and handlers. Pure; it runs nothing by itself and does no work when it is
 * made, so that a module may define it at the top level of a Worker.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import { ConfigError } from "../channels/errors.ts";
import { flowDefinition } from "../flows/define.ts";
import type { Flow, FlowFunction, FlowOptions } from "../flows/types.ts";
import type { BotScope } from "../objects/names.ts";
import type {
  Announcements,
  BotRuntime,
  CronJob,
  FlowDefinition,
  ListenerTools,
} from "./BotRuntime.ts";
import { type BusyOptions, type BusySettings, busySettingsOf } from "./busyOptions.ts";
import type { Context, EngineContext, Handler } from "./Context.ts";
import { type CronHandler, type CronOptions, cronJob, runCron } from "./crons.ts";
import { type DurabilityOptions, refuse, type Settings, settingsOf } from "./options.ts";
import { type RoutedKind, Router } from "./Router.ts";
import type { OutgoingSend, SentEvent } from "./sends.ts";

/** Options of a bot. */
export interface BotOptions extends BusyOptions {
  /** Names the bot in every record; changing it starts from an empty journal. Letters, digits, `.`, `_`, `-`. */
  id: string;
  /** The platforms it speaks on. Two connections of one channel need different `connection` ids. */
  channels: readonly AnyChannel[];
  durability?: DurabilityOptions | undefined;
  /** Default `"main"`. */
  tenant?: string | undefined;
  /** Default `"production"`. */
  environment?: string | undefined;
}

type Listener<E, Env> = (event: E, tools: ListenerTools<Env>) => unknown;
type HookName = "send";

const ID = /^[A-Za-z0-9._-]{1,64}$/;

const LISTENED: readonly (keyof Announcements)[] = [
  "error",
  "durability:dead",
  "durability:ambiguous",
  "durability:paused",
  "status",
];

/** A bot. */
export class Bot<Env = Cloudflare.Env, Shape = unknown>
  extends Router<Env, Shape>
  implements BotRuntime
{
  readonly id: string;
  readonly scope: BotScope;
  readonly settings: Settings;
  readonly busy: BusySettings;
  readonly crons: CronJob[] = [];
  readonly #flows: FlowDefinition[] = [];
  readonly channels: readonly AnyChannel[];
  readonly #connections = new Map<string, AnyChannel>();
  readonly #listeners = new Map<string, Listener<never, never>[]>();
  readonly #before: ((send: OutgoingSend) => unknown)[] = [];
  readonly #after: Listener<SentEvent, never>[] = [];

  /** @throws {ConfigError} naming the option, its value and what is allowed */
  constructor(options: BotOptions) {
    super();
    if (typeof options?.id !== "string" || !ID.test(options.id)) {
      refuse("id", options?.id, '1 to 64 letters, digits, ".", "_" or "-"');
    }
    if (!Array.isArray(options.channels))
      refuse("channels", options.channels, "a list of channels, such as [telegram()]");
    for (const name of ["tenant", "environment"] as const) {
      const value = options[name];
      if (value !== undefined && (typeof value !== "string" || value === ""))
        refuse(name, value, "a text");
    }
    this.id = options.id;
    this.scope = {
      tenant: options.tenant ?? "main",
      environment: options.environment ?? "production",
      bot: options.id,
    };
    this.channels = options.channels;
    for (const channel of options.channels) {
      if (this.#connections.has(channel.connection)) {
        throw new ConfigError(
          `two channels have the connection "${channel.connection}"; give one of them another, as in ${channel.name}({ connection: "…" })`,
        );
      }
      this.#connections.set(channel.connection, channel);
    }
    this.settings = settingsOf(
      options.durability,
      options.channels.map((channel) => channel.name),
    );
    this.busy = busySettingsOf(options, options.channels);
  }

  channel(connection: string): AnyChannel | undefined {
    return this.#connections.get(connection);
  }

  /**
   * Listens to the runtime (`error`, `durability:dead`, `durability:ambiguous`, `status`), or handles a
   * kind of event as a turn (`edited`, `deleted`, `reaction`, `membership`, `event:<type>`,
   * `<channel>:<kind>`).
   */
  on<K extends keyof Announcements>(kind: K, listener: Listener<Announcements[K], Env>): this;
  on(kind: RoutedKind, handler: Handler<Context<Env, Shape>>): this;
  on(kind: string, handler: unknown): this {
    if (typeof handler !== "function") throw new ConfigError(`on("${kind}") needs a function`);
    if (!LISTENED.some((one) => one === kind)) {
      return this.onEvent(kind as RoutedKind, handler as Handler<Context<Env, Shape>>);
    }
    const list = this.#listeners.get(kind) ?? [];
    list.push(handler as Listener<never, never>);
    this.#listeners.set(kind, list);
    return this;
  }

  /** Runs once for each send, before it is recorded; may change its content or cancel it. */
  before(_what: HookName, hook: (send: OutgoingSend) => unknown): this {
    this.#before.push(hook);
    return this;
  }

  /** Runs at least once after each part that was sent. */
  after(_what: HookName, listener: Listener<SentEvent, Env>): this {
    this.#after.push(listener as Listener<SentEvent, never>);
    return this;
  }

  /**
   * Runs `handler` by the clock, in UTC: `minute hour day-of-month month day-of-week`. Each run is an
   * event of its own record: it runs again after a crash, is listed when it failed, and what its `client`
   * sends is sent once. Middleware is not for it. Two jobs of one expression need a `name`.
   *
   * @throws {ConfigError} naming the expression, or the name
   */
  cron(expression: string, handler: CronHandler<Env>): this;
  cron(expression: string, options: CronOptions, handler: CronHandler<Env>): this;
  cron(expression: string, first: CronOptions | CronHandler<Env>, second?: CronHandler<Env>): this {
    const options = typeof first === "function" ? {} : first;
    const handler = (second ?? first) as CronJob["run"];
    this.crons.push(cronJob(expression, options, handler, this.crons));
    return this;
  }

  /**
   * A conversation as one function: it survives crashes and deploys by running again from the top, where
   * everything that it did through `c` is answered from the record. Start it with `ctx.start`.
   *
   * @throws {ConfigError} for a name that is taken in this version, or a bad option
   */
  flow<Input = undefined, Output = void>(
    name: string,
    run: FlowFunction<Env, Input, Output>,
  ): Flow<Input, Output>;
  flow<Input = undefined, Output = void>(
    name: string,
    options: FlowOptions,
    run: FlowFunction<Env, Input, Output>,
  ): Flow<Input, Output>;
  flow(name: string, first: unknown, second?: unknown): Flow<never, never> {
    const options = (typeof first === "function" ? {} : first) as FlowOptions;
    const definition = flowDefinition(name, options, second ?? first, this.#flows);
    this.#flows.push(definition);
    return { name, version: definition.version };
  }

  flowOf(name: string, version?: number): FlowDefinition | undefined {
    const all = this.#flows.filter((one) => one.name === name);
    if (version !== undefined) return all.find((one) => one.version === version);
    return all.reduce<FlowDefinition | undefined>(
      (newest, one) => (newest === undefined || one.version > newest.version ? one : newest),
      undefined,
    );
  }

  async handle(context: EngineContext): Promise<void> {
    const { kind } = context.event;
    if (kind === "cron") await runCron(this.crons, context);
    else if (kind === "timer") await context.wakeRun();
    else
      await this.route(
        context,
        async () => {},
        () => context.takeByRun(),
      );
  }

  get hasBeforeSend(): boolean {
    return this.#before.length > 0;
  }

  async beforeSend(send: OutgoingSend): Promise<void> {
    for (const hook of this.#before) await hook(send);
  }

  get hasAfterSend(): boolean {
    return this.#after.length > 0;
  }

  async afterSend(event: SentEvent, tools: ListenerTools): Promise<void> {
    for (const listener of this.#after) await listener(event, tools as ListenerTools<never>);
  }

  hasListener(kind: keyof Announcements): boolean {
    return this.#listeners.has(kind);
  }

  async announce<K extends keyof Announcements>(
    kind: K,
    event: Announcements[K],
    tools: ListenerTools,
  ): Promise<void> {
    for (const listener of this.#listeners.get(kind) ?? []) {
      await (listener as Listener<Announcements[K], unknown>)(event, tools);
    }
  }
}
