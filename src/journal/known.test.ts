/** What an actor knows of its rows without asking is what is on disk, whatever was written or rolled back. */
import { expect, test } from "vitest";
import { AlarmClock } from "../alarms/AlarmClock.ts";
import type { Host } from "../host/Host.ts";
import { NodeRuntime } from "../testing/node/NodeRuntime.ts";
import { seededRandom } from "../testing/random.ts";
import { Journal } from "./Journal.ts";
import { OPEN } from "./OpenRecords.ts";
import { type OutboxRow, UNTRIED } from "./records.ts";

/** A journal on a disk of its own. */
function journalOn(runtime: NodeRuntime): { journal: Journal; host: Host } {
  let made: { journal: Journal; host: Host } | undefined;
  runtime.make = (host) => {
    const alarm = new AlarmClock(host, () => undefined);
    made = { journal: new Journal(host, alarm), host };
    return { call: () => "null" };
  };
  runtime.kill();
  void runtime.call("ChatActor", "t/e/b/c/chat", "wake", "{}");
  return new Proxy({} as { journal: Journal; host: Host }, {
    get: (_target, name) => made?.[name as "journal" | "host"],
  });
}

function sendOf(turn: number, pos: number, dueAt: number | null): OutboxRow {
  return {
    ...UNTRIED,
    turn,
    pos,
    slot: "0",
    part: pos,
    key: null,
    due_at: dueAt,
    not_after: null,
    created_at: 1,
    content: null,
    fingerprint: null,
    request: "{}",
    origin: "bot",
    address: null,
    extra: null,
  };
}

function sorted(rows: readonly object[]): object[] {
  return rows.map((row) => Object.fromEntries(Object.entries(row).sort()));
}

/** Compares everything that is answered from memory with the disk. */
function compare({ journal, host }: { journal: Journal; host: Host }): void {
  if (!journal.exists()) return;
  const open = host.sql.all("SELECT * FROM inbox WHERE open = 1 ORDER BY seq");
  expect(sorted(journal.inbox.open(0, 1_000))).toEqual(sorted(open));
  const waiting = open.filter((row) => row.state === "pending" || row.state === "processing");
  expect(journal.inbox.waiting()).toBe(waiting.length);
  const resting = host.sql.all("SELECT * FROM inbox WHERE open > 1 ORDER BY due_at, seq");
  expect(journal.inbox.resting()).toBe(resting.length);
  const later = Number.MAX_SAFE_INTEGER;
  const rested = [OPEN.resting, OPEN.guarded].flatMap((how) =>
    journal.inbox.rested(how, later, 99),
  );
  expect(new Set(sorted(rested))).toEqual(new Set(sorted(resting)));
  for (const { turn } of host.sql.all<{ turn: number }>("SELECT DISTINCT turn FROM outbox")) {
    const rows = host.sql.all("SELECT * FROM outbox WHERE turn = ? ORDER BY pos", turn);
    expect(sorted(journal.outbox.ofTurn(turn))).toEqual(sorted(rows));
  }
  const due = host.sql.all("SELECT 1 AS x FROM outbox WHERE due_at IS NOT NULL");
  expect(journal.outbox.nextDue(1_000)).toHaveLength(due.length);
}

test.each(Array.from({ length: 20 }, (_unused, seed) => seed + 1))("seed %i", async (seed) => {
  const random = seededRandom(seed);
  const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const runtime = new NodeRuntime({ make: () => ({ call: () => "null" }), seed });
  let at = journalOn(runtime);
  await runtime.advance(1);
  at.journal.identify({ name: "t/e/b/c/chat", connection: "c", channel: "c", chat: "chat" });
  const turns: number[] = [];
  for (let step = 0; step < 120; step += 1) {
    const { journal } = at;
    const rolledBack = random() < 0.15;
    const write = () => {
      const roll = random();
      const turn = one(turns);
      const rows = turn === undefined ? [] : journal.outbox.ofTurn(turn);
      const row = one(rows);
      const event = one(journal.inbox.open(0, 100));
      const rested = one(journal.inbox.rested(OPEN.guarded, step, 100));
      if (roll < 0.25) {
        const seq = journal.nextSeq();
        turns.push(seq);
        const claim = random() < 0.5 ? "mine.1" : null;
        const payload = `{"n":${step}}`;
        const record = { seq, id: `e${seq}`, semantic: null, kind: "message", payload, claim };
        journal.inbox.insert({ ...record, receivedAt: step });
      } else if (roll < 0.5 && turn !== undefined) {
        const pos = rows.length === 0 ? 0 : (rows.at(-1)?.pos ?? 0) + 1;
        journal.outbox.insert(sendOf(turn, pos, random() < 0.3 ? step : null));
      } else if (roll < 0.6 && row?.state === "pending") {
        journal.outbox.move(row, "sending", { claim: "c", due_at: random() < 0.5 ? step : null });
      } else if (roll < 0.7 && row?.state === "sending") {
        journal.outbox.moveIfClaimed(row, random() < 0.7 ? "c" : "other", "sent", { due_at: null });
      } else if (roll < 0.8 && event?.state === "pending") {
        journal.inbox.move(event, "processing", { claim: "mine.2" });
      } else if (roll < 0.9 && event?.state === "processing") {
        journal.inbox.moveIfClaimed(event, event.claim ?? "", "done", { open: 0, claim: null });
      } else if (roll < 0.92 && event?.state === "pending") {
        journal.inbox.rest(event, step + 5, random() < 0.5 ? OPEN.resting : OPEN.guarded);
      } else if (roll < 0.94 && rested !== undefined) {
        journal.inbox.move(rested, "processing", { claim: "mine.3", open: OPEN.yes, due_at: null });
      } else if (roll < 0.96 && turn !== undefined) {
        journal.inbox.delete(turn);
        journal.outbox.deleteTurn(turn);
      } else if (turn !== undefined) {
        journal.outbox.forgetTurn(turn);
      }
      if (rolledBack) throw new Error("the disk is full");
    };
    const commit = () => journal.commit("inbox.receive", write);
    if (rolledBack) expect(commit).toThrow("full");
    else commit();
    compare(at);
    if (random() < 0.04) {
      // Another life on the same disk.
      at = journalOn(runtime);
      await runtime.advance(1);
      compare(at);
    }
  }
  runtime.close();
});
