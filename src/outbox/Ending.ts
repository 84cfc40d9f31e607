/**
 * How an attempt ends: the commit of what became of it, and what follows from that for the parts behind
 * it, for waiters and for listeners.
 *
 * @module
 */
import type { PartReceipt, SendResult } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import type { ErrorKind } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import {
  ATTEMPT_LOG_LENGTH,
  type AttemptLogEntry,
  isOpen,
  type OutboxRow,
  OWES,
  readExtra,
  writeExtra,
} from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { follow } from "./follow.ts";
import { publicKeyOf } from "./publicKey.ts";
import { isRelay } from "./relay.ts";
import type { Verdict } from "./verdict.ts";

/** What an attempt needs to know of the lane. */
export interface AttemptHooks {
  /** The platform said that this chat was written to too fast. */
  limited(): void;
  /** A call to the platform begins: it spends the chat's pace. */
  calling(): void;
  /** Whether a live turn holds the row, so that its watchdog covers it. */
  isHeld(row: OutboxRow): boolean;
  /** Whether somebody waits for it inline, so that a timer covers its next attempt. */
  isInline(row: OutboxRow): boolean;
  /** The chat is rate limited until then. */
  gate(until: number): void;
  /** The row changed for good or for later: tell waiters, announce. */
  done(row: OutboxRow): void;
}

/** Endings of one actor's attempts. */
export class Ending {
  readonly #core: Core;
  readonly #hooks: AttemptHooks;

  constructor(core: Core, hooks: AttemptHooks) {
    this.#core = core;
    this.#hooks = hooks;
  }

  /** A row that nothing can send ends alone; its chat goes on. */
  giveUp(row: OutboxRow, kind: ErrorKind, error: string): void {
    const now = this.#core.now();
    // What may have been sent is not dead, whatever keeps it from being settled now.
    const sticky = row.state === "sending" || row.first_maybe_at !== null;
    const told = this.#listenedTo(row);
    const first = sticky && row.first_maybe_at === null;
    const owed = row.owed | (sticky ? (first ? told & OWES.ambiguous : 0) : told & OWES.dead);
    const tellBy = now + this.#core.settings.outbox.leaseMs;
    const extra = kind === "invalid_payload" ? {} : readExtra(row);
    this.#core.journal.commit("outbox.markFailed", () => {
      if (owed !== 0) this.#core.alarm.arm(tellBy);
      const patch: Partial<OutboxRow> = {
        error_kind: kind,
        error,
        extra: writeExtra({
          ...extra,
          ...(sticky ? { held: true } : {}),
          ...(first ? { action: "held", cause: "crash" } : {}),
        }),
        // Its columns may be what is broken.
        ...(kind === "invalid_payload" ? { address: null } : {}),
        ...(first ? { first_maybe_at: now, maybes: row.maybes + 1 } : {}),
        claim: null,
        finished_at: now,
        owed,
        due_at: owed === 0 ? null : tellBy,
      };
      const to = sticky ? "unknown" : "dead";
      if (row.state === to) this.#core.journal.outbox.update(row, patch);
      else this.#core.journal.outbox.move(row, to, patch);
      follow(this.#core, row, (next) => this.#hooks.isHeld(next));
    });
    this.#core.metrics.count(sticky ? "outboxAmbiguous" : "outboxDead");
    const key = publicKeyOf(this.#core.journal, row);
    this.#core.host.log.error("a send is given up", { key, kind, error });
    this.#hooks.done(row);
  }

  /** Ends an attempt before its call. */
  stop(row: OutboxRow, verdict: Verdict, receipt?: PartReceipt): undefined {
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

  /** Proven unsent, and not wanted any more: its turn says something else by now. */
  drop(row: OutboxRow, reason = "diverged"): undefined {
    this.#core.journal.commit("outbox.markFailed", () => {
      const owed = row.owed;
      this.#core.journal.outbox.move(row, "suppressed", {
        extra: writeExtra({ ...readExtra(row), reason }),
        finished_at: this.#core.now(),
        due_at: owed === 0 ? null : this.#core.now() + this.#core.settings.outbox.leaseMs,
      });
      follow(this.#core, row, (next) => this.#hooks.isHeld(next));
    });
    this.#hooks.done(row);
    return undefined;
  }

  /** The channel does not answer: later, and no attempt is spent. */
  postpone(row: OutboxRow): void {
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
  conclude(row: OutboxRow, claim: string, verdict: Verdict, result: SendResult | undefined): void {
    const { journal } = this.#core;
    const label = verdict.to === "sent" ? "outbox.markSent" : "outbox.markFailed";
    if (verdict.gateUntil !== undefined) this.#hooks.gate(verdict.gateUntil);
    const written = journal.commit(label, () => {
      const to = this.#endOf(row, verdict);
      const patch = this.#patchOf(row, { ...verdict, to }, result);
      // Refused and no longer wanted are two moves, in one commit.
      const through = to === "suppressed" ? "failed" : to;
      if (!journal.outbox.moveIfClaimed(row, claim, through, patch)) {
        this.#complete(row, result);
        return false;
      }
      if (through !== to) journal.outbox.move(row, to);
      const message = !isRelay(row) && readExtra(row).preview !== true;
      if (result?.ok && message && this.#core.channel().capabilities.statuses) {
        journal.side.keepReceipt(result.receipt.id, row.turn, row.pos);
      }
      if (typeof patch.address === "string") this.#core.moved(JSON.parse(patch.address) as Address);
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
      const doubt = row.first_maybe_at !== null;
      const message = doubt
        ? "nobody knows whether a send went through"
        : "a send did not go through";
      this.#core.host.log.warn(message, {
        key: publicKeyOf(this.#core.journal, row),
        state: row.state,
        kind: row.error_kind,
        attempts: row.attempts,
      });
    }
    this.#hooks.done(row);
  }

  /** Where a row ends that nobody wants by now, or that was a preview only: refused it is dropped. */
  #endOf(row: OutboxRow, verdict: Verdict): Verdict["to"] | "suppressed" {
    const { superseded, preview } = readExtra(row);
    if (preview === true && verdict.to === "dead") return "suppressed";
    if (superseded !== true || verdict.to !== "failed") return verdict.to;
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
    let owed = verdict.owes & this.#listenedTo(row);
    if (verdict.to === "suppressed") {
      extra.reason = extra.preview ? "refused" : "diverged";
      owed &= ~OWES.dead;
    }
    if (verdict.to === "unknown" && extra.superseded === true) {
      extra.held = true;
      if (extra.action === "resent") extra.action = "held";
    }
    if (verdict.to === "sent") {
      if (row.error !== null) Object.assign(patch, { error: null, error_kind: null });
      if (result?.ok) patch.receipt = JSON.stringify({ ...result.receipt, at: now });
      // The other chat says when it is sent.
      if (this.#core.bot.hasAfterSend && !isRelay(row) && extra.preview !== true)
        owed |= OWES.afterSend;
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

  /** Announcements that somebody listens to; the others are told to the log alone and cost no row. */
  #listenedTo(row: OutboxRow): number {
    const { bot } = this.#core;
    // A notice by a listener that fails must not call that listener again.
    if (row.origin === "runtime") return 0;
    return (
      (bot.hasListener("durability:ambiguous") ? OWES.ambiguous : 0) |
      (bot.hasListener("durability:dead") ? OWES.dead : 0) |
      (bot.hasAfterSend ? OWES.afterSend : 0)
    );
  }
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
