/**
 * Admitting what a platform delivered: events, statuses and echoes of one chat in one commit. No bot
 * code runs before that commit, and no success is answered without it.
 *
 * @module
 */
import type { InboundItem } from "../channels/channel.ts";
import type { ChatInfo, DeliveryStatus, InboundEvent, MediaRef } from "../channels/events.ts";
import { SINCE } from "../journal/Journal.ts";
import { tooLarge } from "../journal/limits.ts";
import { FLAG, type InboxRow, type OutboxRow, OWES } from "../journal/records.ts";
import { joins, quietOf } from "../turns/burst.ts";
import { storedEvent } from "../turns/media.ts";
import type { Core } from "./Core.ts";
import type { Outbox } from "./Outbox.ts";

/** Characters of a bad item that are kept. */
const SAMPLE_LENGTH = 2_000;
/** The kind of a record that is no event: part of a body that could not be understood. */
export const BAD_KIND = "bad";
/** How long a platform is asked to wait when a chat's queue is full, in seconds. */
const BACKPRESSURE_SECONDS = 30;
/** Between two log lines about a full queue, in ms. */
const FULL_LOG_MS = 60_000;
/** References to media that live in memory only: events remembered. */
const MAX_LIVE_MEDIA = 64;

/** What `receive` is given. */
export interface ReceiveRequest {
  connection: string;
  channel: string;
  chat: ChatInfo;
  items: InboundItem[];
  /** Answer at the commit, whatever `ack` says: no platform waits for this answer. */
  atCommit?: true;
  /** What happened before the newest item of the first such request is not this actor's business. */
  newestAtFirst?: true;
  /** The actors that passed it on. */
  via?: string[];
}

/** What became of one item. `ignored`: written by another bot, and `allowBots` says no. */
export type Admitted = "accepted" | "duplicate" | "status" | "echo" | "dead" | "ignored";

/** What `receive` answers. */
export type ReceiveAnswer =
  | { ok: true; results: Admitted[] }
  /**
   * The chat's queue is full, the bot refused the event, or a renamed chat is still ending what came under
   * its other name: the platform shall try again.
   */
  | { ok: false; retryAfterSeconds: number; reason?: "full" | "nacked" | "moving" };

/** What one receive did, for after its commit. */
export interface Receipt {
  answer: ReceiveAnswer;
  statuses: { row: OutboxRow; status: DeliveryStatus }[];
  dead: number[];
  claimed?: { row: InboxRow; claim: string };
  /** The running turn was stamped as interrupted. */
  interrupted?: number;
}

/** The turn that a chat runs now, as far as admission needs to know. */
export interface Running {
  row: InboxRow;
  sender: string | undefined;
  group: string | undefined;
}

/** Admits what one chat gets. */
export class Admission {
  readonly #core: Core;
  readonly #outbox: Outbox;
  #liveMedia: Map<string, MediaRef[]> | undefined;
  #fullLoggedAt = Number.NEGATIVE_INFINITY;
  /** Whether a sender talks with a flow; filled in by the engine. */
  isTalking: ((sender: string | undefined) => boolean) | undefined;
  /** Whether an event ran without a record; filled in by the engine. */
  ranUnjournaled: ((id: string) => boolean) | undefined;

  constructor(core: Core, outbox: Outbox) {
    this.#core = core;
    this.#outbox = outbox;
  }

  /** Media references of an event that the journal could not keep; given once. */
  takeLiveMedia(id: string): MediaRef[] | undefined {
    const media = this.#liveMedia?.get(id);
    this.#liveMedia?.delete(id);
    return media;
  }

