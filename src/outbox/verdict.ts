/**
 * The decision table of design §6 as pure functions: what becomes of a row after an attempt, after a
 * crash in an attempt, and after a lookup. They read a row and say what to write; the drain writes it.
 *
 * @module
 */
import type { Capabilities, ReconcileResult, SendResult } from "../channels/channel.ts";
import { type ErrorKind, isRetryableKind } from "../channels/errors.ts";
import {
  type AmbiguousAction,
  type OutboxExtra,
  type OutboxRow,
  OWES,
} from "../journal/records.ts";
import { backoffMs } from "../time/backoff.ts";
import type { AmbiguousPolicies, AmbiguousPolicy, Settings } from "../turns/options.ts";

/** A repeat of a keyed send must be over this long before the marker's window closes, in ms. */
const WINDOW_MARGIN_MS = 5_000;
/** A chat that moves more often than this is a loop. */
const MAX_MOVES = 3;

/** Everything a verdict depends on. */
export interface VerdictContext {
  row: OutboxRow;
  extra: OutboxExtra;
  now: number;
  /** Uniform in [0, 1). */
  random: number;
  settings: Settings["outbox"];
  policies: AmbiguousPolicies;
  capabilities: Capabilities;
}

/** What to write. `dueAt` null: nobody has to come back by time. */
export interface Verdict {
  to: "sent" | "failed" | "unknown" | "dead";
  dueAt: number | null;
  /** Changed columns besides state, due time, `extra` and `owed`. */
  patch: Partial<OutboxRow>;
  /** The row's rare settings afterwards. */
  extra: OutboxExtra;
  /** What it owes to listeners now; bits of `OWES`. */
  owes: number;
  /** The whole chat waits until then. */
  gateUntil?: number;
  /** For the attempt log and the metrics. */
  outcome: string;
}

/** How the channel proves things about this row now: a marker's window ends. */
export function classOf(context: VerdictContext): "keyed" | "provable" | "blind" {
  const { class: declared, markerWindowMs, afterWindow } = context.capabilities.delivery;
  if (declared !== "keyed") return declared;
  if (context.extra.windowOver === true) return afterWindow ?? "blind";
  if (markerWindowMs === undefined) return "keyed";
  const from = context.row.first_maybe_at ?? context.now;
  const safe =
    context.now + context.settings.sendTimeoutMs + WINDOW_MARGIN_MS <= from + markerWindowMs;
  return safe ? "keyed" : (afterWindow ?? "blind");
}

/** When the row has to be given up. */
export function expiresAt(context: VerdictContext): number {
  return (context.extra.at ?? context.row.created_at) + context.settings.maxAgeMs;
}

function retryAt(context: VerdictContext, retry: number, atLeastMs = 0): number {
  return (
    context.now + Math.max(backoffMs(context.settings.backoff, retry, context.random), atLeastMs)
  );
}

function base(context: VerdictContext): Verdict {
  return {
    to: "failed",
    dueAt: null,
    patch: {},
    extra: { ...context.extra },
    owes: context.row.owed,
    outcome: "",
  };
}

/** A row that cannot go on: dead, or unknown where an earlier attempt may have been sent (sticky evidence). */
export function giveUp(
  context: VerdictContext,
  kind: ErrorKind,
  error: string,
  sticky = context.row.first_maybe_at !== null,
): Verdict {
  const verdict = base(context);
  verdict.to = sticky ? "unknown" : "dead";
  verdict.patch = { error_kind: kind, error };
  verdict.outcome = verdict.to;
  if (sticky) verdict.extra.held = true;
  else verdict.owes |= OWES.dead;
  return verdict;
}

/** What becomes of a row after the platform answered, or did not. */
export function afterAttempt(
  context: VerdictContext,
  startedAt: number,
  result: SendResult,
): Verdict {
  if (result.ok) {
    const verdict = base(context);
    verdict.to = "sent";
    verdict.outcome = "sent";
    return verdict;
  }
  if (result.evidence === "maybe_sent") {
    return ambiguous(context, startedAt, "noAnswer", result.message, result);
  }
  const verdict = base(context);
  verdict.patch = { error_kind: result.kind, error: result.message };
  verdict.outcome = "refused";
  const sticky = context.row.first_maybe_at !== null;
  if (result.fallback === "plain" && context.extra.plain === undefined && !sticky) {
    verdict.extra.plain = true;
    verdict.patch.generation = context.row.generation + 1;
    verdict.dueAt = context.now;
    return verdict;
  }
  if (result.migratedTo !== undefined && !sticky) {
    const moves = (context.extra.moves ?? 0) + 1;
    if (moves > MAX_MOVES) return giveUp(context, "conflict", "the chat keeps moving");
    verdict.extra.moves = moves;
    verdict.patch.address = JSON.stringify(result.migratedTo);
    verdict.patch.generation = context.row.generation + 1;
    verdict.dueAt = context.now;
    return verdict;
  }
  if (!isRetryableKind(result.kind, result.evidence))
    return giveUp(context, result.kind, result.message);
  if (result.kind === "rate_limit") {
    // A rate limit says nothing about this message, so it spends no attempt; only age bounds it.
    const limited = (context.extra.limited ?? 0) + 1;
    const dueAt =
      result.retryAfterMs === undefined
        ? retryAt(context, limited)
        : context.now + result.retryAfterMs;
    // The platform asked the whole chat for silence, whatever becomes of this message.
    if (dueAt > expiresAt(context)) {
      return { ...giveUp(context, "rate_limit", result.message), gateUntil: dueAt };
    }
    verdict.extra.limited = limited;
    verdict.dueAt = dueAt;
    verdict.gateUntil = dueAt;
    return verdict;
  }
  const attempts = context.row.attempts + 1;
  const dueAt = retryAt(context, attempts, result.retryAfterMs);
  if (attempts > context.settings.retries || dueAt > expiresAt(context)) {
    return giveUp(context, result.kind, result.message);
  }
  verdict.patch.attempts = attempts;
  verdict.dueAt = dueAt;
  return verdict;
}

