/**
 * Deciding a send: its key, whether the journal already knows it, and the commit that records it.
 * Without hooks everything here runs with no await, so that calls are recorded in the order in which
 * the handler made them.
 *
 * @module
 */
import type { RenderedPart } from "../channels/channel.ts";
import type { Content } from "../channels/content.ts";
import { PayloadTooLargeError, TurnEndedError } from "../channels/errors.ts";
import { type OutboxRow, readExtra, writeExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { errorText } from "../safety/redact.ts";
import { checkOptions } from "../turns/checkOptions.ts";
import { byteLength, encode, type NormalContent, normalise } from "./content.ts";
import { type Deliveries, intentOf, outcomeOf } from "./Deliveries.ts";
import type { Drain, Started } from "./Drain.ts";
import { type Decided, type Draft, type Intent, rowsOf } from "./draft.ts";
import { encodeKey, explicitSlot, fingerprintOf, keyOf, markerOf, PREVIEW } from "./keys.ts";
import { callChannel } from "./platform.ts";
import { dropUnsent, previewOf } from "./previews.ts";
import { Recall } from "./Recall.ts";
import { relayPart } from "./relay.ts";
import { type Rendered, renderContent } from "./render.ts";
import type { TurnSends } from "./TurnSends.ts";

/** Intents of one actor. */
export class Intents {
  readonly #core: Core;
  readonly #drain: Drain;
  readonly #recall: Recall;

  constructor(core: Core, drain: Drain, deliveries: Deliveries) {
    this.#core = core;
    this.#drain = drain;
    this.#recall = new Recall(core, drain, deliveries);
  }

  /**
   * Decides a send and, where asked, waits for it.
   * @throws {TurnEndedError} on a context whose turn is over
   * @throws {UnsupportedContentError} for content that the channel does not declare
   */
  intend(intent: Intent): Promise<Decided> {
    return this.track(intent.sends, () => this.#decide(intent));
  }

  /**
   * Decides a send as part of its turn, which waits for those that its handler does not.
   * @throws {TurnEndedError} on a context whose turn is over
   */
  track<T>(sends: TurnSends | undefined, decide: () => Promise<T>): Promise<T> {
    if (sends?.closed) {
      return Promise.reject(
        new TurnEndedError("this turn is over; use `client.chat(address)` to send later"),
      );
    }
    const deciding = decide();
    if (sends === undefined) return deciding;
    // The turn waits for sends that its handler did not; their failure is the handler's to see.
    const tracked = deciding
      .catch((error: unknown) => this.#failed(sends.id, error))
      .finally(() => sends.open.delete(tracked));
    sends.open.add(tracked);
    return deciding;
  }

  /** A send that nobody awaits would otherwise fail without a word. */
  #failed(id: string, error: unknown): void {
    this.#core.host.log.error("a send failed before it was recorded", {
      id,
      error: errorText(error, this.#core.host.env),
    });
  }

  async #decide(intent: Intent): Promise<Decided> {
    const draft = this.draft(intent);
    const known = this.known(draft);
    if (known !== undefined) return known;
    intent.sends?.onNew(draft.slot);
    return this.finish(draft);
  }

  /** Names a send, and takes its place in the order of its turn. */
  draft(intent: Intent, fingerprint?: string): Draft {
    const content = normalise(intent.content);
    const options = checkOptions(intent.options);
    const address = intent.relayTo ?? this.#core.address();
    const slot = this.#slotOf(intent);
    const key = this.#keyOf(intent);
    const encodable = encode(content) !== undefined;
    return {
      intent: { ...intent, options },
      slot,
      key,
      publicKey: keyOf({ key, slot, part: 0 }, intent.sends?.id),
      // By the actor's name: a chat that moved is the same chat, and what was said in it is said.
      fingerprint:
        fingerprint ?? (encodable ? fingerprintOf(intent.relayTo ?? this.#core.name, content) : ""),
      content,
      address,
      intendedAt: this.#core.now(),
    };
  }

  /** Whether a send gets a record. */
  #isRecorded({ intent }: Draft): boolean {
    return intent.options.durability !== "disabled" && intent.sends?.unjournaled !== true;
  }

  /** What the journal knows of a send already. */
  known(draft: Draft): Promise<Decided> | undefined {
    // What has no fingerprint cannot be encoded.
    return this.#isRecorded(draft) && draft.fingerprint !== ""
      ? this.#recall.known(draft)
      : undefined;
  }

  /** Runs the hooks of a new send, records it, and waits where the caller does. */
  async finish(draft: Draft): Promise<Decided> {
    const { intent } = draft;
    const { options, sends } = intent;
    if (this.#core.bot.hasBeforeSend) {
      await this.#runHooks(draft);
      if (sends?.closed) throw new TurnEndedError("the turn ended while a `before` hook ran");
      // Another call with the same key may have been recorded while the hooks ran; a slot is this call's own.
      const meanwhile = options.idempotencyKey === undefined ? undefined : this.known(draft);
      if (meanwhile !== undefined) return meanwhile;
    }
    if (sends?.unjournaled) return this.#bypass(draft, "the journal refuses writes (failOpen)");
    const recorded = this.#isRecorded(draft);
    const why = recorded ? this.#bypassReason(draft.content) : 'durability is "disabled"';
    if (why !== undefined && intent.relayTo !== undefined) {
      throw new PayloadTooLargeError(`a send to another chat needs a record (${why})`);
    }
    if (!recorded) return this.#direct(draft);
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
    const mine = (sends?.hooks ?? Promise.resolve()).then(() => this.askHooks(draft));
    if (sends !== undefined) sends.hooks = mine.catch(() => undefined);
    await mine;
  }

  /** @param preview whether it is only shown while it is written */
  async askHooks(draft: Draft, preview = false): Promise<void> {
    let changed: Content = draft.intent.content;
    await this.#core.bot.beforeSend({
      preview,
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

  /** Records the intent, and sends its first part at once where nothing is ahead of it. */
  #record(draft: Draft): Promise<Decided> {
    const { intent } = draft;
    const turn = intent.sends?.seq ?? this.#core.journal.nextSeq();
    draft.turn = turn;
    const place = `${turn}/${draft.slot}`;
    const nothing = draft.shown !== undefined && (draft.content.text ?? "").trim() === "";
    const rendered =
      intent.relayTo === undefined
        ? nothing
          ? { parts: [], kept: [] }
          : renderContent(this.#core, draft.content, draft.address, place)
        : { parts: [relayPart(draft.content)], kept: [] };
    if (rendered.parts.length === 0) draft.vetoed ??= "nothing to send";
    const rows = rowsOf(draft, rendered);
    const head = rows[0] as OutboxRow;
    if (intent.options.when === "settled" && intent.sends !== undefined) {
      intent.sends.hold({ rows, kept: rendered.kept, replaces: draft.replaces ?? [] });
      return Promise.resolve({ key: draft.publicKey, outcome: { status: "deferred", rows: [] } });
    }
    const started = this.#startNow(intent, head);
    try {
      this.#core.journal.commit("outbox.insert", () => {
        for (const old of draft.replaces ?? [])
          this.#core.journal.outbox.deleteRow(old.turn, old.pos);
        for (const row of rows) this.#dropPreview(row);
        this.insert(rows, rendered.kept);
      });
    } catch (error) {
      if (intent.options.durability !== "best_effort" || intent.relayTo !== undefined) throw error;
      this.#core.host.log.warn("a send could not be recorded and goes out without a record", {
        key: draft.publicKey,
      });
      return this.#direct(draft);
    }
    this.#core.metrics.count("outboxJournaled", rows.length);
    intent.sends?.record(head);
    intent.sends?.onCommitted();
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
    return this.#recall.wait(draft, draft.publicKey, intentOf(head), started);
  }

  /** An answer that is there waits for no preview that is not out yet. */
  #dropPreview(row: OutboxRow): void {
    const preview = previewOf(this.#core, row);
    // A rate limit holds for the answer, too, and its row is what remembers it over a crash.
    if (preview !== undefined && preview.error_kind !== "rate_limit")
      dropUnsent(this.#core, preview, this.#drain.isInFlight(preview));
  }

  /** Records a look at an answer that is being written, and sends it: a row beside the answer's own. */
  preview(draft: Draft, index: number, part: RenderedPart, remove: boolean): OutboxRow {
    const { slot: answer } = draft;
    const own = { ...draft, slot: `${answer}${PREVIEW}p${index}`, key: null };
    const [made] = rowsOf(own, { parts: [part], kept: [] });
    const row: OutboxRow = {
      ...(made as OutboxRow),
      content: null,
      fingerprint: null,
      extra: writeExtra({ preview: true, ...(remove ? { remove } : {}) }),
    };
    const started = this.#startNow(draft.intent, row);
    this.#core.journal.commit("outbox.insert", () => this.insert([row], []));
    if (draft.intent.sends !== undefined) draft.intent.sends.hasPreviews = true;
    this.#drain.hold(row);
    this.#drain.kick(started);
    return row;
  }

  /**
   * Records an answer that ends before its source does. Call in the commit that ends its turn: no hook runs,
   * and its rows are due at once.
   */
  freeze(draft: Draft): void {
    const place = `${draft.intent.sends?.seq ?? 0}/${draft.slot}`;
    const rendered = renderContent(this.#core, draft.content, draft.address, place);
    const rows = rowsOf({ ...draft, intendedAt: this.#core.now() }, rendered);
    for (const row of rows) if (row.part === 0) row.due_at = this.#core.now();
    for (const row of rows) this.#dropPreview(row);
    this.insert(rows, rendered.kept);
    this.#core.metrics.count("outboxJournaled", rows.length);
  }

  /** Writes the rows of an intent and arms what wakes them. Call inside a commit. */
  insert(rows: readonly OutboxRow[], kept: Rendered["kept"]): void {
    const { journal, alarm } = this.#core;
    for (const row of rows) {
      journal.outbox.insert(row);
      if (row.due_at !== null) alarm.arm(row.due_at);
    }
    for (const { id, value } of kept) journal.side.keepButton(id, rows[0]?.turn ?? 0, value);
  }

  /** Records what `when: "settled"` held back. Call inside the settle's commit. */
  insertSettled(sends: TurnSends, turnFailed: boolean): void {
    for (const { rows, kept, replaces } of sends.settled) {
      const failed = turnFailed && !sends.kept?.has(rows[0]?.slot ?? "");
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
      this.insert(rows, failed ? [] : kept);
      this.#core.metrics.count("outboxJournaled", rows.length);
    }
  }

  /** Marks the first part `sending` in the commit that records it, where it can go out this instant. */
  #startNow(intent: Intent, head: OutboxRow): Started | undefined {
    const scheduled = head.due_at !== null && head.due_at > this.#core.now();
    const alone =
      this.#core.settings.outbox.order !== "strict" && this.#drain.isFree(intent.relayTo);
    if (!alone || scheduled || !intent.wait || head.state !== "pending") return undefined;
    if (intent.relayTo === undefined && this.#core.channel().outbound.prepare !== undefined)
      return undefined;
    const claim = this.#core.claim();
    head.state = "sending";
    head.claim = claim;
    head.marker = markerOf(this.#core.name, head);
    if (head.due_at !== null) head.due_at = this.#core.now() + this.#core.settings.outbox.leaseMs;
    return { row: head, claim };
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
    const [template] = rowsOf(plain, { parts: [{ kind: "other", request: {} }], kept: [] });
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
