/**
 * Mutants: each breaks one rule that the promise rests on. A mutant that no test catches means that the
 * rule is not tested.
 *
 * @module
 */

/** One mutation of one file. */
export interface Mutant {
  name: string;
  /** What a user would lose. */
  breaks: string;
  file: string;
  find: string;
  replace: string;
}

/** The mutants. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: "claim fence",
    breaks: "a run that lost its claim writes its state all the same",
    file: "src/journal/InboxTable.ts",
    find: "` AND claim = ? AND state = 'processing'`, [",
    replace: "` AND ? IS NOT NULL`, [",
  },
  {
    name: "sending mark",
    breaks: "after a crash nobody knows that a call may have been made",
    file: "src/journal/OutboxTable.ts",
    find: "...NAMES.map((name) => row[name])",
    replace:
      '...NAMES.map((name) => (name === "state" && row.state === "sending" ? "pending" : row[name]))',
  },
  {
    name: "dedupe",
    breaks: "a redelivered event runs twice",
    file: "src/objects/Inbox.ts",
    find: "        id: event.id,\n        semantic",
    replace: "        id: `$" + "{event.id}/$" + "{seq}`,\n        semantic",
  },
  {
    name: "re-arm",
    breaks: "after its first alarm a chat sleeps for ever",
    file: "src/objects/Chat.ts",
    find: 'journal.commit("alarm.rearm", () => alarm.arm(next))',
    replace: 'journal.commit("alarm.rearm", () => undefined)',
  },
  {
    name: "progress rule",
    breaks: "an event that kills the process does so for ever",
    file: "src/turns/poison.ts",
    find: "reached > row.progress ? row.stalled : row.stalled + 1",
    replace: "row.stalled",
  },
  {
    name: "part order",
    breaks: "the second half of a message comes before the first",
    file: "src/outbox/Drain.ts",
    find: "return previous !== undefined && isOpen(previous);",
    replace: "return previous !== undefined && false;",
  },
  {
    name: "frozen request",
    breaks: "a repeat under the same marker carries another text",
    file: "src/outbox/render.ts",
    find: "if (row.part !== 0 || !untouched) return undefined;",
    replace: "if (row.part !== 0) return undefined;",
  },
  {
    name: "atomic settle",
    breaks: "state is written apart from the turn's end, so a crash between doubles or drops it",
    file: "src/turns/TurnRunner.ts",
    find: "    return journal.commit(label, () => {",
    replace:
      '    if (settled) journal.commit("state.write", () => journal.side.writeState(turn.state.writes()));\n    return journal.commit(label, () => {',
  },
  {
    name: "sticky evidence",
    breaks:
      "a send that may have happened is called dead, and is resent by an operator who trusts that",
    file: "src/outbox/verdict.ts",
    find: "sticky = context.row.first_maybe_at !== null,",
    replace: "sticky = false,",
  },
  {
    name: "announcement flag",
    breaks: "a death that a crash interrupted is never announced",
    file: "src/outbox/Announcer.ts",
    find: "      await this.#call(async (tools) => {",
    replace: "      this.#paid(turn, pos, bit);\n      await this.#call(async (tools) => {",
  },
];
