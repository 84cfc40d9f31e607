/**
 * Many actors in plain Node under a virtual clock: calls between them, alarms with the platform's
 * retries, deaths at any labelled step, and restarts on the same storage.
 *
 * @module
 */
import type { ActorKind, Log, ProbeSide } from "../../host/Host.ts";
import { seededRandom } from "../random.ts";
import { NodeHost, type NodeWorld } from "./NodeHost.ts";
import { NodeStorage } from "./NodeStorage.ts";
import { settle, VirtualClock } from "./VirtualClock.ts";

/** What runs in an actor. */
export interface ActorEngine {
  call(method: string, payload: string): string | Promise<string>;
  alarm?(): Promise<void>;
}

/** Makes the engine of an actor when it wakes. */
export type MakeEngine = (host: NodeHost, kind: ActorKind, name: string) => ActorEngine;

/** A labelled step that was reached. */
export interface ProbeHit {
  kind: ActorKind;
  actor: string;
  label: string;
  side: ProbeSide;
}

/** Options of a runtime. */
export interface NodeRuntimeOptions {
  make: MakeEngine;
  env?: Record<string, unknown>;
  /** Where time begins: epoch milliseconds. Default 2026-01-01. */
  now?: number;
  /** Makes every random decision repeatable. Default 1. */
  seed?: number;
  fetch?: (request: Request) => Promise<Response>;
  log?: Log;
}

interface NodeActor {
  kind: ActorKind;
  name: string;
  storage: NodeStorage;
  host: NodeHost | undefined;
  engine: ActorEngine | undefined;
  /** Cancels the timer of the armed alarm. */
  cancelAlarm: (() => void) | undefined;
  armedAt: number | undefined;
  alarmRunning: boolean;
  alarmFailures: number;
}

/** The platform gives an alarm up after this many failed retries (durable-objects §1.4). */
const ALARM_RETRIES = 6;

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** What a call to a dead actor rejects with: what the platform's reset looks like to a caller. */
export class ActorResetError extends Error {
  readonly retryable = true;
  readonly durableObjectReset = true;
  constructor() {
    super("the actor was reset");
    this.name = "ActorResetError";
  }
}

/** The runtime. */
export class NodeRuntime implements NodeWorld {
  readonly clock: VirtualClock;
  readonly env: Record<string, unknown>;
  readonly log: Log;
  readonly random: () => number;
  /** Every labelled step that was reached, by `label side`, and how often. */
  readonly hits = new Map<string, number>();
  /** Decides deaths. Replaced by tests. */
  onProbe: (hit: ProbeHit) => boolean = () => false;
  /** May throw to refuse a commit. Replaced by tests. */
  onCommit: (actor: string, label: string) => void = () => {};
  /** May throw to refuse a call between actors. Replaced by tests. */
  onCall: (kind: ActorKind, name: string, method: string) => void = () => {};
  /** How many alarms ran. */
  alarmRuns = 0;
  /** How many calls between actors were made. */
  calls = 0;
  make: MakeEngine;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #actors = new Map<string, NodeActor>();
  #uuids = 0;

  constructor(options: NodeRuntimeOptions) {
    this.make = options.make;
    this.env = options.env ?? {};
    this.clock = new VirtualClock(options.now ?? Date.UTC(2026, 0, 1));
    this.random = seededRandom(options.seed ?? 1);
    this.log = options.log ?? silent;
    this.#fetch =
      options.fetch ??
      ((request) =>
        Promise.reject(new Error(`unmocked fetch of ${request.method} ${request.url}`)));
  }

  uuid(): string {
    this.#uuids += 1;
    const hex = () =>
      Math.floor(this.random() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, "0");
    return `${hex()}-${hex()}-${this.#uuids.toString(16)}`;
  }

  fetch(request: Request): Promise<Response> {
    return this.#fetch(request);
  }

  probe(actor: { kind: ActorKind; name: string }, label: string, side: ProbeSide): boolean {
    const key = `${label} ${side}`;
    this.hits.set(key, (this.hits.get(key) ?? 0) + 1);
    return this.onProbe({ kind: actor.kind, actor: actor.name, label, side });
  }

  beforeCommit(actor: { kind: ActorKind; name: string }, label: string): void {
    this.onCommit(actor.name, label);
  }

  /** Calls an actor, waking it where needed. */
  async call(kind: ActorKind, name: string, method: string, payload: string): Promise<string> {
    this.calls += 1;
    this.onCall(kind, name, method);
    const actor = this.#actor(kind, name);
    // A call arrives in a later turn of the event loop, as it does over the network.
    await Promise.resolve();
    const { host, engine } = this.#wake(actor);
    return new Promise((resolve, reject) => {
      const whenDead = () => reject(new ActorResetError());
      const waiting = this.#waiting.get(host) ?? new Set();
      this.#waiting.set(host, waiting.add(whenDead));
      Promise.resolve()
        .then(() => engine.call(method, payload))
        .then(
          (answer) => (host.alive ? resolve(answer) : whenDead()),
          (error: unknown) => (host.alive ? reject(error) : whenDead()),
        )
        .finally(() => waiting.delete(whenDead));
    });
  }
  readonly #waiting = new Map<NodeHost, Set<() => void>>();

