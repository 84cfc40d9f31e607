/**
 * One attempt to deliver one row: what has to be asked before the call, the call itself, and the
 * commit of what became of it.
 *
 * @module
 */
import type {
  AnyChannel,
  ChannelIo,
  PartReceipt,
  ReconcileResult,
  SendIo,
  SendResult,
} from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { type ErrorKind, HoldfastError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import type { StepLabel } from "../journal/labels.ts";
import {
  ATTEMPT_LOG_LENGTH,
  type AttemptLogEntry,
  isOpen,
  type OutboxRow,
  OWES,
  readExtra,
  unreadable,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { redact } from "../safety/redact.ts";
import { sleep, TIMED_OUT, withDeadline } from "../time/Clock.ts";
import { follow } from "./follow.ts";
import { markerOf } from "./keys.ts";
import { resplit } from "./render.ts";
import {
  afterAttempt,
  afterCrash,
  afterLookup,
  beforeRepeat,
  expiresAt,
  giveUp,
  type Verdict,
  type VerdictContext,
} from "./verdict.ts";

/** How often an answer is tried to be recorded, and the wait between, in ms (times the try). */
const RECORD_TRIES = 8;
const RECORD_WAIT_MS = 250;

/** What an attempt needs to know of the lane. */
export interface AttemptHooks {
  /** Whether a live turn holds the row, so that its watchdog covers it. */
  isHeld(row: OutboxRow): boolean;
  /** Whether somebody waits for it inline, so that a timer covers its next attempt. */
  isInline(row: OutboxRow): boolean;
  /** The chat is rate limited until then. */
  gate(until: number): void;
  /** The row changed for good or for later: tell waiters, announce. */
  done(row: OutboxRow): void;
}

/** Attempts of one actor. */
export class Attempt {
  readonly #core: Core;
  readonly #hooks: AttemptHooks;

  constructor(core: Core, hooks: AttemptHooks) {
    this.#core = core;
    this.#hooks = hooks;
  }

  /** Moves a row that is due one step on: crash verdict, lookup, or a send. */
  async deliver(row: OutboxRow): Promise<void> {
    const broken = unreadable(row);
    if (broken !== undefined) {
      this.#giveUp(row, "invalid_payload", `unreadable record: its ${broken} is not JSON`);
      return;
    }
    const { connection } = this.#core.identity();
    if (this.#core.bot.channel(connection) === undefined) {
      this.#giveUp(row, "auth", `the bot no longer has the connection "${connection}"`);
      return;
    }
    if (row.state === "sending") {
      // Nobody of this life sends it: the process died between the mark and the record.
      const context = this.#context(row);
      const startedAt =
        row.due_at === null ? row.created_at : row.due_at - context.settings.leaseMs;
      this.#conclude(row, row.claim ?? "", afterCrash(context, startedAt), undefined);
      return;
    }
    const ready = await this.#prepare(row);
    if (ready === undefined) return;
    const claim = this.#core.claim();
    const now = this.#core.now();
    const held = this.#hooks.isHeld(row);
    const dueAt = held ? null : now + this.#core.settings.outbox.leaseMs;
    this.#core.journal.commit("outbox.markSending", () => {
      const marker = markerOf(this.#core.name, row);
      const request = row.first_maybe_at === null ? JSON.stringify(ready.request) : row.request;
      const extra = writeExtra(ready.extra);
      this.#core.journal.outbox.move(row, "sending", {
        claim,
        marker,
        request,
        extra,
        due_at: dueAt,
        ...ready.patch,
      });
      if (dueAt !== null) this.#core.alarm.arm(dueAt);
    });
    if (row.attempts > 0 || row.first_maybe_at !== null) this.#core.metrics.count("outboxRetried");
    await this.send(row, claim, ready.request);
  }

  /**
   * Calls the platform for a row that is marked `sending`. The call starts before the first await, in
   * the same turn of the event loop as the mark: the output gate holds it until the mark is on disk.
   */
  async send(row: OutboxRow, claim: string, request?: JsonObject): Promise<void> {
    const startedAt = this.#core.now();
    const result = await this.#call(row, request ?? (JSON.parse(row.request) as JsonObject));
    await this.#record(row, claim, startedAt, result);
  }

  /**
   * Records an answer. The journal may refuse for a while (full, reset): the answer is worth keeping in
   * memory and trying again, since without it the send is ambiguous.
   */
  async #record(
    row: OutboxRow,
    claim: string,
    startedAt: number,
    result: SendResult,
  ): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        // The call took time: a status, an announcement or a replay may have changed the row.
        const fresh = this.#core.journal.outbox.get(row.turn, row.pos);
        if (fresh === undefined) return;
        Object.assign(row, fresh);
        this.#conclude(row, claim, afterAttempt(this.#context(row), startedAt, result), result);
        return;
      } catch (error) {
        this.#core.host.rethrowIfHalted(error);
        if (tries === RECORD_TRIES) throw error;
        this.#core.host.log.error("an answer could not be recorded yet", {
          tries,
          error: messageOf(error),
        });
        await sleep(this.#core.host.clock, RECORD_WAIT_MS * tries);
      }
    }
  }

  async #call(row: OutboxRow, request: JsonObject): Promise<SendResult> {
    return callChannel(this.#core, this.#addressOf(row), row.marker ?? "", request);
  }

  /** Everything before the mark. Resolves to the request to send, or nothing if there is no call now. */
  async #prepare(
    row: OutboxRow,
  ): Promise<
    | { request: JsonObject; extra: ReturnType<typeof readExtra>; patch: Partial<OutboxRow> }
    | undefined
  > {
    const context = this.#context(row);
    const now = context.now;
    if (row.not_after !== null && now > row.not_after) {
      return this.#stop(row, giveUp(context, "cancelled", "not delivered before `notAfter`"));
    }
    if (now > expiresAt(context))
      return this.#stop(row, giveUp(context, "transient", "older than `outbox.maxAgeMs`"));
    const late = beforeRepeat(context);
    if (late !== undefined) return this.#stop(row, late);
    const patch: Partial<OutboxRow> = {};
    const before = { state: row.state, generation: row.generation, extra: row.extra };
    if (row.state === "unknown" && context.extra.resend !== true) {
      const found = await this.#lookUp(row);
      if (!this.#unchanged(row, before)) return undefined;
      const verdict = afterLookup(this.#context(row), found);
      if (verdict !== undefined) {
        return this.#stop(row, verdict, found.result === "sent" ? found.receipt : undefined);
      }
      if (context.extra.superseded === true) return this.#drop(row);
      // Proven about this marker, so the evidence is cleared, and its window begins again.
      patch.first_maybe_at = null;
      patch.maybes = 0;
    }
    if (context.extra.probe === true && !(await this.#selfTest())) {
      if (this.#unchanged(row, before)) this.#postpone(row);
      return undefined;
    }
    if (!this.#unchanged(row, before)) return undefined;
    let request = JSON.parse(row.request) as JsonObject;
    // A row of an earlier life may have been recorded by other code, under another limit.
    const otherCode = row.created_at < this.#core.startedAt || context.extra.rerender === true;
    if (row.state === "pending" && row.attempts === 0 && otherCode) {
      const again = resplit(this.#core, row);
      if (again === "replaced") return undefined;
      request = again ?? request;
    }
    const prepared = await this.#prepareRequest(row, request);
    if (!this.#unchanged(row, before)) return undefined;
    if (!prepared.ok) return this.#stop(row, afterAttempt(this.#context(row), now, prepared));
    const {
      probe: _probe,
      resend: _resend,
      lookups: _lookups,
      rerender: _rerender,
      ...extra
    } = readExtra(row);
    return { request: prepared.request, extra, patch };
  }

  async #prepareRequest(
    row: OutboxRow,
    request: JsonObject,
  ): Promise<{ ok: true; request: JsonObject } | Extract<SendResult, { ok: false }>> {
    const channel = this.#core.channel();
    if (channel.outbound.prepare === undefined) return { ok: true, request };
    const abort = new AbortController();
    this.#core.host.probe("channel.prepare", "before");
    try {
      const io = sendIo(
        this.#core,
        channel,
        abort.signal,
        this.#addressOf(row),
        markerOf(this.#core.name, row),
      );
      const limit = this.#core.settings.outbox.sendTimeoutMs;
      const done = await withDeadline(
        this.#core.host.clock,
        limit,
        channel.outbound.prepare(request, io),
      );
      this.#core.host.probe("channel.prepare", "after");
      return done === TIMED_OUT
        ? {
            ok: false,
            kind: "transient",
            evidence: "not_sent",
            message: "preparing the send took too long",
          }
        : done;
    } catch (error) {
      return notSent(error);
    } finally {
      abort.abort();
    }
  }

  async #lookUp(row: OutboxRow): Promise<ReconcileResult> {
    const { reconcile } = this.#core.channel().outbound;
    if (reconcile === undefined || row.first_maybe_at === null) return { result: "unresolved" };
    const query = {
      request: JSON.parse(row.request) as JsonObject,
      marker: row.marker ?? "",
      address: this.#addressOf(row),
      firstMaybeAt: row.first_maybe_at,
    };
    const found = await this.#ask("channel.reconcile", (io, channel) =>
      channel.outbound.reconcile?.(query, io),
    );
    return found ?? { result: "unresolved" };
  }

  async #selfTest(): Promise<boolean> {
    const { selfTest } = this.#core.channel().outbound;
    if (selfTest === undefined) return true;
    return (
      (await this.#ask("channel.selfTest", (io, channel) => channel.outbound.selfTest?.(io))) ===
      true
    );
  }

  /** A harmless question to the platform: a throw or no answer in time is `undefined`. */
  async #ask<T>(
    label: StepLabel,
    question: (io: ChannelIo<unknown>, channel: AnyChannel) => Promise<T> | undefined,
  ): Promise<T | undefined> {
    const channel = this.#core.channel();
    const abort = new AbortController();
    this.#core.host.probe(label, "before");
    try {
      const asked = question(this.#core.channelIo(channel, abort.signal), channel);
      if (asked === undefined) return undefined;
      const answer = await withDeadline(
        this.#core.host.clock,
        this.#core.settings.outbox.sendTimeoutMs,
        asked,
      );
      this.#core.host.probe(label, "after");
      return answer === TIMED_OUT ? undefined : answer;
    } catch (error) {
      this.#core.host.log.debug("a question to the platform failed", {
        label,
        error: messageOf(error),
      });
      return undefined;
    } finally {
      abort.abort();
    }
  }

  /** A row that nothing can send ends alone; its chat goes on. */
  #giveUp(row: OutboxRow, kind: ErrorKind, error: string): void {
    const owed = this.#listenedTo() & OWES.dead;
    const now = this.#core.now();
    this.#core.journal.commit("outbox.markFailed", () => {
      this.#core.journal.outbox.move(row, "dead", {
        error_kind: kind,
        error,
        // Its columns may be what is broken.
        ...(kind === "invalid_payload" ? { extra: null, address: null } : {}),
        finished_at: now,
        owed,
        due_at: owed === 0 ? null : now + this.#core.settings.outbox.leaseMs,
      });
      follow(this.#core, row, (next) => this.#hooks.isHeld(next));
    });
    this.#core.metrics.count("outboxDead");
    this.#core.host.log.error("a send is given up", { turn: row.turn, pos: row.pos, kind, error });
    this.#hooks.done(row);
  }

  /** Ends an attempt before its call. */
  #stop(row: OutboxRow, verdict: Verdict, receipt?: PartReceipt): undefined {
    if (verdict.gateUntil !== undefined) this.#hooks.gate(verdict.gateUntil);
    this.#core.journal.commit(
      verdict.to === "sent" ? "outbox.markSent" : "outbox.markFailed",
      () => {
        const patch = this.#patchOf(
          row,
          verdict,
          receipt === undefined ? undefined : { ok: true, receipt },
        );
        // Nothing was called: a row that has to wait once more stays what it is.
        const waits = verdict.to === "failed" || verdict.to === row.state;
        if (waits) this.#core.journal.outbox.update(row, patch);
        else this.#core.journal.outbox.move(row, verdict.to, patch);
        follow(this.#core, row, (next) => this.#hooks.isHeld(next));
      },
    );
    this.#after(row, verdict);
    return undefined;
  }

  /** Proven unsent, and its turn says something else by now. */
  #drop(row: OutboxRow): undefined {
    this.#core.journal.commit("outbox.markFailed", () => {
      const owed = row.owed;
      this.#core.journal.outbox.move(row, "suppressed", {
        extra: writeExtra({ ...readExtra(row), reason: "diverged" }),
        finished_at: this.#core.now(),
        due_at: owed === 0 ? null : this.#core.now() + this.#core.settings.outbox.leaseMs,
      });
      follow(this.#core, row, (next) => this.#hooks.isHeld(next));
    });
    this.#hooks.done(row);
    return undefined;
  }

  /** The channel does not answer: later, and no attempt is spent. */
  #postpone(row: OutboxRow): void {
    const { baseMs, capMs } = this.#core.settings.outbox.backoff;
    const now = this.#core.now();
    // A quarter of the time it has waited: seldom enough for an outage of hours, with no counter to keep.
    const waited = now - (row.first_maybe_at ?? now);
    const dueAt = now + Math.ceil(Math.min(Math.max(baseMs, waited / 4), capMs));
    this.#core.journal.commit("outbox.postpone", () => {
      this.#core.journal.outbox.update(row, { due_at: dueAt });
      if (!this.#hooks.isInline(row)) this.#core.alarm.arm(dueAt);
    });
    this.#hooks.done(row);
  }

  /** Records what became of a call, unless something else settled the row meanwhile. */
  #conclude(row: OutboxRow, claim: string, verdict: Verdict, result: SendResult | undefined): void {
    const { journal } = this.#core;
    const label = verdict.to === "sent" ? "outbox.markSent" : "outbox.markFailed";
    if (verdict.gateUntil !== undefined) this.#hooks.gate(verdict.gateUntil);
    const written = journal.commit(label, () => {
      const to = this.#supersededTo(row, verdict);
      const patch = this.#patchOf(row, { ...verdict, to }, result);
      // Refused and no longer wanted are two moves, in one commit.
      const through = to === "suppressed" ? "failed" : to;
      if (!journal.outbox.moveIfClaimed(row, claim, through, patch)) {
        this.#complete(row, result);
        return false;
      }
      if (through !== to) journal.outbox.move(row, to);
      if (result?.ok && this.#core.channel().capabilities.statuses) {
        journal.side.keepReceipt(result.receipt.id, row.turn, row.pos);
      }
      if (typeof patch.address === "string") this.#moved(JSON.parse(patch.address) as Address);
      follow(this.#core, row, (next) => this.#hooks.isHeld(next));
      return true;
    });
    if (!written) {
      this.#core.metrics.count("staleLeases");
      const now = journal.outbox.get(row.turn, row.pos);
      if (now !== undefined) this.#hooks.done(now);
      return;
    }
    this.#after(row, verdict);
  }

  /** The platform has renamed the chat: what is said from now on goes there at once. */
  #moved(to: Address): void {
    const { v: _version, thread: _thread, ...identity } = this.#core.identity();
    const thread = to.thread;
    this.#core.journal.identify({
      ...identity,
      chat: to.chat,
      ...(thread === undefined ? {} : { thread }),
    });
  }

  /** A status was faster than the answer, and may not have named the message: the answer does. */
  #complete(row: OutboxRow, result: SendResult | undefined): void {
    if (!result?.ok || row.state !== "sent" || row.receipt === null) return;
    const stored = JSON.parse(row.receipt) as { id: string; at?: number };
    if (stored.id !== row.marker) return;
    const at = stored.at ?? this.#core.now();
    this.#core.journal.outbox.update(row, { receipt: JSON.stringify({ ...result.receipt, at }) });
  }

  #after(row: OutboxRow, verdict: Verdict): void {
    if (
      (verdict.owes & OWES.ambiguous) !== 0 &&
      verdict.extra.action !== undefined &&
      verdict.patch.maybes === 1
    ) {
      this.#core.metrics.count("outboxAmbiguous");
    }
    if (row.state === "dead") this.#core.metrics.count("outboxDead");
    if (row.state !== "sent") {
      this.#core.host.log.warn("a send did not go through", {
        state: row.state,
        turn: row.turn,
        pos: row.pos,
        kind: row.error_kind,
        attempts: row.attempts,
      });
    }
    this.#hooks.done(row);
  }

  /** A row whose turn now says something else is not repeated: unsent it is dropped, else it stays unknown. */
  #supersededTo(row: OutboxRow, verdict: Verdict): Verdict["to"] | "suppressed" {
    if (readExtra(row).superseded !== true || verdict.to !== "failed") return verdict.to;
    const maybe = (verdict.patch.first_maybe_at ?? row.first_maybe_at) !== null;
    return maybe ? "unknown" : "suppressed";
  }

  #patchOf(
    row: OutboxRow,
    verdict: Omit<Verdict, "to"> & { to: OutboxRow["state"] },
    result: SendResult | undefined,
  ): Partial<OutboxRow> {
    const now = this.#core.now();
    const channel = this.#core.channel();
    const extra = { ...verdict.extra };
    const patch: Partial<OutboxRow> = { ...verdict.patch, claim: null };
    let owed = verdict.owes & this.#listenedTo();
    if (verdict.to === "suppressed") extra.reason = "diverged";
    if (verdict.to === "unknown" && extra.superseded === true) {
      extra.held = true;
      if (extra.action === "resent") extra.action = "held";
    }
    if (verdict.to === "sent") {
      if (row.error !== null) Object.assign(patch, { error: null, error_kind: null });
      if (result?.ok) patch.receipt = JSON.stringify({ ...result.receipt, at: now });
      if (this.#core.bot.hasAfterSend) owed |= OWES.afterSend;
    }
    const open = isOpen({ state: verdict.to, extra: writeExtra(extra) });
    if (!open) patch.finished_at = now;
    // What is owed to listeners keeps a wake-up on disk until it is paid.
    const dueAt = open
      ? verdict.dueAt
      : owed === 0
        ? null
        : now + this.#core.settings.outbox.leaseMs;
    if (dueAt !== row.due_at) patch.due_at = dueAt;
    if (owed !== row.owed) patch.owed = owed;
    if (dueAt !== null && !(open && this.#hooks.isInline(row))) this.#core.alarm.arm(dueAt);
    const request = JSON.parse(row.request) as JsonObject;
    if (
      extra.plain === true &&
      readExtra(row).plain !== true &&
      channel.outbound.plain !== undefined
    ) {
      patch.request = JSON.stringify(channel.outbound.plain(request));
    }
    if (typeof patch.address === "string" && channel.outbound.readdress !== undefined) {
      patch.request = JSON.stringify(
        channel.outbound.readdress(request, JSON.parse(patch.address) as Address),
      );
    }
    patch.extra = writeExtra(extra);
    if (verdict.to !== "sent" || row.attempt_log !== null) {
      patch.attempt_log = appendLog(row.attempt_log, entryOf(now, verdict.outcome, result));
    }
    return patch;
  }

  /** Whether nothing else touched the row during an await; brings `row` up to date. */
  #unchanged(row: OutboxRow, before: Pick<OutboxRow, "state" | "generation" | "extra">): boolean {
    const now = this.#core.journal.outbox.get(row.turn, row.pos);
    if (now === undefined) return false;
    Object.assign(row, now);
    return (
      now.state === before.state &&
      now.generation === before.generation &&
      now.extra === before.extra
    );
  }

  /** Announcements that somebody listens to; the others are told to the log alone and cost no row. */
  #listenedTo(): number {
    const { bot } = this.#core;
    return (
      (bot.hasListener("durability:ambiguous") ? OWES.ambiguous : 0) |
      (bot.hasListener("durability:dead") ? OWES.dead : 0) |
      (bot.hasAfterSend ? OWES.afterSend : 0)
    );
  }

  #addressOf(row: OutboxRow): Address {
    return row.address === null ? this.#core.address() : (JSON.parse(row.address) as Address);
  }

  #context(row: OutboxRow): VerdictContext {
    const channel = this.#core.channel();
    const settings = this.#core.settings.outbox;
    return {
      row,
      extra: readExtra(row),
      now: this.#core.now(),
      random: this.#core.host.random(),
      settings,
      policies: settings.onAmbiguous(channel.name),
      capabilities: channel.capabilities,
    };
  }
}

