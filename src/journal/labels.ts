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
  "flow.end",
  "flow.hook",
  "flow.start",
  "flow.timers",
  "inbox.announced",
  "inbox.arm",
  "inbox.claim",
  "inbox.dead",
  "inbox.discard",
  "inbox.receive",
  "inbox.replay",
  "inbox.wait",
  "migration.forward",
  "migration.installed",
  "migration.moved",
  "migration.retry",
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
  "turn.interrupt",
  "turn.retry",
  "turn.settle",
  "turn.step",
] as const;

/** Labels of a connection's commits. */
export const CONNECTION_COMMITS = [
  "budget.wait",
  "connection.keep",
  "connection.rearm",
  "poll.advance",
  "poll.failed",
  "poll.start",
  "poll.stop",
  "quarantine.count",
  "quarantine.discard",
  "quarantine.done",
  "quarantine.hasten",
  "quarantine.wait",
] as const;

/** A label of a connection's commit. */
export type ConnectionCommit = (typeof CONNECTION_COMMITS)[number];

/** Labels of steps that are not commits: calls to a platform, the bot's own code. */
export const STEPS = [
  "channel.prepare",
  "channel.reconcile",
  "channel.selfTest",
  "channel.send",
  "listener",
  "relay.call",
  "turn.handler",
] as const;

/** A label of a chat's commit. */
export type CommitLabel = (typeof COMMITS)[number];

/** A label of a step. */
export type StepLabel = (typeof STEPS)[number];

/** Labels of the commits of a shard of the Registry. */
export const REGISTRY_COMMITS = [
  "registry.claim",
  "registry.postpone",
  "registry.rearm",
  "registry.report",
  "registry.schema",
] as const;

/** A label of a Registry's commit. */
export type RegistryCommit = (typeof REGISTRY_COMMITS)[number];
