/**
 * Telegram, simulated: the Bot API with its wire format, its refusals and a ledger of what it accepted.
 *
 * ```ts
 * const sim = new SimTelegram({ now: () => clock.now() });
 * const io = { fetch: (input, init) => sim.fetch(new Request(input, init)), … };
 * sim.fault({ type: "acceptThenDrop", method: "sendMessage" });
 * ```
 *
 * Its one timer ends long polls. For another process it goes behind a socket: `listen(sim.fetch)`.
 *
 * @module
 */
import { Router } from "itty-router";
import { type FaultPredicate, FaultQueue, type FaultSpec, underFault } from "./faults.ts";
import { ApiError, type Params } from "./telegram-checks.ts";
import { UpdateFeed } from "./telegram-feed.ts";
import { METHODS, type MethodCall } from "./telegram-methods.ts";
import { type StoredFile, type StoredMessage, TelegramState } from "./telegram-state.ts";
import {
  type CallbackInit,
  type DeliverOptions,
  type Delivery,
  deliverUpdate,
  type MessageInit,
  type SimUpdate,
  UpdateMaker,
} from "./telegram-updates.ts";
import { readParams, refusal, type ScreenMessage, screenOf } from "./telegram-wire.ts";

export type { FaultEffect, FaultPredicate, FaultSpec } from "./faults.ts";
export type {
  CallbackInit,
  DeliverOptions,
  Delivery,
  MessageInit,
  SimUpdate,
  SimUser,
} from "./telegram-updates.ts";
export type { ScreenMessage } from "./telegram-wire.ts";

/** Options of {@link SimTelegram}. */
export interface SimTelegramOptions {
  /** Default {@link SIM_TOKEN}. */
  token?: string;
  /** The bot's name. Default `"sim_bot"`. */
  username?: string;
  /** Epoch milliseconds. Default: the wall clock. */
  now?: () => number;
  /** What ends a long poll: calls `fn` after `ms`, unless cancelled. Default: the real timer. */
  setTimer?: (ms: number, fn: () => void) => () => void;
  /** Whether the host of a webhook leads anywhere. Default: all do. */
  resolves?: (host: string) => boolean;
}

/** A call as faults see it. */
export interface SimCall {
  method: string;
  params: Params;
}

/** A message that the platform accepted. Ids are text, as in receipts and addresses. */
export interface SentMessage {
  messageId: string;
  chatId: string;
  threadId?: string;
  /** The text, or the caption of media, as accepted: later edits do not show here. */
  text: string;
  method: string;
  at: number;
  body: Params;
}

/** How long a draft is shown, in ms (Bot API, sendMessageDraft). */
const DRAFT_MS = 30_000;

/** The token that the simulation takes unless told otherwise. */
export const SIM_TOKEN = "4200:SIM-token_for-tests";

/** A simulated Bot API with one bot. */
export class SimTelegram {
  readonly token: string;
  /** Every message accepted, in order; the truth about what was said. */
  readonly sent: SentMessage[] = [];
  /** Every call that reached the platform, refused ones too. */
  readonly calls: (SimCall & { at: number })[] = [];
  /** Every answer to a press. */
  readonly pressAnswers: { pressId: string; text?: string; at: number }[] = [];
  readonly #state: TelegramState;
  readonly #updates: UpdateMaker;
  readonly #faults = new FaultQueue<SimCall>();
  readonly #router = Router();
  readonly #feed: UpdateFeed;