  /**
   * Admits items. Call inside the receive commit.
   *
   * @param running the turn that runs, or the one that a dead process left
   * @param idle whether the first event may be claimed in this very commit
   */
  admit(request: ReceiveRequest, running: Running | undefined, idle: boolean): Receipt {
    const { journal, alarm, settings, bot } = this.#core;
    const now = this.#core.now();
    journal.identifyFrom(this.#core.name, request);
    const receipt: Receipt = { answer: { ok: true, results: [] }, statuses: [], dead: [] };
    const events = request.items.filter((item) => item.type === "event").length;
    const { maxPending } = settings.inbox;
    const waiting = events === 0 ? 0 : this.#waiting();
    if (waiting >= maxPending && request.items.some((item) => this.#isNew(item))) {
      receipt.answer = this.full(events);
      return receipt;
    }
    // Where a newer message stops an older one, the loop looks for it first.
    const claims = idle && waiting === 0 && (events === 1 || bot.busy.mode !== "interrupt");
    const pass = { now, receipt, running, idle: claims, wakeAt: Infinity };
    const results = this.#itemsOf(request).map((item) => this.#item(item, pass));
    if (results.includes("accepted")) {
      alarm.arm(Math.min(now + this.#core.watchdogMs, pass.wakeAt));
    }
    receipt.answer = { ok: true, results };
    return receipt;
  }

  /** What a request is about. */
  #itemsOf({ items, newestAtFirst }: ReceiveRequest): readonly InboundItem[] {
    const { journal } = this.#core;
    if (newestAtFirst !== true) return items;
    const known = journal.fact(SINCE);
    const at = (item: InboundItem | undefined) => (item?.type === "event" ? item.event.at : 0);
    const since = known === undefined ? at(items.at(-1)) : Number(known);
    if (known === undefined) journal.setFact(SINCE, String(since));
    return items.filter((item) => at(item) >= since);
  }

  /** Events in the queue. Those at rest hold nobody up, until they are as many as a queue may have. */
  #waiting(): number {
    const { journal, settings } = this.#core;
    return (
      journal.inbox.waiting() + Math.max(0, journal.inbox.resting() - settings.inbox.maxPending)
    );
  }

  /** Whether an item would add to the queue: what is known or ignored is taken though it is full. */
  #isNew(item: InboundItem): boolean {
    if (item.type !== "event" || this.isOtherBot(item.event)) return false;
    const { id, semanticKey } = item.event;
    return !this.#core.journal.inbox.knows(id, semanticKey ?? null);
  }

  #item(item: InboundItem, pass: Pass): Admitted {
    if (item.type === "status") {
      const row = this.#outbox.applyStatus(item.status);
      if (row !== undefined) pass.receipt.statuses.push({ row, status: item.status });
      return "status";
    }
    if (item.type === "bad") return this.#bad(item, pass);
    // An external event has no platform clock: it happened when it came.
    const event = item.event.at === 0 ? { ...item.event, at: pass.now } : item.event;
    if (event.selfAuthored === true && this.#outbox.absorbEcho(event)) return "echo";
    if (this.isOtherBot(event)) {
      this.#core.metrics.count("inboundIgnored");
      this.#core.host.log.debug("a message of another bot is ignored (allowBots)", {
        id: event.id,
      });
      return "ignored";
    }
    return this.#event(event, pass);
  }

  #event(event: InboundEvent, pass: Pass): Admitted {
    const { journal, metrics, bot, settings } = this.#core;
    const channel = bot.channel(event.connection);
    const kept = storedEvent(event, channel, settings.inbox.mediaRefs);
    const payload = JSON.stringify(kept);
    if (tooLarge(payload)) {
      const sample = payload.slice(0, SAMPLE_LENGTH);
      return this.#bad({ id: event.id, error: "larger than the journal allows", sample }, pass);
    }
    if (this.ranUnjournaled?.(event.id)) return "duplicate";
    this.#follow(event);
    const waits = joins(event, bot.busy);
    // What may have to rest, as other bots' messages, is claimed by the loop that knows.
    const claimed = pass.idle && !waits && event.sender?.isBot !== true;
    const claim = claimed ? this.#core.claim() : null;
    const seq = journal.nextSeq();
    const record = {
      seq,
      id: event.id,
      semantic: event.semanticKey ?? null,
      kind: event.kind,
      payload,
      receivedAt: pass.now,
      claim,
    };
    const fresh = journal.inbox.insert(record);
    metrics.count(fresh ? "inboundJournaled" : "inboundDuplicates");
    if (!fresh) {
      this.#hasten(event.id, pass.now);
      return "duplicate";
    }
    if (kept.media?.some((ref) => ref.unavailable !== undefined)) this.#remember(event);
    if (waits) pass.wakeAt = Math.min(pass.wakeAt, pass.now + quietOf(event, bot.busy));
    pass.idle = false;
    if (claim !== null) pass.receipt.claimed = { row: journal.inbox.fresh(record), claim };
    this.#interrupt(event, pass);
    return "accepted";
  }

  /** The platform has renamed this chat, or says so from its new name. */
  #follow({ migration, chat }: InboundEvent): void {
    const here = this.#core.identity().chat;
    if (migration?.to !== undefined && migration.to !== here) {
      this.#core.moved({ chat: migration.to });
    } else if (migration?.from !== undefined && migration.from === here) {
      this.#core.moved({ chat: chat.id });
    }
  }

  /** A newer message of the same sender: the running turn is over, also if the process dies now. */
  #interrupt(event: InboundEvent, { running, receipt }: Pass): void {
    if (this.#core.bot.busy.mode !== "interrupt" || event.kind !== "message") return;
    if (running === undefined || running.row.kind !== "message") return;
    // What a flow is told must not be lost to what it is told next.
    if (this.isTalking?.(event.sender?.id)) return;
    // Nobody in particular, such as a channel's posts, interrupts nobody.
    if (running.sender === undefined || running.sender !== event.sender?.id) return;
    // A late picture of the album that is being answered is no new message.
    if (event.groupId !== undefined && event.groupId === running.group) return;
    // On a copy: a commit that is rolled back must not leave its mark in memory.
    const flags = running.row.flags | FLAG.interrupted;
    this.#core.journal.inbox.update({ ...running.row }, { flags });
    receipt.interrupted = running.row.seq;
  }

  /** A redelivery of what the bot refused brings its next run forward. */
  #hasten(id: string, now: number): void {
    if (this.#core.bot.busy.ack === "after_receive_record") return;
    const row = this.#core.journal.inbox.byId(id);
    if (row?.state !== "pending" || (row.flags & FLAG.nacked) === 0) return;
    if (row.due_at === null || row.due_at <= now) return;
    this.#core.journal.inbox.update(row, { due_at: now });
    this.#core.alarm.arm(now);
  }

  /** Whether an event was written by a bot that is not listened to. */
  isOtherBot(event: InboundEvent): boolean {
    const { sender, kind } = event;
    if (kind !== "message" && kind !== "edited") return false;
    // What this very bot said elsewhere is no reason to answer either.
    if (sender?.isBot !== true && event.selfAuthored !== true) return false;
    return !this.#core.bot.busy.allowBots(sender?.id ?? "");
  }

  #remember(event: InboundEvent): void {
    if (event.media === undefined) return;
    this.#liveMedia ??= new Map();
    this.#liveMedia.set(event.id, event.media);
    const [oldest] = this.#liveMedia.keys();
    if (this.#liveMedia.size > MAX_LIVE_MEDIA && oldest !== undefined)
      this.#liveMedia.delete(oldest);
  }

  /** The answer to events for which the queue has no room; counted, and said now and then. */
  full(events: number): ReceiveAnswer {
    this.#core.metrics.count("inboundRefused", events);
    const now = this.#core.now();
    if (now - this.#fullLoggedAt >= FULL_LOG_MS) {
      this.#fullLoggedAt = now;
      this.#core.host.log.warn("a chat's queue is full: its events are refused until it drains", {
        maxPending: this.#core.settings.inbox.maxPending,
      });
      this.#core.onTrouble();
    }
    return { ok: false, retryAfterSeconds: BACKPRESSURE_SECONDS, reason: "full" };
  }

  #bad(item: { id: string; error: string; sample: string }, pass: Pass): Admitted {
    const { journal, bot, metrics, alarm } = this.#core;
    const owed = bot.hasListener("durability:dead") ? OWES.dead : 0;
    const seq = journal.nextSeq();
    const fresh = journal.inbox.insert({
      seq,
      id: item.id,
      semantic: null,
      kind: BAD_KIND,
      payload: JSON.stringify({ truncated: item.sample.slice(0, SAMPLE_LENGTH) }),
      receivedAt: pass.now,
      claim: null,
      dead: item.error,
      owed,
    });
    if (!fresh) return "duplicate";
    metrics.count("inboundDead");
    pass.receipt.dead.push(seq);
    alarm.arm(pass.now + this.#core.watchdogMs);
    this.#core.onTrouble();
    return "dead";
  }
}

/** One receive under way. */
interface Pass {
  now: number;
  receipt: Receipt;
  running: Running | undefined;
  idle: boolean;
  /** When a message that waits for others has to be looked at: epoch milliseconds. */
  wakeAt: number;
}
