/**
 * Calls to the actors of one bot: JSON both ways, and errors of the other side as the classes they were.
 *
 * @module
 */
import { errorFrom, type WireError } from "../channels/wireError.ts";
import type { Actors } from "../host/Host.ts";
import { encodePart } from "../objects/names.ts";
import { registriesOf } from "../objects/Reporter.ts";
import { type Clock, TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { BotRuntime } from "./BotRuntime.ts";

/** Calls to the actors of one bot. */
export class ActorCalls {
  /** What the names of the bot's actors begin with. */
  readonly prefix: string;
  readonly #actors: Actors;
  readonly #clock: Clock | undefined;

  /** @param clock for {@link within}; without one nothing has a deadline */
  constructor(actors: Actors, bot: BotRuntime, clock?: Clock) {
    const { tenant, environment, bot: id } = bot.scope;
    this.prefix = [tenant, environment, id].map(encodePart).join("/");
    this.#actors = actors;
    this.#clock = clock;
  }

  /** The bot's Registry, shard by shard. */
  get shards(): string[] {
    return registriesOf(this.prefix);
  }

  /** Epoch milliseconds; always the same where there is no clock. */
  now(): number {
    return this.#clock?.now() ?? 0;
  }

  /** Hands events to a chat. */
  receive(actor: string, request: unknown): Promise<string> {
    return this.#actors.call("ChatActor", actor, "receive", JSON.stringify(request));
  }

  /** Calls an operation of a chat. @throws what it threw, as the class that it was */
  async chat<T>(actor: string, method: string, input: unknown): Promise<T> {
    const answer = JSON.parse(
      await this.#actors.call("ChatActor", actor, method, JSON.stringify(input)),
    ) as { value?: T; error?: WireError };
    if (answer.error !== undefined) throw errorFrom(answer.error);
    return answer.value as T;
  }

  /** Calls a shard of the Registry. */
  async registry<T>(shard: string, method: string, input: unknown): Promise<T> {
    return JSON.parse(
      await this.#actors.call("Registry", shard, method, JSON.stringify(input)),
    ) as T;
  }

  /** Gives a call `ms` milliseconds. @throws when it takes longer; it may have run all the same */
  async within<T>(ms: number, call: Promise<T>): Promise<T> {
    if (this.#clock === undefined) return call;
    const answer = await withDeadline(this.#clock, ms, call);
    if (answer === TIMED_OUT) throw new Error(`no answer within ${ms} ms`);
    return answer;
  }
}