/** What becomes of a row found `sending` after the process died. */
export function afterCrash(context: VerdictContext, startedAt: number): Verdict {
  return ambiguous(
    context,
    startedAt,
    "afterCrash",
    "the process died before the answer was recorded",
  );
}

/** Before a repeat under the same marker: the verdict if the marker's window is over, else nothing. */
export function beforeRepeat(context: VerdictContext): Verdict | undefined {
  if (context.row.first_maybe_at === null || context.capabilities.delivery.class !== "keyed")
    return undefined;
  if (context.extra.resend || context.extra.windowOver || classOf(context) === "keyed")
    return undefined;
  // Counted once already when it became ambiguous: only the class has changed, once.
  const verdict = base(context);
  verdict.extra.windowOver = true;
  const after = { ...context, extra: verdict.extra };
  return repeatOrHold(after, verdict, "noAnswer", "the marker's window is over");
}

/** What becomes of an unknown row after a lookup. `undefined`: proven not sent, send it again. */
export function afterLookup(context: VerdictContext, result: ReconcileResult): Verdict | undefined {
  if (result.result === "not_sent") return undefined;
  const verdict = base(context);
  if (result.result === "sent") {
    verdict.to = "sent";
    verdict.outcome = "found";
    return verdict;
  }
  const lookups = (context.extra.lookups ?? 0) + 1;
  verdict.to = "unknown";
  verdict.outcome = "unresolved";
  verdict.extra.lookups = lookups;
  const dueAt = retryAt(context, lookups, result.retryAfterMs);
  if (lookups > context.settings.retries || dueAt > expiresAt(context)) verdict.extra.held = true;
  else verdict.dueAt = dueAt;
  return verdict;
}

function ambiguous(
  context: VerdictContext,
  startedAt: number,
  cause: keyof AmbiguousPolicies,
  message: string,
  refusal: { kind?: ErrorKind; retryAfterMs?: number } = {},
): Verdict {
  const verdict = base(context);
  verdict.patch = {
    attempts: context.row.attempts + 1,
    maybes: context.row.maybes + 1,
    first_maybe_at: context.row.first_maybe_at ?? startedAt,
    error_kind: refusal.kind ?? "unknown",
    error: message,
  };
  verdict.outcome = cause === "afterCrash" ? "crashed" : "no answer";
  const after = { ...context, row: { ...context.row, ...verdict.patch } };
  const first = context.row.maybes === 0 && context.row.first_maybe_at === null;
  const done = repeatOrHold(after, verdict, cause, message, refusal.retryAfterMs);
  if (first) {
    const action: AmbiguousAction =
      done.to === "failed" ? "resent" : done.dueAt !== null ? "looked up" : "held";
    done.owes |= OWES.ambiguous;
    done.extra.action = action;
    done.extra.cause = cause === "afterCrash" ? "crash" : "no_answer";
  }
  return done;
}

/** By class: repeat under the same marker, look it up, or do what the operator chose. */
function repeatOrHold(
  context: VerdictContext,
  verdict: Verdict,
  cause: keyof AmbiguousPolicies,
  message: string,
  atLeastMs = 0,
): Verdict {
  const attempts = context.row.attempts;
  const dueAt = retryAt(context, attempts, atLeastMs);
  const spent = attempts > context.settings.retries || dueAt > expiresAt(context);
  const hold = (lookAt: number | null): Verdict => {
    verdict.to = "unknown";
    verdict.dueAt = lookAt;
    verdict.patch.error ??= message;
    if (lookAt === null) verdict.extra.held = true;
    return verdict;
  };
  const kind = classOf(context);
  // The window may have ended during the attempt: the weaker class counts from now on.
  if (kind !== "keyed" && context.capabilities.delivery.class === "keyed")
    verdict.extra.windowOver = true;
  if (kind === "keyed") {
    if (spent) return hold(null);
    verdict.dueAt = dueAt;
    return verdict;
  }
  if (kind === "provable") {
    verdict.extra.lookups = 0;
    return hold(context.now + (context.capabilities.delivery.settleAfterMs ?? 0));
  }
  const policy: AmbiguousPolicy = context.policies[cause];
  const resends = context.extra.resends ?? 0;
  if (spent || policy === "skip" || (policy === "resend-once" && resends > 0)) return hold(null);
  verdict.dueAt = dueAt;
  verdict.extra.probe = true;
  verdict.extra.resends = resends + 1;
  if (context.capabilities.delivery.class === "keyed") {
    verdict.patch.generation = context.row.generation + 1;
  }
  return verdict;
}
