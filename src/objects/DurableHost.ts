/**
 * The host of one actor on Durable Object storage.
 *
 * @module
 */
import type {
  Actors,
  Host,
  Log,
  LogFields,
  NotPromise,
  ProbeSide,
  Sql,
  SqlRow,
  SqlValue,
} from "../host/Host.ts";
import { redact } from "../safety/redact.ts";
import { type Clock, wallClock } from "../time/Clock.ts";

/** Reaches other actors. Injected, so that this file needs no module of the runtime. */
export type Reach = (env: Record<string, unknown>) => Actors;

/** Where local mode asks an actor to die: a label and a side. */
export interface CrashOrder {
  label: string;
  side: ProbeSide;
}

/** The largest time that a JavaScript timer takes, in ms; longer waits go through the alarm anyway. */
const MAX_TIMER_MS = 2_147_483_647;

/** While local mode has ordered a crash: the longest until the watchdog, so that nobody watches for a minute. */
const CRASH_WATCHDOG_MS = 2_000;

const clock: Clock = {
  now: wallClock.now,
  setTimer: (ms, fn) => wallClock.setTimer(Math.min(ms, MAX_TIMER_MS), fn),
};

/** The host of one incarnation. */
export class DurableHost implements Host {
  readonly sql: Sql;
  readonly clock = clock;
  readonly actors: Actors;
  readonly log: Log;
  readonly env: Record<string, unknown>;
  /** Set in local mode to watch a recovery: the actor dies once, there. */
  crash: CrashOrder | undefined;
  readonly #ctx: DurableObjectState;
  readonly #failed = (error: unknown): void => {
    this.log.error("background work failed", { error: String(error) });
  };

  constructor(ctx: DurableObjectState, env: Record<string, unknown>, reach: Reach, name: string) {
    this.#ctx = ctx;
    this.env = env;
    this.actors = reach(env);
    const { sql } = ctx.storage;
    this.sql = {
      all: <R extends SqlRow = SqlRow>(query: string, ...params: SqlValue[]) =>
        sql.exec(query, ...params).toArray() as R[],
      run: (query, ...params) => sql.exec(query, ...params).rowsWritten,
    };
    this.log = consoleLog({ actor: name }, env);
  }

  transaction<T>(label: string, fn: () => NotPromise<T>): T {
    this.probe(label, "before");
    const value = this.#ctx.storage.transactionSync(fn as () => T);
    this.probe(label, "after");
    return value;
  }

  setAlarm(at: number): void {
    // Joins the rows of the same turn of the event loop; a failure resets the object, rows and all.
    const soonest =
      this.crash === undefined ? at : Math.min(at, this.clock.now() + CRASH_WATCHDOG_MS);
    this.#ctx.storage.setAlarm(soonest).catch(this.#failed);
  }

  deleteAlarm(): void {
    this.#ctx.storage.deleteAlarm().catch(this.#failed);
  }

  deleteAll(): Promise<void> {
    return this.#ctx.storage.deleteAll();
  }

  random(): number {
    return Math.random();
  }

  uuid(): string {
    return crypto.randomUUID();
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return fetch(input, init);
  }

  keepAlive(work: Promise<unknown>): void {
    this.#ctx.waitUntil(work.catch(this.#failed));
  }

  rethrowIfHalted(): void {}

  outlive<T>(work: Promise<T>): Promise<T> {
    return work;
  }

  probe(label: string, side: ProbeSide): void {
    if (this.crash === undefined || this.crash.label !== label || this.crash.side !== side) return;
    this.crash = undefined;
    this.#ctx.abort("killed on request, in local mode");
  }
}

/** Logs one JSON line per message, with secrets taken out. */
export function consoleLog(base: LogFields, env: Record<string, unknown>): Log {
  return new ConsoleLog(base, env);
}

/** A class: each live chat has one, and closures of its own would cost memory in each. */
class ConsoleLog implements Log {
  readonly #base: LogFields;
  readonly #env: Record<string, unknown>;

  constructor(base: LogFields, env: Record<string, unknown>) {
    this.#base = base;
    this.#env = env;
  }

  debug(message: string, fields?: LogFields): void {
    if (this.#env.HOLDFAST_LOG === "debug") this.#say("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#say("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#say("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#say("error", message, fields);
  }

  #say(level: keyof Log, message: string, fields: LogFields = {}): void {
    // Before it is JSON: escaping would hide a secret from the search.
    const clean = (_key: string, value: unknown) =>
      typeof value === "string" ? redact(value, this.#env) : value;
    console[level](JSON.stringify({ level, message, ...this.#base, ...fields }, clean));
  }
}
