/**
 * The host of one incarnation in plain Node. Once the incarnation is dead, nothing it does has any
 * effect: synchronous calls throw, promises never settle, timers do not fire.
 *
 * @module
 */
import type { ActorKind, Actors, Host, Log, NotPromise, ProbeSide, Sql } from "../../host/Host.ts";
import type { Clock } from "../../time/Clock.ts";
import { type NodeStorage, sqlOver } from "./NodeStorage.ts";

/** What a simulated crash throws. Code of a dead process sees it, and must not swallow it. */
export class Halted extends Error {
  constructor() {
    super("this incarnation is dead");
    this.name = "Halted";
  }
}

/** What a host needs of the runtime around it. */
export interface NodeWorld {
  readonly clock: Clock;
  readonly env: Record<string, unknown>;
  readonly log: Log;
  random(): number;
  uuid(): string;
  fetch(request: Request): Promise<Response>;
  call(kind: ActorKind, name: string, method: string, payload: string): Promise<string>;
  /** Told before and after each labelled step; true kills the incarnation there. */
  probe(actor: { kind: ActorKind; name: string }, label: string, side: ProbeSide): boolean;
  /** May throw to refuse a commit, as a full disk would. */
  beforeCommit(actor: { kind: ActorKind; name: string }, label: string): void;
  alarmChanged(host: NodeHost): void;
  died(host: NodeHost): void;
}

/** One incarnation's host. */
export class NodeHost implements Host {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly actors: Actors;
  readonly log: Log;
  readonly env: Record<string, unknown>;
  readonly storage: NodeStorage;
  readonly actor: { kind: ActorKind; name: string };
  readonly #world: NodeWorld;
  #alive = true;

  constructor(world: NodeWorld, storage: NodeStorage, actor: { kind: ActorKind; name: string }) {
    this.#world = world;
    this.storage = storage;
    this.actor = actor;
    this.env = world.env;
    const check = () => this.#check();
    this.sql = sqlOver(storage, check);
    this.clock = {
      now: () => world.clock.now(),
      setTimer: (ms, fn) => {
        check();
        return world.clock.setTimer(ms, () => {
          if (this.#alive) fn();
        });
      },
    };
    this.actors = {
      call: (kind, name, method, payload) => {
        check();
        return this.#guard(world.call(kind, name, method, payload));
      },
    };
    const say = (level: keyof Log): Log["info"] => {
      return (message, fields) => {
        if (this.#alive) world.log[level](message, { actor: actor.name, ...fields });
      };
    };
    this.log = { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Ends this incarnation here and now. */
  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#world.died(this);
  }

  transaction<T>(label: string, fn: () => NotPromise<T>): T {
    this.#check();
    this.#hit(label, "before");
    const value = this.storage.transaction(() => {
      this.#world.beforeCommit(this.actor, label);
      return fn() as T;
    });
    this.#world.alarmChanged(this);
    this.#hit(label, "after");
    return value;
  }

  setAlarm(at: number): void {
    this.#check();
    this.storage.alarm = at;
  }

  deleteAlarm(): void {
    this.#check();
    this.storage.alarm = undefined;
    this.#world.alarmChanged(this);
  }

  deleteAll(): Promise<void> {
    this.#check();
    this.#hit("deleteAll", "before");
    this.storage.clear();
    this.#world.alarmChanged(this);
    this.#hit("deleteAll", "after");
    return Promise.resolve();
  }

  random(): number {
    return this.#world.random();
  }

  uuid(): string {
    return this.#world.uuid();
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    this.#check();
    const { signal, ...rest } = init ?? {};
    // Undici checks the realm of a signal; the abort is raced here instead.
    const request = new Request(input, rest);
    const answer = this.#guard(this.#world.fetch(request));
    if (!signal) return answer;
    return Promise.race([
      answer,
      new Promise<never>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
    ]);
  }

  keepAlive(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (this.#alive && !(error instanceof Halted))
        this.log.error("background work failed", { error: String(error) });
    });
  }

  rethrowIfHalted(error: unknown): void {
    if (error instanceof Halted) throw error;
  }

  outlive<T>(work: Promise<T>): Promise<T> {
    return this.#guard(work);
  }

  probe(label: string, side: ProbeSide): void {
    this.#check();
    this.#hit(label, side);
  }

  #check(): void {
    if (!this.#alive) throw new Halted();
  }

  #hit(label: string, side: ProbeSide): void {
    if (this.#world.probe(this.actor, label, side)) {
      this.kill();
      throw new Halted();
    }
  }

  #guard<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(
        (value) => {
          if (this.#alive) resolve(value);
        },
        (error: unknown) => {
          if (this.#alive) reject(error);
        },
      );
    });
  }
}