/** What `send` gets. @throws {ConfigError} naming the variables that are not set */
function sendIo(
  core: Core,
  channel: AnyChannel,
  signal: AbortSignal,
  address: Address,
  marker: string,
): SendIo<unknown> {
  return { ...core.channelIo(channel, signal), address, marker };
}

/**
 * One platform call with its deadline. What cannot be shown to be a refusal is `maybe_sent`. The only
 * place that calls `channel.send`; starts the call before its first await.
 */
export async function callChannel(
  core: Core,
  address: Address,
  marker: string,
  request: JsonObject,
): Promise<SendResult> {
  const abort = new AbortController();
  const limit = core.settings.outbox.sendTimeoutMs;
  core.host.probe("channel.send", "before");
  let sending: Promise<SendResult>;
  try {
    const channel = core.channel();
    sending = channel.outbound.send(request, sendIo(core, channel, abort.signal, address, marker));
  } catch (error) {
    // The connection is not configured, or its code failed before any call.
    return notSent(error);
  }
  try {
    const answer = await withDeadline(core.host.clock, limit, sending);
    core.host.probe("channel.send", "after");
    if (answer === TIMED_OUT) {
      return {
        ok: false,
        kind: "unknown",
        evidence: "maybe_sent",
        message: `no answer within ${limit} ms`,
      };
    }
    if (answer.ok && !answer.receipt.id) {
      return {
        ok: false,
        kind: "unknown",
        evidence: "maybe_sent",
        message: "accepted without a message id",
      };
    }
    return answer;
  } catch (error) {
    const message = redact(messageOf(error), core.host.env);
    return { ok: false, kind: "unknown", evidence: "maybe_sent", message };
  } finally {
    abort.abort();
  }
}

function notSent(error: unknown): Extract<SendResult, { ok: false }> {
  const known = error instanceof HoldfastError ? error : undefined;
  return {
    ok: false,
    kind: known?.kind ?? "transient",
    evidence: "not_sent",
    message: messageOf(error),
    ...(known === undefined ? {} : { code: known.code }),
  };
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500);
}

function entryOf(at: number, outcome: string, result: SendResult | undefined): AttemptLogEntry {
  if (result === undefined || result.ok) return { at, outcome };
  return {
    at,
    outcome,
    kind: result.kind,
    message: result.message.slice(0, 200),
    ...(result.code === undefined ? {} : { code: result.code }),
  };
}

function appendLog(log: string | null, entry: AttemptLogEntry): string {
  const entries = log === null ? [] : (JSON.parse(log) as AttemptLogEntry[]);
  return JSON.stringify([...entries, entry].slice(-ATTEMPT_LOG_LENGTH));
}
