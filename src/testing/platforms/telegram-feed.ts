/**
 * How updates leave the simulated Bot API: by `getUpdates`, which confirms by its offset, or by a
 * webhook, never by both.
 *
 * @module
 */
import { ApiError, badRequest, type Params } from "./telegram-checks.ts";
import {
  type DeliverOptions,
  type Delivery,
  deliverUpdate,
  type SimUpdate,
} from "./telegram-updates.ts";

/** Kinds that come only to bots that name them. */
const UNASKED = new Set(["chat_member", "message_reaction", "message_reaction_count"]);
const WEBHOOK_ACTIVE =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const TAKEN_OVER =
  "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";

/** What the feed needs of the world. */
export interface FeedWorld {
  now(): number;
  setTimer(ms: number, fn: () => void): () => void;
  /** Whether a host name leads anywhere. */
  resolves(host: string): boolean;
}

/** A `getUpdates` that waits for something to say. */
interface Poller {
  answer(): void;
  refuse(error: ApiError): void;
}

/** The updates of one bot that have not been confirmed. */
export class UpdateFeed {
  /** Ids of updates that were confirmed, by offset or by a webhook's 2xx, in order. */
  readonly confirmed: number[] = [];
  /** What `setWebhook` was told; empty without a webhook. */
  webhook: Params = {};
  readonly #world: FeedWorld;
  #queue: SimUpdate[] = [];
  #allowed: ReadonlySet<string> | undefined;
  #poller: Poller | undefined;
  #lastError: { last_error_date: number; last_error_message: string } | undefined;

  constructor(world: FeedWorld) {
    this.#world = world;
  }

  /** Updates that wait. */
  get pending(): readonly SimUpdate[] {
    return this.#queue;
  }

  /** Something happened. Kinds that the bot did not ask for are dropped, as Telegram drops them. */
  add(update: SimUpdate): void {
    if (!this.#wants(kindOf(update))) return;
    this.#queue.push(update);
    this.#poller?.answer();
  }

  setWebhook(params: Params): void {
    const url = String(params.url ?? "");
    if (url === "") {
      this.deleteWebhook(params);
      return;
    }
    if (!URL.canParse(url) || !url.startsWith("https:")) {
      throw badRequest("bad webhook: An HTTPS URL must be provided for webhook");
    }
    if (!this.#world.resolves(new URL(url).hostname)) {
      throw badRequest("bad webhook: Failed to resolve host: Name or service not known");
    }
    const secret = params.secret_token;
    if (secret !== undefined && !/^[\w-]{1,256}$/.test(String(secret))) {
      throw badRequest("secret token contains unallowed characters");
    }
    this.webhook = params;
    this.#lastError = undefined;
    this.#allow(params);
    if (params.drop_pending_updates) this.#queue = [];
    this.#poller?.refuse(new ApiError(409, "Conflict: terminated by setWebhook request"));
  }

  deleteWebhook(params: Params): void {
    this.webhook = {};
    this.#lastError = undefined;
    if (params.drop_pending_updates) this.#queue = [];
  }

  info(): Params {
    const count = { pending_update_count: this.#queue.length };
    const { url, max_connections = 40 } = this.webhook;
    if (url === undefined) return { url: "", has_custom_certificate: false, ...count };
    return {
      url,
      has_custom_certificate: false,
      ...count,
      max_connections,
      ...this.#lastError,
      ...(this.#allowed === undefined ? {} : { allowed_updates: [...this.#allowed] }),
    };
  }

  /** Answers `getUpdates`, when there is something or when the time is up. */
  async updates(params: Params, signal: AbortSignal): Promise<SimUpdate[]> {
    if (this.webhook.url !== undefined) throw new ApiError(409, WEBHOOK_ACTIVE);
    this.#poller?.refuse(new ApiError(409, TAKEN_OVER));
    this.#allow(params);
    this.#confirm(Number(params.offset ?? 0));
    const limit = Math.max(1, Math.min(100, Number(params.limit ?? 100)));
    const waitMs = Math.min(50, Number(params.timeout ?? 0)) * 1_000;
    if (this.#queue.length === 0 && waitMs > 0) await this.#somethingComes(waitMs, signal);
    return this.#queue.slice(0, limit);
  }

  /**
   * Pushes what waits to the webhook, oldest first, each until it is taken or `options.attempts` are
   * spent; what was not taken stays.
   */
  async push(options: DeliverOptions = {}): Promise<Delivery[]> {
    const { url, secret_token: secret } = this.webhook;
    if (typeof url !== "string") throw new Error("no webhook is set");
    const deliveries: Delivery[] = [];
    for (const update of [...this.#queue]) {
      const given = secret === undefined ? undefined : String(secret);
      const delivery = await deliverUpdate(url, given, update, () => this.#world.now(), options);
      deliveries.push(delivery);
      if (delivery.delivered) {
        this.#queue = this.#queue.filter((one) => one !== update);
        this.confirmed.push(update.update_id);
      } else this.fail(said(delivery));
    }
    return deliveries;
  }

  /** What the last try to reach the webhook came to, for `getWebhookInfo`. */
  fail(message: string): void {
    this.#lastError = {
      last_error_date: Math.floor(this.#world.now() / 1_000),
      last_error_message: message,
    };
  }

  #somethingComes(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => () => {
        cancel();
        if (this.#poller === poller) this.#poller = undefined;
        settle();
      };
      const poller: Poller = {
        answer: end(resolve),
        refuse: (error) => end(() => reject(error))(),
      };
      const cancel = this.#world.setTimer(waitMs, poller.answer);
      this.#poller = poller;
      // Nobody is there any more to be answered.
      signal.addEventListener(
        "abort",
        end(() => reject(signal.reason)),
        { once: true },
      );
    });
  }

  #confirm(offset: number): void {
    // A negative offset asks for the last ones, and forgets the rest.
    const from = offset < 0 ? (this.#queue.at(offset)?.update_id ?? 0) : offset;
    for (const update of this.#queue) {
      if (update.update_id < from) this.confirmed.push(update.update_id);
    }
    this.#queue = this.#queue.filter((update) => update.update_id >= from);
  }

  /** What is left out keeps what was said before; an empty list is the default again. */
  #allow(params: Params): void {
    const { allowed_updates: list } = params;
    if (!Array.isArray(list)) return;
    this.#allowed = list.length === 0 ? undefined : new Set(list.map(String));
  }

  #wants(kind: string): boolean {
    return this.#allowed === undefined ? !UNASKED.has(kind) : this.#allowed.has(kind);
  }
}

function kindOf(update: SimUpdate): string {
  return Object.keys(update).find((key) => key !== "update_id") ?? "";
}

/** In Telegram's words. */
function said(delivery: Delivery): string {
  const last = delivery.tries.at(-1);
  return last?.status === undefined
    ? "Connection refused"
    : `Wrong response from the webhook: ${last.status}`;
}
