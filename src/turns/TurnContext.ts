/**
 * The mechanics behind `Context`. It holds no state of its own: everything is in the `Turn` and in rows.
 *
 * @module
 */
import type { Content, JsonObject } from "../channels/content.ts";
import {
  ConfigError,
  DeliveryError,
  MediaUnavailableError,
  SendDeferredError,
  TurnEndedError,
  UnsupportedContentError,
} from "../channels/errors.ts";
import type { Address, ChatInfo, InboundEvent, MediaRef, Sender } from "../channels/events.ts";
import type { StartInput } from "../flows/Flows.ts";
import type { Flow, StartedRun, StartOptions } from "../flows/types.ts";
import type { Log } from "../host/Host.ts";
import type { Acks } from "../objects/Acks.ts";
import type { ChatLog } from "../objects/ChatLog.ts";
import type { Core } from "../objects/Core.ts";
import { parseAddress } from "../objects/names.ts";
import type { Outbox } from "../objects/Outbox.ts";
import type { SideCalls } from "../objects/SideCalls.ts";
import { KEPT_BUTTON, parseButtonValue } from "../outbox/content.ts";
import type { Outcome } from "../outbox/Deliveries.ts";
import type { Decided } from "../outbox/draft.ts";
import { actorAt } from "../outbox/relay.ts";
import { errorOf, reasonOf, receiptOf } from "../outbox/results.ts";
import type { StreamOptions, StreamSource } from "../streams/types.ts";
import type { Duration } from "../time/duration.ts";
import { batchOf } from "./batch.ts";
import type { Client } from "./Client.ts";
import type { ChatAt, Context, EngineContext, LooseState, Press } from "./Context.ts";
import { type History, historyOf } from "./history.ts";
import type { BatchResult, EnqueueOptions, SendOptions, SendResult } from "./sends.ts";
import type { Turn, TurnParts } from "./Turn.ts";

/** What the context of a chat's turns needs. */
export interface ContextParts {
  core: Core;
  outbox: Outbox;
  side: SideCalls;
  log: ChatLog;
  client: Client;
  acks: Acks;
  /** The chat's flows; filled in by the engine once it is made. */
  flows: () => FlowGate;
  /** Media references of an event that only this life has; given once. */
  liveMedia(id: string): MediaRef[] | undefined;
}

/** What a context asks of the chat's flows. */
export interface FlowGate {
  start(start: StartInput): StartedRun;
  take(turn: Turn, ctx: Context): Promise<boolean>;
  wake(turn: Turn, event: InboundEvent): Promise<void>;
}

/** The context of one run. */
export class TurnContext implements EngineContext {
  readonly event: InboundEvent;
  readonly chat: ChatInfo;
  readonly address: Address;
  readonly ref: { readonly id: string };
  readonly attempt: number;
  readonly replayed: boolean;
  readonly env: unknown;
  readonly log: Log;
  readonly state: LooseState;
  readonly user: LooseState;
  readonly press: Press | undefined;
  /** Set by the router before a handler that was matched by a regular expression. */
  match: RegExpMatchArray = [] as unknown as RegExpMatchArray;
  readonly #turn: TurnParts;
  readonly #whole: Turn | undefined;
  readonly #parts: ContextParts;

  /** @param whole the turn itself; absent for a run of a flow inside one */
  constructor(parts: ContextParts, turn: TurnParts, whole?: Turn) {
    const { core } = parts;
    this.#parts = parts;
    this.#turn = turn;
    this.#whole = whole;
    this.event = turn.event;
    this.chat = turn.event.chat;
    this.address = core.address();
    this.ref = { id: turn.row.id };
    this.attempt = turn.row.runs;
    this.replayed = turn.row.runs > 1;
    this.env = core.host.env;
    this.log = core.host.log;
    this.state = turn.state.scope("");
    this.press = pressOf(core, turn.event);
    this.user = turn.state.scope(`u:${turn.event.sender?.id ?? ""}`);
  }

  get client(): Client {
    return this.#parts.client;
  }

  get sender(): Sender | undefined {
    return this.event.sender;
  }

  get text(): string {
    return this.event.text ?? "";
  }

  get burst(): readonly InboundEvent[] {
    return this.#turn.burst;
  }