  constructor(options: SimTelegramOptions = {}) {
    this.token = options.token ?? SIM_TOKEN;
    const botId = Number.parseInt(this.token, 10) || 4_200;
    this.#state = new TelegramState(
      botId,
      options.username ?? "sim_bot",
      options.now ?? (() => Date.now()),
    );
    this.#updates = new UpdateMaker(this.#state);
    this.#feed = new UpdateFeed({
      now: this.#state.now,
      setTimer: options.setTimer ?? realTimer,
      resolves: options.resolves ?? (() => true),
    });
    this.#router
      .all("/bot:token/:method", ({ params, request }) =>
        this.#call(params.token ?? "", params.method ?? "", request),
      )
      .get("/file/bot:token/:path+", ({ params, request }) =>
        this.#download(params.token ?? "", params.path ?? "", request),
      )
      .all("*", () => refusal(404, "Not Found"));
  }

  /** Answers a request; bound, so that it can be handed on. */
  readonly fetch = (request: Request): Promise<Response> =>
    // The router writes onto what it is given; the request stays as it came.
    this.#router.fetch({ method: request.method, url: request.url, request });

  /** Makes calls go wrong. Returns a function that ends it. */
  fault(fault: FaultSpec<SimCall> | FaultPredicate<SimCall>): () => void {
    return this.#faults.add(fault);
  }

  /** Ends every fault. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** What is visible in a chat, after edits and deletions, in order. */
  screen(chatId: number | string, threadId?: number | string): ScreenMessage[] {
    const messages = [...this.#state.chat(String(chatId)).messages.values()];
    return messages
      .filter((message) => threadId === undefined || String(message.threadId) === String(threadId))
      .sort((a, b) => a.id - b.id)
      .map(screenOf);
  }

  /** The text of a message that the bot is seen to write: gone with its next message, or after 30 s. */
  draft(chatId: number | string): string | undefined {
    const { draft } = this.#state.chat(String(chatId));
    return draft !== undefined && this.#state.now() - draft.at < DRAFT_MS ? draft.text : undefined;
  }

  /** The user blocks the bot, or lets it in again. */
  block(chatId: number | string, blocked = true): void {
    this.#state.chat(String(chatId)).blocked = blocked;
  }

  /** A group becomes a supergroup: sends to the old id are refused with the new one. */
  migrate(from: number | string, to: number | string): void {
    this.#state.chat(String(from)).migratedTo = String(to);
  }

  /** Puts a file on the platform, for `getFile` and for sends by file id. */
  addFile(
    bytes: Uint8Array,
    about?: { fileId?: string; mimeType?: string; filename?: string },
  ): StoredFile {
    return this.#state.addFile(bytes, about);
  }

  /** Somebody writes. */
  messageUpdate(init: MessageInit): SimUpdate {
    return this.#updates.message(init);
  }

  /** Somebody edits a message of theirs. */
  editedUpdate(init: MessageInit & { messageId: number }): SimUpdate {
    return this.#updates.edited(init);
  }

  /** Somebody presses a button. */
  callbackUpdate(init: CallbackInit): SimUpdate {
    return this.#updates.callback(init);
  }

  /** What `setWebhook` was told; empty without a webhook. */
  get webhook(): Params {
    return this.#feed.webhook;
  }

  /** Ids of updates that were confirmed, by an offset or by a webhook's 2xx, in order. */
  get confirmed(): readonly number[] {
    return this.#feed.confirmed;
  }

  /** Updates that are not confirmed. */
  get pending(): readonly SimUpdate[] {
    return this.#feed.pending;
  }

  /** Something happened: it waits for `getUpdates`, or for {@link push}. */
  enqueue(update: SimUpdate): void {
    this.#feed.add(update);
  }

  /** Pushes what waits to the webhook that is set, with its secret and Telegram's redelivery. */
  push(options?: DeliverOptions): Promise<Delivery[]> {
    return this.#feed.push(options);
  }

  /** Lets `getWebhookInfo` say that the webhook was not reached. */
  failWebhook(message: string): void {
    this.#feed.fail(message);
  }

  /** Posts an update to a webhook, with Telegram's redelivery. */
  deliver(
    url: string,
    secret: string | undefined,
    update: SimUpdate,
    options?: DeliverOptions,
  ): Promise<Delivery> {
    return deliverUpdate(url, secret, update, this.#state.now, options);
  }

  async #call(token: string, method: string, request: Request): Promise<Response> {
    const denied = this.#denied(token);
    if (denied !== undefined) return denied;
    const read = await readParams(request);
    if (read === undefined) {
      return refusal(400, "Bad Request: can't parse request parameters JSON object");
    }
    const { params } = read;
    const effect = this.#faults.next({ method, params });
    if (effect?.type !== "drop") this.calls.push({ method, params, at: this.#state.now() });
    const call: MethodCall = {
      method,
      ...read,
      onSent: (message) => this.sent.push(this.#entry(message, call)),
      onPressAnswered: (pressId, text) => {
        const answer = { pressId, at: this.#state.now() };
        this.pressAnswers.push(text === undefined ? answer : { ...answer, text });
      },
    };
    return underFault(effect, request, () => this.#run(call, request.signal), refusal);
  }

  async #run(call: MethodCall, signal: AbortSignal): Promise<Response> {
    try {
      const own = await this.#ownMethod(call.method.toLowerCase(), call.params, signal);
      if (own !== undefined) return own;
      const method = METHODS.get(call.method.toLowerCase());
      if (method === undefined) return refusal(404, "Not Found: method not found");
      return Response.json({ ok: true, result: method(this.#state, call) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return refusal(error.status, error.message, error.parameters);
    }
  }

  /** Methods about how updates come. */
  async #ownMethod(
    method: string,
    params: Params,
    signal: AbortSignal,
  ): Promise<Response | undefined> {
    switch (method) {
      case "setwebhook":
        this.#feed.setWebhook(params);
        return Response.json({ ok: true, result: true, description: "Webhook was set" });
      case "deletewebhook":
        this.#feed.deleteWebhook(params);
        return Response.json({ ok: true, result: true, description: "Webhook was deleted" });
      case "getwebhookinfo":
        return Response.json({ ok: true, result: this.#feed.info() });
      case "getupdates":
        return Response.json({ ok: true, result: await this.#feed.updates(params, signal) });
      default:
        return undefined;
    }
  }

  #download(token: string, path: string, request: Request): Promise<Response> | Response {
    const denied = this.#denied(token);
    if (denied !== undefined) return denied;
    return underFault(
      this.#faults.next({ method: "download", params: { path } }),
      request,
      async () => {
        const file = [...this.#state.files.values()].find((one) => one.path === path);
        if (file === undefined) return refusal(404, "Not Found");
        return new Response(new Uint8Array(file.bytes), {
          headers: { "content-type": file.mimeType ?? "application/octet-stream" },
        });
      },
      refusal,
    );
  }

  /** Something that is no token is not found; a wrong one is unauthorized. */
  #denied(token: string): Response | undefined {
    const given = decodeURIComponent(token);
    if (given === this.token) return undefined;
    return /^\d+:/.test(given) ? refusal(401, "Unauthorized") : refusal(404, "Not Found");
  }

  #entry(message: StoredMessage, call: MethodCall): SentMessage {
    return {
      messageId: String(message.id),
      chatId: message.chatId,
      ...(message.threadId === undefined ? {} : { threadId: String(message.threadId) }),
      text: message.text,
      method: call.method,
      at: this.#state.now(),
      body: call.params,
    };
  }
}

function realTimer(ms: number, fn: () => void): () => void {
  const timer = setTimeout(fn, ms);
  return () => clearTimeout(timer);
}
