/**
 * A channel whose process dies in the middle of a send, at the moment that a test orders.
 *
 * ```ts
 * const provider = crashable(new MockProvider({ class: "provable" }));
 * const t = testBot(new Bot({ id: "shop", channels: [provider] }));
 * provider.crash.after("send");                 // accepted, and nobody lives to hear it
 * ```
 *
 * @module
 */
import type {
  AnyChannel,
  Channel,
  ChannelMedia,
  ChannelPolling,
  Inbound,
  Outbound,
} from "../channels/channel.ts";
import type { ServedChannel } from "../channels/served.ts";

/** The calls of a channel that a death can be ordered at. */
export type CrashStep = "prepare" | "send" | "reconcile";

/** A death that happened. */
export interface ProviderDeath {
  step: CrashStep;
  side: "before" | "after";
  /** The platform's chat id of the send. */
  chat: string;
}

interface Order {
  step: CrashStep;
  side: "before" | "after";
  left: number;
}

/** Orders and deaths; shared by a provider and the stand-ins that a test kit makes of it. */
class CrashPlan {
  readonly orders: Order[] = [];
  readonly deaths: ProviderDeath[] = [];
  die: (() => void) | undefined;

  /** Dies if that was ordered for this very call. Every order counts every call of its step. */
  isDue(step: CrashStep, side: "before" | "after", chat: string): boolean {
    let due = false;
    for (const order of this.orders) {
      if (order.left === 0 || order.step !== step || order.side !== side) continue;
      order.left -= 1;
      due ||= order.left === 0;
    }
    if (!due) return false;
    if (this.die === undefined) {
      throw new Error("a crashable channel has no process to end: use testBot, or give it `die`");
    }
    this.deaths.push({ step, side, chat });
    this.die();
    return true;
  }
}

/** Orders of deaths; `nth` counts calls of the step from the order on, from 1. */
export interface CrashOrders {
  /** Before the call: nothing of it reaches the platform. */
  before(step: CrashStep, nth?: number): void;
  /** After the platform did it, and before anybody hears of it. */
  after(step: CrashStep, nth?: number): void;
}

/** A channel around another one. */
export class CrashableProvider<O = unknown> implements Channel<O> {
  readonly name: string;
  readonly connection: string;
  readonly capabilities: Channel<O>["capabilities"];
  readonly configure: Channel<O>["configure"];
  readonly chatKey: Channel<O>["chatKey"];
  readonly inbound: Inbound<O>;
  readonly outbound: Outbound<O>;
  readonly media?: ChannelMedia<O>;
  readonly polling?: ChannelPolling<O>;
  readonly served?: ServedChannel;
  /** The channel inside. */
  readonly inner: Channel<O>;
  /** Orders deaths. @throws {Error} for a step that the channel does not have */
  readonly crash: CrashOrders = {
    before: (step, nth = 1) => this.#order(step, "before", nth),
    after: (step, nth = 1) => this.#order(step, "after", nth),
  };
  readonly #plan: CrashPlan;

  /** @param options.die ends the process; `testBot` brings its own */
  constructor(inner: Channel<O>, options: { die?: () => void } = {}, plan = new CrashPlan()) {
    if (options.die !== undefined) plan.die = options.die;
    this.#plan = plan;
    this.inner = inner;
    this.name = inner.name;
    this.connection = inner.connection;
    this.capabilities = inner.capabilities;
    this.configure = (env) => inner.configure(env);
    this.chatKey = (chat) => inner.chatKey(chat);
    this.inbound = inner.inbound;
    this.outbound = mortal(inner.outbound, plan);
    if (inner.media !== undefined) this.media = inner.media;
    if (inner.polling !== undefined) this.polling = inner.polling;
    if (inner.served !== undefined) this.served = inner.served;
  }

  /** Deaths that happened, oldest first: a test that ordered one should see it here. */
  get deaths(): readonly ProviderDeath[] {
    return this.#plan.deaths;
  }

  /** How many ordered deaths have not come. */
  get pending(): number {
    return this.#plan.orders.filter((order) => order.left > 0).length;
  }

  /** The same orders around another channel, in a process that `die` ends: what a test kit runs. */
  over(inner: AnyChannel, die: () => void): CrashableProvider<unknown> {
    return new CrashableProvider<unknown>(inner, { die }, this.#plan);
  }

  #order(step: CrashStep, side: "before" | "after", nth: number): void {
    if (this.outbound[step] === undefined) {
      throw new Error(`the channel "${this.name}" has no \`${step}\` to die in`);
    }
    if (!(Number.isSafeInteger(nth) && nth > 0)) throw new RangeError("nth counts from 1");
    this.#plan.orders.push({ step, side, left: nth });
  }
}

/** Makes a channel crashable. */
export function crashable<O>(
  channel: Channel<O>,
  options: { die?: () => void } = {},
): CrashableProvider<O> {
  return new CrashableProvider(channel, options);
}

function mortal<O>(inner: Outbound<O>, plan: CrashPlan): Outbound<O> {
  const { prepare, reconcile } = inner;
  const around = <T>(step: CrashStep, chat: string, call: () => Promise<T>): Promise<T> => {
    if (plan.isDue(step, "before", chat)) return never();
    // No await before the call: it has to start in the same turn of the event loop.
    return call().then(
      (answer) => (plan.isDue(step, "after", chat) ? never<T>() : answer),
      (error: unknown) => (plan.isDue(step, "after", chat) ? never<T>() : Promise.reject(error)),
    );
  };
  const outbound: Outbound<O> = {
    ...inner,
    send: (request, io) => around("send", io.address.chat, () => inner.send(request, io)),
  };
  if (prepare !== undefined) {
    outbound.prepare = (request, io) =>
      around("prepare", io.address.chat, () => prepare.call(inner, request, io));
  }
  if (reconcile !== undefined) {
    outbound.reconcile = (query, io) =>
      around("reconcile", query.address.chat, () => reconcile.call(inner, query, io));
  }
  return outbound;
}

/** What a dead process answers. */
function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