  get media(): readonly MediaRef[] {
    return this.event.media ?? [];
  }

  get signal(): AbortSignal {
    return this.#turn.signal;
  }

  get message(): Context["message"] {
    const id = this.event.messageId;
    return {
      id,
      edit: async (content) => {
        if (id === undefined) throw new UnsupportedContentError("this event is about no message");
        await this.#outlive(this.#parts.side.edit(id, content));
      },
    };
  }

  reply(content: Content, options: SendOptions = {}): Promise<SendResult> {
    return this.#say(content, options, true);
  }

  send(content: Content, options: SendOptions = {}): Promise<SendResult> {
    return this.#say(content, options, true);
  }

  enqueue(content: Content, options: EnqueueOptions = {}): Promise<SendResult> {
    return this.#say(content, options, false);
  }

  stream(source: StreamSource, options: StreamOptions = {}): Promise<SendResult> {
    const { sends, steps } = this.#turn;
    const { signal } = this;
    return this.#tell(
      this.#parts.outbox.stream({ sends, scope: steps.scope(), source, options, signal }),
      true,
      true,
    );
  }

  sendBatch(contents: readonly Content[], options: SendOptions = {}): Promise<BatchResult> {
    // Decided in one go, so that the ordinals are the batch's own whatever runs beside it.
    const decided = contents.map((content, index) => {
      const key = options.idempotencyKey;
      const own = key === undefined ? options : { ...options, idempotencyKey: `${key}.${index}` };
      return this.#intend(content, own, true);
    });
    return this.#outlive(batchOf(decided));
  }

  typing(): Promise<void> {
    return this.#outlive(this.#parts.side.typing());
  }

  react(emoji: string): Promise<boolean> {
    const id = this.event.messageId;
    return id === undefined
      ? Promise.resolve(false)
      : this.#outlive(this.#parts.side.react(id, emoji));
  }

  step<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    if (this.#turn.sends.closed) return Promise.reject(new TurnEndedError("this turn is over"));
    return this.#outlive(this.#turn.steps.run(name, fn));
  }

  async start(flow: Flow, input?: unknown, options: StartOptions = {}): Promise<StartedRun> {
    if (this.#turn.sends.closed) throw new TurnEndedError("this turn is over");
    if (this.#turn.sends.unjournaled)
      throw new ConfigError("a flow needs the journal, which refuses writes (failOpen)");
    this.#turn.starts += 1;
    const id = options.id ?? `${flow.name}:${this.ref.id}:${this.#turn.starts}`;
    const owner = options.sender ?? this.sender?.id ?? "";
    const { active } = options;
    const run = this.#parts.flows().start({ flow: flow.name, id, owner, input, active });
    // Named after this turn: an earlier run of this very turn has started it.
    const mine = options.id === undefined && active !== "keep";
    return mine ? { ...run, started: true } : run;
  }

  takeByRun(): Promise<boolean> {
    return this.#whole === undefined || !this.#parts.core.journal.hasFlows
      ? Promise.resolve(false)
      : this.#parts.flows().take(this.#whole, this);
  }

  async wakeRun(): Promise<void> {
    if (this.#whole !== undefined) await this.#parts.flows().wake(this.#whole, this.event);
  }

  async history(options: { limit?: number } = {}): Promise<History> {
    return historyOf(this.#parts.log.recent(options.limit ?? 50));
  }

  api(method: string, body: JsonObject = {}): Promise<unknown> {
    return this.#outlive(this.#parts.side.api(method, body, this.signal));
  }

  ack(): void {
    this.#parts.acks.note(this.ref.id, "acked");
  }

  async loadMedia(
    media: MediaRef | number = 0,
    options: { maxBytes?: number | undefined } = {},
  ): Promise<Uint8Array> {
    const ref = typeof media === "number" ? this.media[media] : media;
    if (ref === undefined) {
      throw new MediaUnavailableError("this event has no such media", {
        reason: "rehydrate-failed",
      });
    }
    return this.#outlive(this.#parts.side.loadMedia(ref, options.maxBytes, this.signal));
  }

  nack(error?: unknown, options: { after?: Duration } = {}): void {
    this.#turn.retry = { ...(options.after === undefined ? {} : { after: options.after }), error };
  }

  async answer(text?: string): Promise<void> {
    const pressId = this.event.press?.pressId;
    if (pressId === undefined || this.#turn.answered) return;
    this.#turn.answered = true;
    await this.#outlive(this.#parts.side.answerPress(pressId, text));
  }

  chatAt(to: Address | string): ChatAt {
    const { core } = this.#parts;
    const address = typeof to === "string" ? parseAddress(to) : to;
    const here = actorAt(core, address) === core.name;
    const target = { ...address, connection: address.connection ?? address.channel };
    return {
      address: target,
      send: (content, options = {}) => this.#say(content, options, true, here ? undefined : target),
    };
  }

  #intend(
    content: Content,
    options: EnqueueOptions,
    wait: boolean,
    relayTo?: Address,
  ): Promise<Decided> {
    const { sends, steps } = this.#turn;
    return this.#parts.outbox.intend({
      sends,
      scope: steps.scope(),
      content,
      options,
      wait,
      origin: relayTo === undefined ? "bot" : "relay",
      ...(relayTo === undefined ? {} : { relayTo }),
    });
  }

  #say(
    content: Content,
    options: EnqueueOptions,
    wait: boolean,
    relayTo?: Address,
  ): Promise<SendResult> {
    const deciding = this.#intend(content, options, wait, relayTo).then((decided) =>
      relayTo === undefined ? decided : handedOver(decided),
    );
    // That the other chat goes on with it is what a relay promises, and no reason to throw.
    return this.#tell(deciding, wait, relayTo === undefined);
  }

  #tell(deciding: Promise<Decided>, wait: boolean, strict: boolean): Promise<SendResult> {
    const said = this.#outlive(deciding.then((decided) => this.#result(decided, wait, strict)));
    // A send that nobody awaits must not fail the process; whoever awaits it still sees the error.
    said.catch(() => undefined);
    return said;
  }

  #result(decided: Decided, wait: boolean, strict: boolean): SendResult {
    const { key } = decided;
    // Whoever does not wait was told "deferred" at first, and is told the same on a replay.
    const outcome: Outcome =
      !wait && decided.outcome.status === "dead"
        ? { status: "deferred", rows: [] }
        : decided.outcome;
    if (outcome.status === "dead") throw errorOf(outcome.rows, key);
    if (
      outcome.status === "deferred" &&
      wait &&
      strict &&
      this.#parts.core.settings.outbox.onDeferred === "throw"
    ) {
      throw new SendDeferredError("the send goes on in the background; look its key up later", {
        key,
      });
    }
    const reason =
      decided.reason ?? (outcome.status === "suppressed" ? reasonOf(outcome.rows) : undefined);
    const receipt = outcome.status === "sent" ? receiptOf(outcome.rows) : undefined;
    const target = (): string => {
      if (receipt === undefined)
        throw new DeliveryError(`${key} is ${outcome.status}: there is no message to change`, {
          key,
        });
      return receipt.primaryId;
    };
    return {
      key,
      status: outcome.status,
      ...(receipt === undefined ? {} : { receipt }),
      ...(reason === undefined ? {} : { reason }),
      edit: async (content) => this.#outlive(this.#parts.side.edit(target(), content)),
      delete: async () => this.#outlive(this.#parts.side.delete(target())),
    };
  }

  #outlive<T>(work: Promise<T>): Promise<T> {
    return this.#parts.core.host.outlive(work);
  }
}

/** Recorded by the other chat is all that this one knows: delivery goes on there. */
function handedOver(decided: Decided): Decided {
  return decided.outcome.status === "sent"
    ? { ...decided, outcome: { status: "deferred", rows: [] } }
    : decided;
}

/** The button behind a press; long data comes from the journal, and is gone once its message is. */
function pressOf(core: Core, event: InboundEvent): Press | undefined {
  const value = event.press?.value;
  if (value === undefined) return undefined;
  const text = value.startsWith(KEPT_BUTTON)
    ? core.journal.side.button(value.slice(KEPT_BUTTON.length))
    : value;
  return (text === undefined ? undefined : parseButtonValue(text)) ?? { expired: true };
}
