/**
 * The engine of one connection: what belongs to the bot account and to no chat. It polls where there is
 * no webhook, keeps what a chat could not admit, the account's own events and the rate of the account.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import { ConfigError } from "../channels/errors.ts";
import type { InboundEvent } from "../channels/events.ts";
import type { Host } from "../host/Host.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { ConnectionEvents } from "./ConnectionEvents.ts";
import { ConnectionStore } from "./ConnectionStore.ts";
import { connectionOf } from "./names.ts";
import { Polling } from "./Polling.ts";
import { Quarantine } from "./Quarantine.ts";
import { QuarantineDesk } from "./QuarantineDesk.ts";
import { type FailedGroup, QuarantineFailures } from "./QuarantineFailures.ts";
import { type BudgetRequest, RateBudget } from "./RateBudget.ts";

/**
 * The longest between two alarms while something is open, in ms: local workerd drops detached work of an
 * object that nothing has touched for 70 to 140 s.
 */
const WATCH_MS = 30_000;

type Method = (input: Record<string, unknown>) => unknown;

/** One connection. */
export class ConnectionBook {
  readonly #store: ConnectionStore;
  readonly #bot: BotRuntime;
  readonly #name: string;
  readonly #quarantine: Quarantine;
  readonly #polling: Polling;
  readonly #methods: Readonly<Record<string, Method>>;

  constructor(host: Host, bot: BotRuntime, name: string) {
    this.#store = new ConnectionStore(host);
    this.#bot = bot;
    this.#name = name;
    const channel = () => this.#channel();
    const quarantine = new Quarantine(this.#store);
    const failures = new QuarantineFailures(this.#store, quarantine);
    const desk = new QuarantineDesk(this.#store, quarantine);
    const events = new ConnectionEvents(this.#store, quarantine, bot);
    const budget = new RateBudget(this.#store, () => channel().capabilities.pacing?.perBot);
    const polling = new Polling({
      store: this.#store,
      bot,
      scope: name,
      channel,
      quarantine,
      events,
    });
    this.#quarantine = quarantine;
    this.#polling = polling;
    this.#store.wanted = () => this.#nextDue();
    this.#methods = {
      keep: ({ events: kept }) => ({ kept: this.#keep(events, kept as InboundEvent[]) }),
      events: ({ limit }) => ({ events: events.list(Number(limit ?? 50)) }),
      failed: ({ groups }) => failures.count(groups as FailedGroup[]),
      budget: (input) => budget.take(input as unknown as BudgetRequest),
      sweep: () => ({ hastened: desk.sweep() }),
      "poll.start": () => polling.start(),
      "poll.stop": () => polling.stop(),
      "poll.status": () => polling.status(),
      "quarantine.list": (input) => desk.list(input),
      "quarantine.replay": ({ ref }) => ({ chats: desk.replay(ref as string | undefined) }),
      "quarantine.discard": ({ ref }) => ({ discarded: desk.discard(String(ref)) }),
    };
  }

  /** Calls a method by name. JSON both ways. */
  async call(method: string, payload: string): Promise<string> {
    const run = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (run === undefined) throw new Error(`a connection has no method "${method}"`);
    const answer = run(JSON.parse(payload) as Record<string, unknown>);
    // Any contact heals a lost alarm or a loop that died with its process.
    this.#kick();
    return JSON.stringify(answer);
  }

  /** The alarm: starts what is due, and comes again while anything is open. */
  async alarm(): Promise<void> {
    this.#store.alarm.fired();
    try {
      this.#watch();
      this.#kick();
    } catch (error) {
      this.#store.host.rethrowIfHalted(error);
      // Thrown on, the platform would give the alarm up after six tries.
      this.#store.host.log.error("a connection's alarm failed", { error: String(error) });
      this.#watch();
    }
  }

  #kick(): void {
    this.#polling.kick();
    this.#quarantine.kick();
  }

  /** Comes again when the next thing is due, or to look after what is under way. */
  #watch(): void {
    const now = this.#store.now();
    const due = [this.#polling.nextDue(), this.#quarantine.nextDue()];
    const times = due.flatMap((at) => (at === undefined ? [] : [at > now ? at : now + WATCH_MS]));
    if (times.length === 0) return;
    const at = Math.min(...times);
    this.#store.commit("connection.rearm", () => this.#store.alarm.arm(at));
  }

  #nextDue(): number | undefined {
    const polling = this.#polling.nextDue();
    const quarantine = this.#quarantine.nextDue();
    if (polling === undefined) return quarantine;
    return Math.min(polling, quarantine ?? polling);
  }

  #keep(events: ConnectionEvents, kept: readonly InboundEvent[]): number {
    return this.#store.commit("connection.keep", () => events.keep(this.#channel(), kept));
  }

  /** @throws {ConfigError} when the bot no longer has the connection */
  #channel(): AnyChannel {
    const connection = connectionOf(this.#name);
    const channel = this.#bot.channel(connection);
    if (channel !== undefined) return channel;
    throw new ConfigError(
      `the bot "${this.#bot.id}" has no connection "${connection}"; add its channel to \`channels\``,
    );
  }
}
