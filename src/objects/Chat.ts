/**
 * The engine of one chat, over any `Host`: it wires inbox, outbox, alarms and retention together and
 * decides nothing itself. The Durable Object shell around it is `ChatActor.ts`.
 *
 * @module
 */

import { Retention } from "../alarms/retention.ts";
import { wireError } from "../channels/wireError.ts";
import { Flows } from "../flows/Flows.ts";
import type { Host } from "../host/Host.ts";
import type { Identity } from "../journal/Journal.ts";
import { IllegalTransitionError } from "../journal/records.ts";
import { ActorClient } from "../turns/ActorClient.ts";
import type { BotRuntime, ListenerTools } from "../turns/BotRuntime.ts";
import type { ContextParts } from "../turns/TurnContext.ts";
import { TurnRunner } from "../turns/TurnRunner.ts";
import { Acks } from "./Acks.ts";
import type { Receipt, ReceiveAnswer, ReceiveRequest } from "./Admission.ts";
import { ChatLog } from "./ChatLog.ts";
import { Core } from "./Core.ts";
import { Inbox } from "./Inbox.ts";
import { Migration } from "./Migration.ts";
import { type ChatMethods, Operations } from "./Operations.ts";
import { Outbox } from "./Outbox.ts";
import { Reporter } from "./Reporter.ts";
import { SideCalls } from "./SideCalls.ts";

/** How much of the platform's deadline an answer may be held; the rest is for the way back. */
const HOLD_SHARE = 0.9;

/** One chat. */
export class Chat {
  readonly #core: Core;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #retention: Retention;
  readonly #operations: Operations;
  readonly #reporter: Reporter;
  readonly #acks: Acks;
  readonly #migration: Migration;
  readonly #flows: () => Flows;

  /** Never throws: trouble with storage shows at the first use, where it can be answered. */
  constructor(host: Host, bot: BotRuntime, name: string) {
    const core = new Core(host, bot, name);
    this.#core = core;
    const clientFor = (origin: "bot" | "runtime") =>
      new ActorClient(host.actors, bot, () => host.uuid(), origin, host.clock, host.env);
    let client: ActorClient | undefined;
    let notices: ActorClient | undefined;
    const tools = (): ListenerTools => {
      notices ??= clientFor("runtime");
      return { env: host.env, client: notices, log: host.log };
    };
    const log = new ChatLog(core);
    this.#reporter = new Reporter(core);
    const onTrouble = () => this.#reporter.trouble();
    core.onTrouble = onTrouble;
    this.#outbox = new Outbox(core, tools, onTrouble);
    const side = new SideCalls(core);
    this.#acks = new Acks(host.clock, bot.busy.ack);
    const liveMedia = (id: string) => this.#inbox.takeLiveMedia(id);
    const parts: ContextParts = {
      core,
      outbox: this.#outbox,
      side,
      log,
      get client() {
        client ??= clientFor("bot");
        return client;
      },
      acks: this.#acks,
      liveMedia,
      flows: () => this.#flows(),
    };
    const runner = new TurnRunner(parts, tools);
    let flows: Flows | undefined;
    // Made when a flow is used: every live chat would have one, and few have flows.
    this.#flows = () => {
      flows ??= new Flows(
        parts,
        () => this.#inbox.kick(),
        (turn, error) => runner.announceError(turn, error),
      );
      return flows;
    };
    this.#inbox = new Inbox(core, this.#outbox, runner, onTrouble);
    this.#inbox.connect(this.#flows);
    this.#inbox.onEnded = (id) => this.#acks.note(id, "ended");
    this.#retention = new Retention(core);
    this.#operations = new Operations(core, this.#inbox, this.#outbox, side, log, this.#flows);
    this.#migration = new Migration(core);
    core.moved = (to) => this.#migration.moved(to);
    core.wanted = () => this.#wanted();
    core.unfinished = () =>
      earliest(this.#outbox.nextDue(), this.#inbox.nextDue(), this.#flowsDue());
  }

