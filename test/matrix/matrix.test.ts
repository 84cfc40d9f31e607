/**
 * The crash matrix: every label × before/after × delivery class × policy. A label that no scenario
 * passes in a column fails, so that a commit added later cannot go untested.
 */
import { describe, expect, test } from "vitest";
import type { DeliveryClass } from "../../src/channels/channel.ts";
import type { ProbeSide } from "../../src/host/Host.ts";
import { COMMITS, STEPS } from "../../src/journal/labels.ts";
import { chatActorName } from "../../src/objects/names.ts";
import { TestBot } from "../../src/testing/TestBot.ts";
import type { AmbiguousPolicy } from "../../src/turns/options.ts";
import { checkRecords } from "../sim/check.ts";
import type { World } from "../sim/simulate.ts";
import { MOVED_FROM, MOVED_TO } from "./busyScenarios.ts";
import type { Column, Scenario } from "./scenarioKit.ts";
import { SCENARIOS } from "./scenarios.ts";

const CLASSES: readonly DeliveryClass[] = ["blind", "provable", "keyed"];
const POLICIES: readonly AmbiguousPolicy[] = ["skip", "resend-once", "resend"];
/** A label that is passed often is killed at its first passes only; the simulator does the rest. */
const PASSES = 3;

/** Labels that a column cannot reach, and why. */
function isReachable(label: string, column: Column): boolean {
  // Only a provable channel is asked about a send.
  if (label === "channel.reconcile") return column.class === "provable";
  // Only a repeat on a blind channel waits for the self test.
  if (label === "channel.selfTest" || label === "outbox.postpone") {
    return column.class === "blind" && column.policy !== "skip";
  }
  // Without repeats a blind send is settled, as unknown, before its turn can say something else.
  if (label === "outbox.supersede") return column.class !== "blind" || column.policy !== "skip";
  return true;
}

interface Point {
  label: string;
  side: ProbeSide;
  nth: number;
}

async function runOnce(
  scenario: Scenario,
  column: Column,
  point: Point | undefined,
): Promise<{ hits: Point[]; died: boolean; found: string[] }> {
  const bot = scenario.bot(column);
  const t = new TestBot(bot);
  const counts = new Map<string, number>();
  const hits: Point[] = [];
  let died = false;
  t.runtime.onProbe = ({ kind, label, side }) => {
    if (kind !== "ChatActor") return false;
    const nth = (counts.get(`${label} ${side}`) ?? 0) + 1;
    counts.set(`${label} ${side}`, nth);
    if (nth <= PASSES) hits.push({ label, side, nth });
    const here =
      point !== undefined && point.label === label && point.side === side && point.nth === nth;
    died ||= here;
    return here;
  };
  try {
    await scenario.run(t);
    await t.idle();
    await t.advance("1h");
    await t.idle();
    const found = checkRecords(worldOf(t, column));
    const counted =
      scenario.purges === true ? found.filter((text) => !text.endsWith("without a record")) : found;
    return { hits, died, found: counted };
  } finally {
    t.close();
  }
}

function worldOf(t: TestBot, column: Column): World {
  const chats = t.runtime
    .names("ChatActor")
    .map((name) => decodeURIComponent(name.split("/")[4] ?? ""))
    // The actor of the new name forwards, and keeps no records.
    .filter((chat) => chat !== MOVED_TO);
  const announced = t.announced.flatMap(({ kind, event }) => {
    if (kind === "durability:ambiguous") return [{ kind: "ambiguous", key: event.key }];
    return kind === "durability:dead" ? [{ kind: "dead", key: event.id }] : [];
  });
  const scope = { tenant: "main", environment: "production", bot: "matrix" };
  const policy = { afterCrash: column.policy, noAnswer: column.policy };
  return {
    plan: {
      ...column,
      seed: 0,
      policy,
      durability: {},
      markerWindowMs: undefined,
      crashRate: 1,
      faultRate: 0,
      commitFailRate: 0,
      statuses: false,
      busy: {},
      pace: undefined,
      polled: false,
      move: undefined,
      events: [],
    },
    runtime: t.runtime,
    platform: t.platform(),
    watch: {
      announced,
      seen: new Map(),
      running: new Map(),
      overlaps: [],
      order: new Map(),
      sleep: async () => {},
    },
    chats,
    actorOf: (chat) => chatActorName(scope, "mock", chat),
    nameOf: (chat) => chatActorName(scope, "mock", chat),
    home: (chat) => (chat === MOVED_TO ? MOVED_FROM : chat),
    early: [],
    rested: true,
  };
}

describe("killed at every labelled step, nothing is lost and nothing is silent", () => {
  const covered = new Set<string>();

  for (const kind of CLASSES) {
    for (const policy of POLICIES) {
      const column: Column = { class: kind, policy };
      for (const scenario of SCENARIOS) {
        test(`${kind}, ${policy}: ${scenario.name}`, { timeout: 60_000 }, async () => {
          const calm = await runOnce(scenario, column, undefined);
          expect(calm.found).toEqual([]);
          for (const point of calm.hits) {
            const killed = await runOnce(scenario, column, point);
            const where = `killed ${point.side} ${point.label}, time ${point.nth}`;
            expect(killed.died, `${where}: never got there again`).toBe(true);
            expect(killed.found, where).toEqual([]);
            covered.add(`${kind}/${policy}/${point.label}/${point.side}`);
          }
        });
      }
    }
  }

  test("every label is covered in every column", () => {
    const missing: string[] = [];
    for (const kind of CLASSES) {
      for (const policy of POLICIES) {
        for (const label of [...COMMITS, ...STEPS]) {
          for (const side of ["before", "after"]) {
            const cell = `${kind}/${policy}/${label}/${side}`;
            if (isReachable(label, { class: kind, policy }) && !covered.has(cell))
              missing.push(cell);
          }
        }
      }
    }
    expect(missing, "cells of the matrix that no scenario covers").toEqual([]);
  });
});
