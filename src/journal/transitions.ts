/**
 * The moves of `records.ts` in words: the source of `docs/states.md` (`npm run docs`). Apart, so that no
 * bundle carries them; a test holds the two together.
 *
 * @module
 */
import type { InboxState, OutboxState } from "./records.ts";

/** One permitted change of state: who may make it, and when. */
export interface Transition<S extends string> {
  from: S;
  to: S;
  /** In words, for the docs. */
  when: string;
}

/** Every way in which an inbox record may move. */
export const INBOX_TRANSITIONS: readonly Transition<InboxState>[] = [
  { from: "pending", to: "processing", when: "the turn loop claims it" },
  { from: "pending", to: "done", when: "it joined the turn of an earlier message (burst, album)" },
  { from: "pending", to: "dead", when: "discarded by an operator, or unreadable" },
  { from: "processing", to: "processing", when: "claimed again after the process died" },
  {
    from: "processing",
    to: "pending",
    when: "`RetryTurn`, `nack`, or a failure before handlers: back in the queue",
  },
  {
    from: "processing",
    to: "done",
    when: "the turn settled, failed, timed out or was interrupted",
  },
  { from: "processing", to: "dead", when: "poison: it kept killing the process without progress" },
  { from: "done", to: "pending", when: "replayed by an operator" },
  { from: "dead", to: "pending", when: "replayed by an operator" },
];

/** Every way in which an outbox record may move. */
export const OUTBOX_TRANSITIONS: readonly Transition<OutboxState>[] = [
  { from: "pending", to: "sending", when: "the drain is about to call the platform" },
  {
    from: "pending",
    to: "suppressed",
    when: "cancelled, superseded, vetoed by a hook, or its turn failed",
  },
  {
    from: "pending",
    to: "dead",
    when: "too old, past `notAfter`, an earlier part died, or discarded",
  },
  { from: "sending", to: "sent", when: "the platform accepted it" },
  { from: "sending", to: "failed", when: "refused but retryable, or a repeat is allowed" },
  { from: "sending", to: "unknown", when: "it may have been sent and no repeat is allowed yet" },
  { from: "sending", to: "dead", when: "refused for good" },
  { from: "failed", to: "sending", when: "the next attempt is due" },
  { from: "failed", to: "sent", when: "an echo or a status proves an earlier attempt" },
  {
    from: "failed",
    to: "unknown",
    when: "attempts are over and an earlier one may have been sent",
  },
  { from: "failed", to: "suppressed", when: "cancelled or superseded, and proven not sent" },
  { from: "failed", to: "dead", when: "too old, past `notAfter`, or discarded" },
  { from: "unknown", to: "sent", when: "a lookup, an echo or a status proves it" },
  {
    from: "unknown",
    to: "sending",
    when: "a lookup proves it was not sent, or an operator resends",
  },
  {
    from: "unknown",
    to: "suppressed",
    when: "proven not sent, and its turn says something else by now",
  },
  {
    from: "unknown",
    to: "dead",
    when: "discarded by an operator, or a status says that delivery failed",
  },
  { from: "sent", to: "dead", when: "a late status says that delivery failed" },
  { from: "dead", to: "pending", when: "retried by an operator" },
];
