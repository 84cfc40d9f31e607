import { describe, expect, test } from "vitest";
import {
  enforceInbox,
  enforceOutbox,
  IllegalTransitionError,
  INBOX_MOVES,
  isOpen,
  OUTBOX_MOVES,
  type OutboxState,
  readExtra,
  writeExtra,
} from "./records.ts";
import { INBOX_TRANSITIONS, OUTBOX_TRANSITIONS } from "./transitions.ts";

const STATES: OutboxState[] = [
  "pending",
  "sending",
  "sent",
  "failed",
  "unknown",
  "suppressed",
  "dead",
];

/** Design §4. */
const DESIGN = [
  "pending>sending",
  "pending>suppressed",
  "pending>dead",
  "sending>sent",
  "sending>failed",
  "sending>unknown",
  "sending>dead",
  "failed>sending",
  "failed>suppressed",
  "failed>dead",
  "unknown>sent",
  "unknown>dead",
  "unknown>sending",
  "sent>dead",
  "dead>pending",
];

describe("the states of a send", () => {
  test("move as the design says", () => {
    for (const move of DESIGN) {
      const [from, to] = move.split(">") as [OutboxState, OutboxState];
      expect(() => enforceOutbox(from, to), move).not.toThrow();
    }
  });

  test("move in no other way but those that the table itself explains", () => {
    const known = new Set(OUTBOX_TRANSITIONS.map(({ from, to }) => `${from}>${to}`));
    for (const from of STATES) {
      for (const to of STATES) {
        if (known.has(`${from}>${to}`)) continue;
        expect(() => enforceOutbox(from, to), `${from}>${to}`).toThrow(IllegalTransitionError);
      }
    }
    // What the user was told is final, or may have been said, never silently becomes unsaid.
    for (const never of [
      "sent>pending",
      "sent>sending",
      "sent>failed",
      "sent>suppressed",
      "unknown>pending",
      "unknown>failed",
      "suppressed>sending",
      "dead>sending",
    ]) {
      expect(known.has(never), never).toBe(false);
    }
  });

  test("are each explained in words", () => {
    for (const { when } of [...OUTBOX_TRANSITIONS, ...INBOX_TRANSITIONS])
      expect(when.length).toBeGreaterThan(10);
  });

  test("hold up what is behind them while they are open, and no longer", () => {
    const open = STATES.filter((state) => isOpen({ state, extra: null }));
    expect(open).toEqual(["pending", "sending", "failed", "unknown"]);
    expect(isOpen({ state: "unknown", extra: writeExtra({ held: true }) })).toBe(false);
  });
});

describe("the states of an event", () => {
  test("never let a settled event run again without an operator", () => {
    const moves = new Set(INBOX_TRANSITIONS.map(({ from, to }) => `${from}>${to}`));
    expect([...moves].sort()).toEqual([
      "dead>pending",
      "done>pending",
      "pending>dead",
      "pending>done",
      "pending>processing",
      "processing>dead",
      "processing>done",
      "processing>pending",
      "processing>processing",
    ]);
    expect(() => enforceInbox("done", "processing")).toThrow(
      /must not move from done to processing/,
    );
  });
});

test("rare settings cost nothing when there are none, and a damaged column does not throw", () => {
  expect(writeExtra({})).toBeNull();
  expect(readExtra({ extra: writeExtra({ resends: 2 }) })).toEqual({ resends: 2 });
  expect(readExtra({ extra: null })).toEqual({});
  expect(readExtra({ extra: "{" })).toEqual({});
});

test.each([
  ["inbox", INBOX_MOVES, INBOX_TRANSITIONS],
  ["outbox", OUTBOX_MOVES, OUTBOX_TRANSITIONS],
] as const)("what the %s permits is what its table says in words", (_name, moves, table) => {
  const permitted = Object.entries<readonly string[]>(moves).flatMap(([from, all]) =>
    all.map((to) => `${from}>${to}`),
  );
  expect(permitted.sort()).toEqual(table.map(({ from, to }) => `${from}>${to}`).sort());
});