  /** Kills one actor, or all: memory is lost, storage stays. */
  kill(name?: string): void {
    for (const actor of this.#actors.values()) {
      if (name === undefined || actor.name === name) actor.host?.kill();
    }
  }

  /** Actors of a kind that exist. */
  names(kind: ActorKind): string[] {
    return [...this.#actors.values()]
      .filter((actor) => actor.kind === kind)
      .map((actor) => actor.name);
  }

  /** An actor's storage, for assertions. */
  storage(kind: ActorKind, name: string): NodeStorage {
    return this.#actor(kind, name).storage;
  }

  /** The running engine of an actor, if it is awake. */
  engine(kind: ActorKind, name: string): ActorEngine | undefined {
    return this.#actors.get(`${kind} ${name}`)?.engine;
  }

  /** Deletes an actor's alarm behind its back. */
  loseAlarm(kind: ActorKind, name: string): void {
    const actor = this.#actor(kind, name);
    actor.storage.alarm = undefined;
    this.#arm(actor);
  }

  /** Moves time by `ms`, firing what comes due. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Moves time on, timer by timer, until `done` or for `ms`. Returns whether it got done. */
  async until(done: () => boolean, ms: number): Promise<boolean> {
    const end = this.clock.now() + ms;
    await settle();
    while (!done()) {
      if (!this.clock.step(end)) return false;
      await settle();
    }
    return true;
  }

  /** Frees the databases. */
  close(): void {
    for (const actor of this.#actors.values()) {
      actor.host?.kill();
      actor.cancelAlarm?.();
      actor.storage.close();
    }
    this.#actors.clear();
  }

  alarmChanged(host: NodeHost): void {
    const actor = this.#actors.get(`${host.actor.kind} ${host.actor.name}`);
    if (actor?.host === host) this.#arm(actor);
  }

  died(host: NodeHost): void {
    const actor = this.#actors.get(`${host.actor.kind} ${host.actor.name}`);
    for (const reject of this.#waiting.get(host) ?? []) reject();
    this.#waiting.delete(host);
    if (actor?.host !== host) return;
    actor.host = undefined;
    actor.engine = undefined;
    // An alarm that was running runs again, unless it had set another.
    if (actor.alarmRunning && actor.storage.alarm === undefined)
      actor.storage.alarm = this.clock.now();
    actor.alarmRunning = false;
    this.#arm(actor);
  }

  #actor(kind: ActorKind, name: string): NodeActor {
    const key = `${kind} ${name}`;
    let actor = this.#actors.get(key);
    if (actor === undefined) {
      actor = {
        kind,
        name,
        storage: new NodeStorage(),
        host: undefined,
        engine: undefined,
        cancelAlarm: undefined,
        armedAt: undefined,
        alarmRunning: false,
        alarmFailures: 0,
      };
      this.#actors.set(key, actor);
    }
    return actor;
  }

  #wake(actor: NodeActor): { host: NodeHost; engine: ActorEngine } {
    if (actor.host === undefined || actor.engine === undefined) {
      actor.host = new NodeHost(this, actor.storage, { kind: actor.kind, name: actor.name });
      actor.engine = this.make(actor.host, actor.kind, actor.name);
    }
    return { host: actor.host, engine: actor.engine };
  }

  #arm(actor: NodeActor): void {
    const at = actor.storage.alarm;
    if (at === actor.armedAt) return;
    actor.cancelAlarm?.();
    actor.cancelAlarm = undefined;
    actor.armedAt = at;
    if (at === undefined) return;
    actor.cancelAlarm = this.clock.setTimer(at - this.clock.now(), () => this.#fire(actor));
  }

  #fire(actor: NodeActor): void {
    actor.armedAt = undefined;
    actor.cancelAlarm = undefined;
    const at = actor.storage.alarm;
    if (at === undefined) return;
    if (actor.alarmRunning) {
      // Only one alarm runs at a time: the next comes when it is done.
      actor.cancelAlarm = this.clock.setTimer(10, () => this.#fire(actor));
      return;
    }
    const { host, engine } = this.#wake(actor);
    if (engine.alarm === undefined) return;
    actor.storage.alarm = undefined;
    actor.alarmRunning = true;
    this.alarmRuns += 1;
    Promise.resolve()
      .then(() => engine.alarm?.())
      .then(
        () => {
          if (actor.host !== host) return;
          actor.alarmRunning = false;
          actor.alarmFailures = 0;
          this.#arm(actor);
        },
        (error: unknown) => {
          if (actor.host !== host) return;
          actor.alarmRunning = false;
          this.log.error("an alarm threw", { actor: actor.name, error: String(error) });
          actor.alarmFailures += 1;
          if (actor.storage.alarm === undefined && actor.alarmFailures <= ALARM_RETRIES) {
            actor.storage.alarm = this.clock.now() + 2_000 * 2 ** (actor.alarmFailures - 1);
          }
          this.#arm(actor);
        },
      );
  }
}
