/**
 * What the engine needs from the machine under it, and nothing more. Two implementations: Durable
 * Object storage (`src/objects/DurableHost.ts`) and `node:sqlite` with a virtual clock
 * (`src/testing/node/`). The engine imports this file, never `cloudflare:*`.
 *
 * @module
 */
import type { Clock } from "../time/Clock.ts";

/** A value that a SQL parameter or column may hold. 64-bit platform ids travel as text. */
export type SqlValue = string | number | null;

/** A row by column name. */
export type SqlRow = Record<string, SqlValue>;

/** Synchronous SQL on the actor's own database. */
export interface Sql {
  /** Runs one statement and returns its rows (empty for a write without RETURNING). */
  all<R extends SqlRow = SqlRow>(query: string, ...params: SqlValue[]): R[];
  /** Runs one write and returns how many rows it wrote: 0 exactly when it changed nothing. */
  run(query: string, ...params: SqlValue[]): number;
}

/** Where a crash can be injected: right before or right after a labelled step. */
export type ProbeSide = "before" | "after";

/** The actor classes that an actor may call. */
export type ActorKind = "ChatActor" | "Connection" | "Registry" | "WebChat";

/** Calls to other actors. Payloads are JSON text both ways, so that versions can differ in a rollout. */
export interface Actors {
  /**
   * Calls `method` of the named actor and resolves to its JSON answer.
   * @throws whatever the other side threw, or a transport error: the call may then have run.
   */
  call(kind: ActorKind, name: string, method: string, payload: string): Promise<string>;
}

/** A structured log line. Never message text, never a secret. */
export type LogFields = Record<string, string | number | boolean | null | undefined>;

/** Levels in rising order. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** The machine under one actor incarnation. */
export interface Host {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly actors: Actors;
  readonly log: Log;
  /** The bot's environment: variables, secrets and bindings. */
  readonly env: Record<string, unknown>;
  /**
   * Runs `fn` atomically; a throw rolls back its rows and its alarm. `fn` must be synchronous: the
   * runtime accepts an async callback and then covers only its synchronous prefix.
   * `label` names the commit in the crash matrix.
   */
  transaction<T>(label: string, fn: () => NotPromise<T>): T;
  /** Sets the actor's one alarm. Only `AlarmClock` calls it; inside `transaction` it commits with the rows. */
  setAlarm(at: number): void;
  /** Removes the alarm. */
  deleteAlarm(): void;
  /** Deletes every row, every table and the alarm, at once. */
  deleteAll(): Promise<void>;
  /** Uniform in [0, 1). */
  random(): number;
  /** A random id of 128 bits as text. */
  uuid(): string;
  /** Outgoing HTTP. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Keeps the actor alive until `work` settles. Best effort: whatever must survive has a row. */
  keepAlive(work: Promise<unknown>): void;
  /** Rethrows what a simulated crash threw; other errors pass. */
  rethrowIfHalted(error: unknown): void;
  /**
   * Hands the bot's code a promise that never settles once this incarnation is dead: where a crash is
   * simulated, code of a dead process must not go on. Elsewhere it is the promise itself.
   */
  outlive<T>(work: Promise<T>): Promise<T>;
  /**
   * Marks a step that is not a transaction (a call to a channel, a listener) in the crash matrix.
   * A no-op outside tests and local mode.
   */
  probe(label: string, side: ProbeSide): void;
}

/** Rejects promises at compile time, since an async transaction would be atomic only in part. */
export type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;
