/**
 * Names of every commit and of every step that leaves the process: where a crash can be injected, and
 * what the crash matrix must cover. `test/matrix` fails on a label that no scenario reaches.
 *
 * @module
 */

/** Labels of a chat's commits. */
export const COMMITS = [
  "alarm.rearm",
  "announce.retry",
  "deleteAll",
  "inbox.announced",
  "inbox.arm",
  "inbox.claim",
  "inbox.dead",
  "inbox.discard",
  "inbox.receive",
  "inbox.replay",
  "inbox.wait",
  "outbox.announced",
  "outbox.arm",
  "outbox.cancel",
  "outbox.discard",
  "outbox.insert",
  "outbox.markFailed",
  "outbox.markSending",
  "outbox.markSent",
  "outbox.postpone",
  "outbox.resplit",
  "outbox.retry",
  "outbox.status",
  "outbox.supersede",
  "purge",
  "report.retry",
  "state.write",
  "turn.abort",
  "turn.fail",
  "turn.retry",
  "turn.settle",
  "turn.step",
] as const;

/** Labels of steps that are not commits: calls to a platform, the bot's own code. */
export const STEPS = [
  "channel.prepare",
  "channel.reconcile",
  "channel.selfTest",
  "channel.send",
  "listener",
  "turn.handler",
] as const;

/** A label of a chat's commit. */
export type CommitLabel = (typeof COMMITS)[number];

/** A label of a step. */
export type StepLabel = (typeof STEPS)[number];