  /**
   * Admits what a webhook brought. Resolves once it is committed, or once its turn got as far as `ack`
   * asks; turns run on by themselves.
   *
   * @param payload JSON of a `ReceiveRequest`
   * @returns JSON of a `ReceiveAnswer`
   */
  receive(payload: string): string | Promise<string> {
    const request = JSON.parse(payload) as ReceiveRequest;
    if (this.#migration.concerns(request)) return this.#receiveMoved(request);
    return this.#admit(request);
  }

  /** The chat has been renamed: what arrives goes to the actor that owns it. */
  async #receiveMoved(request: ReceiveRequest): Promise<string> {
    await this.#migration.askOther(request);
    return (await this.#migration.forward(request)) ?? this.#admit(request);
  }

  #admit(request: ReceiveRequest): string | Promise<string> {
    let received: Receipt;
    try {
      received = this.#inbox.receive(request);
    } catch (error) {
      this.#core.host.rethrowIfHalted(error);
      if (!this.#core.settings.failOpen || isBug(error)) throw error;
      return JSON.stringify(this.#inbox.dispatchUnjournaled(request, error));
    }
    const { answer, statuses } = received;
    for (const { row, status } of statuses) {
      this.#outbox.announcer.tell("status", { ...status, key: this.#operations.keyOf(row) });
    }
    if (!this.#acks.holds || !answer.ok || request.atCommit) return JSON.stringify(answer);
    return this.#hold(request, answer);
  }

  /** Holds the answer until every event of it got far enough, or the platform would give up waiting. */
  async #hold(request: ReceiveRequest, answer: ReceiveAnswer): Promise<string> {
    const { journal, bot } = this.#core;
    const deadline = bot.channel(request.connection)?.capabilities.deadlineMs ?? 0;
    const acks = await Promise.all(
      request.items.map((item) => {
        if (item.type !== "event") return "ok" as const;
        const row = journal.inbox.byId(item.event.id);
        // A duplicate joins whoever waits for its record; one that is over has its answer.
        const open = row !== undefined && (row.state === "pending" || row.state === "processing");
        return open ? this.#acks.wait(item.event.id, deadline * HOLD_SHARE) : ("ok" as const);
      }),
    );
    if (!acks.includes("nacked")) return JSON.stringify(answer);
    const refused: ReceiveAnswer = { ok: false, retryAfterSeconds: 1, reason: "nacked" };
    return JSON.stringify(refused);
  }

  /** Calls an operation by name. JSON both ways; errors come back as values. */
  async call(method: string, payload: string): Promise<string> {
    if (method === "receive") return this.receive(payload);
    if (method === "wake") return this.#wake();
    const owner = this.#migration.ownerFor(method, payload);
    if (owner !== undefined) return this.#migration.pass(owner, method, payload);
    try {
      const {
        identity,
        via: _via,
        ...input
      } = JSON.parse(payload) as {
        identity?: Omit<Identity, "name" | "v">;
        via?: string[];
      };
      if (identity !== undefined) this.#identify(identity);
      if (method === "forward") {
        const { to } = input as unknown as { to: string };
        return JSON.stringify({ value: this.#migration.setForward(to) });
      }
      if (method === "movedTo") {
        const notice = input as unknown as { chat: string; renamed: boolean };
        return JSON.stringify({ value: this.#migration.movedTo(notice) });
      }
      const operation = this.#operations[method as keyof ChatMethods] as
        | ((input: unknown) => unknown)
        | undefined;
      if (typeof operation !== "function") throw new Error(`a chat has no method "${method}"`);
      const value = await operation.call(this.#operations, input);
      return JSON.stringify({ value });
    } catch (error) {
      this.#core.host.rethrowIfHalted(error);
      return JSON.stringify({ error: wireError(error) });
    }
  }

  /**
   * The actor's alarm: starts both loops, purges a slice, sets the next alarm. It awaits no turn, and it
   * throws only when the next alarm itself could not be set: then the platform's retry is the last net.
   */
  async alarm(): Promise<void> {
    const { alarm, journal, host } = this.#core;
    alarm.fired();
    try {
      if (!journal.exists()) return;
      if (journal.hasFlows) this.#flows().fire();
      this.#inbox.kick();
      this.#outbox.kick();
      host.keepAlive(this.#migration.install());
      if (this.#retention.purge() && !this.live) {
        // No await since the check: nothing can have come in between.
        const gone = host.deleteAll();
        journal.forget();
        alarm.reset();
        this.#retention.reset();
        this.#reporter.flush();
        await gone;
        return;
      }
    } catch (error) {
      host.rethrowIfHalted(error);
      host.log.error("the alarm could not do its work", { error: String(error) });
    }
    this.#reporter.flush();
    const next = this.#wanted();
    if (next !== undefined) journal.commit("alarm.rearm", () => alarm.arm(next));
  }

  /** Looks whether anything is due and makes sure that an alarm is set: heals one that was lost. */
  async #wake(): Promise<string> {
    this.#core.alarm.forget();
    await this.alarm();
    this.#reporter.trouble();
    return JSON.stringify({ value: null });
  }

  /** Whether a loop is at work in this incarnation. */
  get live(): boolean {
    return this.#inbox.live || this.#outbox.live || this.#outbox.announcer.live;
  }

  /** The earliest time that anything no live loop holds needs. */
  #wanted(): number | undefined {
    const { journal } = this.#core;
    if (!journal.exists()) return undefined;
    const times: (number | undefined)[] = [this.#retention.nextAt()];
    times.push(this.#migration.nextAt(), this.#flowsDue());
    if (this.live) times.push(this.#core.now() + this.#core.watchdogMs);
    if (!this.#outbox.live) times.push(this.#outbox.nextDue());
    if (!this.#inbox.live) times.push(this.#inbox.nextDue());
    return earliest(...times);
  }

  /** When a flow needs the alarm. */
  #flowsDue(): number | undefined {
    const { journal } = this.#core;
    return journal.exists() && journal.hasFlows ? journal.flows.nextDue() : undefined;
  }

  /** Tells a chat that has never received anything who it is, so that it can send. */
  #identify(identity: Omit<Identity, "name" | "v">): void {
    const { journal, name } = this.#core;
    if (journal.identity() === undefined) journal.identify({ ...identity, name });
  }
}

function earliest(...times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Whether the code is at fault, not the disk: then no event may run that has no record. */
function isBug(error: unknown): boolean {
  const bugs = [TypeError, ReferenceError, RangeError, SyntaxError, IllegalTransitionError];
  return bugs.some((one) => error instanceof one);
}
