/**
 * Deciding a send: its key, whether the journal already knows it, and the commit that records it.
 * Without hooks everything here runs with no await, so that calls are recorded in the order in which
 * the handler made them.
 *
 * @module
 */
import type { Content } from "../channels/content.ts";
import { PayloadTooLargeError, SendDeferredError, TurnEndedError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { MAX_VALUE_LENGTH } from "../journal/limits.ts";
import {
  isOpen,
  type OutboxExtra,
  type OutboxRow,
  readExtra,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { errorText } from "../safety/redact.ts";
import { parseDuration } from "../time/duration.ts";
import { checkOptions } from "../turns/checkOptions.ts";
import type { EnqueueOptions } from "../turns/sends.ts";
import { callChannel } from "./Attempt.ts";
import { byteLength, encode, type NormalContent, normalise } from "./content.ts";
import { type Deliveries, intentOf, type Outcome, outcomeOf } from "./Deliveries.ts";
import type { Drain, Started } from "./Drain.ts";
import { encodeKey, explicitSlot, fingerprintOf, keyOf, markerOf } from "./keys.ts";
import { type Rendered, renderContent } from "./render.ts";
import { TurnSends } from "./TurnSends.ts";

/** One call of `reply`, `send`, `enqueue` or a client. */
export interface Intent {
  /** The run that makes it; absent outside a turn. */
  sends?: TurnSends;
  /** The step that it is called in; empty for the turn itself. */
  scope: string;
  content: Content;
  options: EnqueueOptions;
  /** Whether the caller waits for the delivery. */
  wait: boolean;
  origin: OutboxRow["origin"];
}

/** What the caller gets. */
export interface Decided {
  key: string;
  outcome: Outcome;
  reason?: string;
}

interface Draft {
  intent: Intent;
  slot: string;
  key: string | null;
  publicKey: string;
  fingerprint: string;
  content: NormalContent;
  address: Address;
  intendedAt: number;
  /** The number of its turn, or its own. */
  turn?: number;
  /** The place of a recorded send that this one replaces. */
  pos?: number;
  /** Rows of a recorded send that this one replaces. */
  replaces?: OutboxRow[];
  vetoed?: string;
}

function timeOf(value: number | Date | undefined): number | undefined {
  return value === undefined ? undefined : Math.ceil(Number(value));
}

/** The content of a row, unless it and the request together are more than a row may hold. */
function keptContent(content: NormalContent, request: unknown): string | null {
  const text = JSON.stringify(content);
  return byteLength(text) + byteLength(JSON.stringify(request)) > MAX_VALUE_LENGTH ? null : text;
}

/** Intents of one actor. */
export class Intents {
  readonly #core: Core;
  readonly #drain: Drain;
  readonly #deliveries: Deliveries;

  constructor(core: Core, drain: Drain, deliveries: Deliveries) {
    this.#core = core;
    this.#drain = drain;
    this.#deliveries = deliveries;
  }

  /**
   * Decides a send and, where asked, waits for it.
   * @throws {TurnEndedError} on a context whose turn is over
   * @throws {UnsupportedContentError} for content that the channel does not declare
   */
  intend(intent: Intent): Promise<Decided> {
    const { sends } = intent;
    if (sends?.closed) {
      return Promise.reject(
        new TurnEndedError("this turn is over; use `client.chat(address)` to send later"),
      );
    }
    const deciding = this.#decide(intent);
    if (sends === undefined) return deciding;
    // The turn waits for sends that its handler did not; their failure is the handler's to see.
    const tracked = deciding
      .catch((error: unknown) => this.#failed(error))
      .finally(() => sends.open.delete(tracked));
    sends.open.add(tracked);
    return deciding;
  }

  /** A send that nobody awaits would otherwise fail without a word. */
  #failed(error: unknown): void {
    this.#core.host.log.error("a send failed before it was recorded", {
      error: errorText(error, this.#core.host.env),
    });
  }

  async #decide(intent: Intent): Promise<Decided> {
    const content = normalise(intent.content);
    const options = checkOptions(intent.options);
    const address = this.#core.address();
    const slot = this.#slotOf(intent);
    const key = this.#keyOf(intent);
    const encodable = encode(content) !== undefined;
    const draft: Draft = {
      intent: { ...intent, options },
      slot,
      key,
      publicKey: keyOf({ key, slot, part: 0 }, intent.sends?.id),
      fingerprint: encodable ? fingerprintOf(address, content) : "",
      content,
      address,
      intendedAt: this.#core.now(),
    };
    const recorded = options.durability !== "disabled";
    const known = recorded && encodable ? this.#known(draft) : undefined;
    if (known !== undefined) return known;
    if (this.#core.bot.hasBeforeSend) {
      await this.#runHooks(draft);
      if (intent.sends?.closed) {
        throw new TurnEndedError("the turn ended while a `before` hook ran");
      }
      // Another call with the same key may have been recorded while the hooks ran.
      const meanwhile = recorded && encodable ? this.#known(draft) : undefined;
      if (meanwhile !== undefined) return meanwhile;
    }
    if (!recorded) return this.#direct(draft);
    const why = this.#bypassReason(draft.content);
    return why === undefined ? this.#record(draft) : this.#bypass(draft, why);
  }

  /** Why content cannot have a record. */
  #bypassReason(content: NormalContent): string | undefined {
    const encoded = encode(content);
    if (encoded === undefined) return "not encodable";
    const large = byteLength(encoded) > this.#core.settings.outbox.maxPayloadBytes;
    return large ? "larger than outbox.maxPayloadBytes" : undefined;
  }

  #slotOf(intent: Intent): string {
    const { idempotencyKey } = intent.options;
    if (intent.sends === undefined) return "";
    return idempotencyKey === undefined
      ? intent.sends.nextSlot(intent.scope)
      : explicitSlot(idempotencyKey);
  }

  #keyOf(intent: Intent): string | null {
    const { idempotencyKey } = intent.options;
    if (idempotencyKey !== undefined) return encodeKey(idempotencyKey);
    return intent.sends === undefined ? this.#core.host.uuid() : null;
  }

  /** Runs the hooks, one send of a turn after another, so that its order holds. */
  async #runHooks(draft: Draft): Promise<void> {
    const { sends } = draft.intent;
    const mine = (sends?.hooks ?? Promise.resolve()).then(() => this.#askHooks(draft));
    if (sends !== undefined) sends.hooks = mine.catch(() => undefined);
    await mine;
  }

  async #askHooks(draft: Draft): Promise<void> {
    let changed: Content = draft.intent.content;
    await this.#core.bot.beforeSend({
      key: draft.publicKey,
      address: draft.address,
      origin: draft.intent.origin,
      get content() {
        return changed;
      },
      set content(next) {
        changed = next;
      },
      cancel: (reason) => {
        draft.vetoed = reason ?? "cancelled by a hook";
      },
    });
    if (changed !== draft.intent.content) draft.content = normalise(changed);
  }

  /** The answer from the record, where there is one. */
  #known(draft: Draft): Promise<Decided> | undefined {
    const { outbox } = this.#core.journal;
    const { sends } = draft.intent;
    if (draft.intent.options.idempotencyKey !== undefined && draft.key !== null) {
      const head = outbox.byKey(draft.key);
      if (head === undefined) {
        // Held back for the settle: there is a send under this key, though no row yet.
        return sends?.recorded(draft.slot) === undefined
          ? undefined
          : Promise.resolve({ key: draft.publicKey, outcome: { status: "deferred", rows: [] } });
      }
      if (draft.intent.options.onConflict === "replace" && this.#replaceable(draft, head, true))
        return undefined;
      sends?.consume(head.slot);
      return this.#fromRecord(draft, head);
    }
    if (sends?.isConsumed(draft.slot)) {
      // Another call of this run has taken what was recorded here: this one gets a row of its own.
      draft.slot = `${draft.slot}~${draft.fingerprint}`;
      draft.publicKey = keyOf({ key: null, slot: draft.slot, part: 0 }, sends.id);
    }
    const head = sends?.recorded(draft.slot);
    if (sends === undefined || head === undefined) return undefined;
    const current = outbox.get(head.turn, head.pos) ?? head;
    if (current.fingerprint === draft.fingerprint && readExtra(current).superseded !== true) {
      sends.consume(draft.slot);
      return this.#fromRecord(draft, current);
    }
    return this.#diverged(draft, sends, current);
  }

  /** The handler now says something else than the recorded send of this ordinal (§6, §17). */
  #diverged(draft: Draft, sends: TurnSends, recorded: OutboxRow): Promise<Decided> | undefined {
    const { outbox } = this.#core.journal;
    const same = sends.unconsumed(draft.intent.scope, draft.fingerprint);
    if (same !== undefined) {
      sends.consume(same.slot);
      return this.#fromRecord(draft, outbox.get(same.turn, same.pos) ?? same);
    }
    sends.consume(recorded.slot);
    if (sends.settledBefore) return this.#fromRecord(draft, recorded);
    if (this.#replaceable(draft, recorded)) {
      draft.pos = recorded.pos;
      return undefined;
    }
    if (this.#core.settings.outbox.onDiverged === "skip") return this.#fromRecord(draft, recorded);
    this.#core.metrics.count("outboxDiverged");
    this.#core.host.log.warn("a replayed turn says something else than before", {
      key: draft.publicKey,
    });
    this.#supersede(recorded);
    const second = sends.divergedFrom(draft.slot);
    const slot = `${draft.slot}~${draft.fingerprint}`;
    if (second !== undefined) {
      sends.consume(second.slot);
      const now = outbox.get(second.turn, second.pos) ?? second;
      if (now.slot === slot) return this.#fromRecord(draft, now);
      if (!this.#replaceable(draft, now)) {
        return Promise.resolve({
          key: draft.publicKey,
          outcome: { status: "suppressed", rows: [] },
          reason: "diverged",
        });
      }
    }
    draft.slot = slot;
    draft.publicKey = keyOf({ key: null, slot, part: 0 }, sends.id);
    return undefined;
  }

  /**
   * Whether an intent is proven unsent, so that another takes its place: then its rows go in the commit
   * that records the new one.
   */
  #replaceable(draft: Draft, head: OutboxRow, orCancelled = false): boolean {
    const rows = this.#core.journal.outbox.partsOf(head);
    const free = (row: OutboxRow): boolean =>
      (orCancelled && row.state === "suppressed" && readExtra(row).reason === "cancelled") ||
      ((row.state === "pending" || row.state === "failed") && row.first_maybe_at === null);
    if (!rows.every(free) || rows.some((row) => this.#drain.isInFlight(row))) return false;
    draft.replaces = rows;
    return true;
  }

  /** Marks a send that may be under way as replaced: it ends as it ends, but is not repeated. */
  #supersede(head: OutboxRow): void {
    const { outbox } = this.#core.journal;
    const rows = outbox.partsOf(head).filter(isOpen);
    if (rows.length === 0) return;
    this.#core.journal.commit("outbox.supersede", () => {
      for (const row of rows) {
        const extra: OutboxExtra = { ...readExtra(row), superseded: true };
        const now = this.#core.now();
        const unsent =
          row.state === "pending" || (row.state === "failed" && row.first_maybe_at === null);
        if (unsent && !this.#drain.isInFlight(row)) {
          outbox.move(row, "suppressed", {
            extra: writeExtra({ ...extra, reason: "diverged" }),
            due_at: null,
            finished_at: now,
          });
        } else if (row.state === "failed") {
          // It may have been sent, and nobody wants it repeated.
          outbox.move(row, "unknown", {
            extra: writeExtra({ ...extra, held: true, action: "held" }),
            due_at: row.owed === 0 ? null : now,
            finished_at: now,
          });
        } else {
          outbox.update(row, { extra: writeExtra(extra) });
          this.#drain.hold(row);
        }
      }
    });
  }

  /** Answers from the record: a finished send as it ended, an open one by joining its delivery. */
  #fromRecord(draft: Draft, head: OutboxRow): Promise<Decided> {
    this.#core.metrics.count("outboxDeduped");
    const rows = this.#core.journal.outbox.partsOf(head);
    const key = keyOf(head, draft.intent.sends?.id ?? this.#core.journal.inbox.get(head.turn)?.id);
    const outcome = outcomeOf(rows);
    if (outcome !== undefined) {
      const reason = readExtra(head).reason;
      return Promise.resolve({ key, outcome, ...(reason === undefined ? {} : { reason }) });
    }
    if (
      draft.intent.sends !== undefined &&
      draft.intent.sends.seq === head.turn &&
      draft.intent.wait
    ) {
      for (const row of rows) if (isOpen(row)) this.#drain.hold(row);
    }
    return this.#wait(draft, key, intentOf(head));
  }

  async #wait(draft: Draft, key: string, intent: string, started?: Started): Promise<Decided> {
    if (!draft.intent.wait) {
      this.#drain.kick(started);
      return { key, outcome: { status: "deferred", rows: [] } };
    }
    const waiting = this.#deliveries.wait(
      intent,
      draft.intendedAt + this.#core.settings.outbox.inlineMaxMs,
    );
    this.#drain.kick(started);
    const outcome = await waiting;
    if (outcome.status === "deferred") {
      this.#core.metrics.count("outboxDeferred");
      this.#core.onTrouble();
    }
    return { key, outcome };
  }

  /** Records the intent, and sends its first part at once where nothing is ahead of it. */
  #record(draft: Draft): Promise<Decided> {
    const { intent } = draft;
    const turn = intent.sends?.seq ?? this.#core.journal.nextSeq();
    draft.turn = turn;
    const place = `${turn}/${draft.slot}`;
    const rendered = renderContent(this.#core, draft.content, draft.address, place);
    if (rendered.parts.length === 0) draft.vetoed ??= "nothing to send";
    const rows = this.#rowsOf(draft, rendered);
    const head = rows[0] as OutboxRow;
    if (intent.options.when === "settled" && intent.sends !== undefined) {
      intent.sends.settled.push({ rows, kept: rendered.kept, replaces: draft.replaces ?? [] });
      intent.sends.record(head);
      return Promise.resolve({ key: draft.publicKey, outcome: { status: "deferred", rows: [] } });
    }
    const started = this.#startNow(intent, head);
    try {
      this.#core.journal.commit("outbox.insert", () => {
        for (const old of draft.replaces ?? [])
          this.#core.journal.outbox.deleteRow(old.turn, old.pos);
        this.#insert(rows, rendered.kept);
      });
    } catch (error) {
      if (intent.options.durability !== "best_effort") throw error;
      this.#core.host.log.warn("a send could not be recorded and goes out without a record", {
        key: draft.publicKey,
      });
      return this.#direct(draft);
    }
    this.#core.metrics.count("outboxJournaled", rows.length);
    intent.sends?.record(head);
    // Scheduled beyond the watchdog: the sweep has to know, in case the alarm is lost.
    if (head.due_at !== null && head.due_at > draft.intendedAt + this.#core.watchdogMs)
      this.#core.onTrouble();
    if (head.state === "suppressed") {
      const reason = draft.vetoed ?? "suppressed";
      return Promise.resolve({
        key: draft.publicKey,
        outcome: { status: "suppressed", rows },
        reason,
      });
    }
    if (intent.sends !== undefined && intent.wait) for (const row of rows) this.#drain.hold(row);
    return this.#wait(draft, draft.publicKey, intentOf(head), started);
  }

  /** Writes the rows of an intent and arms what wakes them. Call inside a commit. */
  #insert(rows: readonly OutboxRow[], kept: Rendered["kept"]): void {
    const { journal, alarm } = this.#core;
    for (const row of rows) {
      journal.outbox.insert(row);
      if (row.due_at !== null) alarm.arm(row.due_at);
    }
    for (const { id, value } of kept) journal.side.keepButton(id, rows[0]?.turn ?? 0, value);
  }

  /** Records what `when: "settled"` held back. Call inside the settle's commit. */
  insertSettled(sends: TurnSends, failed: boolean): void {
    for (const { rows, kept, replaces } of sends.settled) {
      for (const old of failed ? [] : replaces)
        this.#core.journal.outbox.deleteRow(old.turn, old.pos);
      const now = this.#core.now();
      for (const row of rows) {
        if (!failed) continue;
        row.state = "suppressed";
        row.due_at = null;
        row.finished_at = now;
        row.extra = writeExtra({ ...readExtra(row), reason: "turn_failed" });
      }
      this.#insert(rows, failed ? [] : kept);
      this.#core.metrics.count("outboxJournaled", rows.length);
    }
  }

  /** Marks the first part `sending` in the commit that records it, where it can go out this instant. */
  #startNow(intent: Intent, head: OutboxRow): Started | undefined {
    const scheduled = head.due_at !== null && head.due_at > this.#core.now();
    const alone = this.#drain.idle && this.#core.settings.outbox.order !== "strict";
    if (!alone || scheduled || !intent.wait || head.state !== "pending") return undefined;
    if (this.#core.channel().outbound.prepare !== undefined) return undefined;
    const claim = this.#core.claim();
    head.state = "sending";
    head.claim = claim;
    head.marker = markerOf(this.#core.name, head);
    if (head.due_at !== null) head.due_at = this.#core.now() + this.#core.settings.outbox.leaseMs;
    return { row: head, claim };
  }

  #rowsOf(draft: Draft, rendered: Rendered): OutboxRow[] {
    const { intent } = draft;
    const now = draft.intendedAt;
    const delay =
      intent.options.delay === undefined ? undefined : parseDuration(intent.options.delay);
    const at = timeOf(intent.options.at) ?? (delay === undefined ? undefined : now + delay);
    const turn = draft.turn ?? intent.sends?.seq ?? 0;
    const base = draft.pos ?? intent.sends?.nextPos() ?? 0;
    const suppressed = draft.vetoed !== undefined;
    const extra: OutboxExtra = {
      ...(at !== undefined && at > now ? { at } : {}),
      ...(suppressed ? { reason: draft.vetoed ?? "" } : {}),
    };
    // A live turn's watchdog covers what its handler waits for; anything else needs its own wake-up.
    const dueAt = suppressed || (intent.sends !== undefined && intent.wait) ? null : (at ?? now);
    const parts =
      rendered.parts.length > 0 ? rendered.parts : [{ kind: "other" as const, request: {} }];
    return parts.map((part, index) => ({
      turn,
      pos: base + index,
      slot: draft.slot,
      part: index,
      key: index === 0 ? draft.key : null,
      state: suppressed ? ("suppressed" as const) : ("pending" as const),
      claim: null,
      attempts: 0,
      maybes: 0,
      first_maybe_at: null,
      due_at: index === 0 ? dueAt : null,
      not_after: timeOf(intent.options.notAfter) ?? null,
      created_at: now,
      finished_at: suppressed ? now : null,
      content: index === 0 ? keptContent(draft.content, part.request) : null,
      fingerprint: index === 0 ? draft.fingerprint : null,
      request: JSON.stringify(part.request),
      marker: null,
      generation: 0,
      receipt: null,
      error_kind: null,
      error: null,
      attempt_log: null,
      origin: intent.origin,
      owed: 0,
      address: null,
      extra: writeExtra(extra),
    }));
  }

  #bypass(draft: Draft, why: string): Promise<Decided> {
    if (draft.intent.options.durability === "required") {
      return Promise.reject(
        new PayloadTooLargeError(
          `this send cannot be recorded (${why}) and durability is "required"`,
          { key: draft.publicKey },
        ),
      );
    }
    this.#core.metrics.count("outboxBypassed");
    this.#core.host.log.warn("a send bypasses the journal", { key: draft.publicKey, why });
    return this.#direct(draft);
  }

  /** Sends without a record: each part once, in the lane. */
  async #direct(draft: Draft): Promise<Decided> {
    const { parts } = renderContent(this.#core, draft.content, draft.address, draft.slot);
    if (draft.vetoed !== undefined) {
      return {
        key: draft.publicKey,
        outcome: { status: "suppressed", rows: [] },
        reason: draft.vetoed,
      };
    }
    const rows: OutboxRow[] = [];
    draft.turn = draft.intent.sends?.seq ?? this.#core.journal.nextSeq();
    const plain: Draft = { ...draft, content: { format: "plain" } };
    const [template] = this.#rowsOf(plain, { parts: [{ kind: "other", request: {} }], kept: [] });
    for (const [index, part] of parts.entries()) {
      const row = {
        ...(template as OutboxRow),
        part: index,
        pos: (template?.pos ?? 0) + index,
        generation: index,
      };
      const result = await this.#drain.lane(() =>
        callChannel(this.#core, draft.address, markerOf(this.#core.name, row), part.request),
      );
      if (result.ok) {
        rows.push({
          ...row,
          state: "sent",
          receipt: JSON.stringify({ ...result.receipt, at: this.#core.now() }),
        });
        continue;
      }
      const state = result.evidence === "maybe_sent" ? "unknown" : "dead";
      rows.push({
        ...row,
        state,
        error: result.message,
        error_kind: result.kind,
        extra: writeExtra({ held: true }),
      });
      break;
    }
    const outcome = outcomeOf(rows) ?? { status: "suppressed", rows };
    return { key: draft.publicKey, outcome };
  }
}

export { SendDeferredError, TurnSends };
