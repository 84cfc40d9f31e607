/**
 * What must hold after a simulated run: the promise of the design, record by record against the
 * platform's ledger.
 *
 * @module
 */
import {
  FLAG,
  type InboxRow,
  isOpen,
  type OutboxRow,
  readExtra,
} from "../../src/journal/records.ts";
import { encodeKey, keyOf } from "../../src/outbox/keys.ts";
import { HUB } from "./script.ts";
import { runsOf, type SimEvent, type World } from "./simulate.ts";

/** Far more than a run needs, and far fewer than a row that nothing can move costs. */
const MAX_ALARMS = 1_000;

interface ChatRecords {
  chat: string;
  events: InboxRow[];
  sends: OutboxRow[];
}

/** Violations of one run. */
export function checkRun(world: World): string[] {
  const found: string[] = [...world.early.map((text) => `a rate limit was not honoured: ${text}`)];
  const fail = (text: string) => found.push(text);
  if (!world.rested) fail("the world did not come to rest");
  for (const chat of world.chats) {
    const records = read(world, chat);
    checkEvents(world, records, fail);
    checkState(world, records, fail);
    checkSends(world, records, fail);
    checkQuiet(records, fail);
    checkParts(world, records, fail);
    checkOrder(world, records, fail);
  }
  checkRelays(world, fail);
  checkRuns(world, fail);
  if (world.runtime.alarmRuns > MAX_ALARMS)
    fail(`${world.runtime.alarmRuns} alarms ran: something spins`);
  checkStrays(world, fail);
  checkReported(world, fail);
  return found;
}

/** Violations among the sends of a world, whatever made them. */
export function checkRecords(world: World): string[] {
  const found: string[] = [];
  const fail = (text: string) => found.push(text);
  for (const chat of world.chats) {
    const records = read(world, chat);
    for (const row of records.events) {
      if (row.state !== "done" && row.state !== "dead") fail(`${row.id} is still ${row.state}`);
      if (
        row.state === "dead" &&
        row.error !== "discarded by an operator" &&
        !announced(world, "dead", row.id)
      ) {
        fail(`${row.id} is dead and nobody was told`);
      }
    }
    checkSends(world, records, fail);
    checkQuiet(records, fail);
    checkParts(world, records, fail);
  }
  checkStrays(world, fail);
  return found;
}

function namesOf(world: World, chat: string): string[] {
  return chat === world.plan.move?.chat ? [chat, world.plan.move.to] : [chat];
}

/** The records of a chat, under all names that it had. */
function read(world: World, chat: string): ChatRecords {
  const all = namesOf(world, chat).map((name) => readOne(world, chat, name));
  return {
    chat,
    events: all.flatMap((one) => one.events).sort((a, b) => a.seq - b.seq),
    sends: all.flatMap((one) => one.sends),
  };
}

function readOne(world: World, chat: string, name: string): ChatRecords {
  const storage = world.runtime.storage("ChatActor", world.nameOf(name));
  const known = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'outbox'`, []);
  if (known.length === 0) return { chat, events: [], sends: [] };
  return {
    chat,
    events: storage.all(`SELECT * FROM inbox ORDER BY seq`, []) as unknown as InboxRow[],
    sends: storage.all(`SELECT * FROM outbox ORDER BY turn, pos`, []) as unknown as OutboxRow[],
  };
}

type Fail = (text: string) => void;

/** Every run of a flow has come to its end; each round was said under one record and counted once. */
function checkRuns(world: World, fail: Fail): void {
  for (const actor of world.runtime.names("ChatActor")) {
    const storage = world.runtime.storage("ChatActor", actor);
    for (const run of runsOf(world, actor)) {
      // An event that kills the process in each of its runs is given up, and its run with it.
      const poisoned = run.error?.includes("is given up") === true && world.plan.crashRate > 0;
      if (run.state !== "done" && !poisoned) {
        fail(`run ${run.id} is ${run.state}: ${run.error}`);
        continue;
      }
      if (poisoned) continue;
      const { rounds } = JSON.parse(run.input) as { rounds: number };
      const [state] = storage.all<{ v: string }>(
        `SELECT v FROM state WHERE k = 'flow:${run.id}'`,
        [],
      );
      if (state?.v !== String(rounds)) fail(`run ${run.id} counted ${state?.v}, not ${rounds}`);
      for (let round = 0; round < rounds; round += 1) {
        const said = storage.all(`SELECT 1 AS x FROM outbox WHERE part = 0 AND content LIKE ?`, [
          `%"${run.id}.r${round}"%`,
        ]);
        if (said.length !== 1) fail(`run ${run.id} has ${said.length} records of round ${round}`);
      }
    }
  }
}

function announced(world: World, kind: string, key: string): boolean {
  return world.watch.announced.some((one) => one.kind === kind && one.key === key);
}

function checkEvents(world: World, records: ChatRecords, fail: Fail): void {
  const rows = new Map(records.events.map((row) => [row.id, row]));
  for (const event of world.plan.events.filter((one) => one.chat === records.chat)) {
    const row = rows.get(event.id);
    if (row === undefined) {
      fail(`${event.id} was admitted and is gone`);
      continue;
    }
    if (row.state !== "done" && row.state !== "dead") fail(`${event.id} is still ${row.state}`);
    if (row.state === "dead" && !announced(world, "dead", row.id))
      fail(`${event.id} is dead and nobody was told`);
    if (
      row.state === "dead" &&
      world.plan.crashRate === 0 &&
      !event.ops.some((op) => op.op === "retry" || op.op === "nack")
    ) {
      fail(`${event.id} died without any crash: ${row.error}`);
    }
    checkFailure(world, records, row, fail);
  }
  const delivered = records.events.filter((row) => row.kind !== "timer");
  if (delivered.length > world.plan.events.filter((one) => one.chat === records.chat).length) {
    fail(`${records.chat} has more events than were sent`);
  }
}

/** The events of one turn: the record's own, and those that joined it. */
function eventsOf(world: World, records: ChatRecords, row: InboxRow): SimEvent[] {
  const ids = records.events
    .filter((one) => one.id === row.id || one.claim === `joined ${row.id}`)
    .map((one) => one.id);
  return world.plan.events.filter((event) => ids.includes(event.id));
}

/** The record whose turn an event was part of. */
function headOf(records: ChatRecords, row: InboxRow): InboxRow {
  const id = row.claim?.startsWith("joined ") === true ? row.claim.slice("joined ".length) : row.id;
  return records.events.find((one) => one.id === id) ?? row;
}

function checkFailure(world: World, records: ChatRecords, row: InboxRow, fail: Fail): void {
  const ops = eventsOf(world, records, row).flatMap((event) => event.ops);
  if (row.state !== "done" || row.error === null) return;
  if (ops.some((op) => op.op === "throw")) return;
  if (row.error.startsWith("TurnAborted") || row.error.includes("SQLITE_FULL")) return;
  fail(`${row.id} failed though its script does not: ${row.error}`);
}

/** State changes exactly once: the ids in it are those of the turns that settled, in their order. */
function checkState(world: World, records: ChatRecords, fail: Fail): void {
  const { move } = world.plan;
  const names = records.chat === move?.chat ? [records.chat, move.to] : [records.chat];
  const done = names.flatMap((name) => doneIn(world, name));
  const over = records.events.filter((row) => {
    const head = headOf(records, row);
    return row.kind === "message" && head.state === "done" && head.error === null;
  });
  // A turn that ended in the very moment of its interruption may have settled.
  const stopped = (row: InboxRow) => (headOf(records, row).flags & FLAG.interrupted) !== 0;
  const settled = over.filter((row) => !stopped(row));
  const maybe = new Set(over.filter(stopped).map((row) => row.id));
  const wanted = settled.map((row) => row.id).sort();
  const held = done.filter((id) => !maybe.has(id)).sort();
  if (new Set(done).size !== done.length || JSON.stringify(held) !== JSON.stringify(wanted)) {
    fail(`${records.chat}: state holds ${done.join(",")} but ${wanted.join(",")} settled`);
  }
  for (const row of settled) {
    for (const [name, runs] of world.watch.seen.get(row.id)?.stepRuns ?? []) {
      const recorded = names.some((one) => tableOf(world, one, "steps") !== undefined);
      if (!recorded || runs < 1) fail(`${row.id}: step ${name} is not on record`);
    }
  }
}

/** The storage of an actor that has a table. */
function tableOf(world: World, name: string, table: string) {
  const storage = world.runtime.storage("ChatActor", world.nameOf(name));
  const found = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = '${table}'`, []);
  return found.length === 0 ? undefined : storage;
}

function doneIn(world: World, name: string): string[] {
  const rows = tableOf(world, name, "state")?.all(`SELECT v FROM state WHERE k = 'done'`, []) ?? [];
  const text = (rows[0] as { v: string } | undefined)?.v;
  return text === undefined ? [] : (JSON.parse(text) as string[]);
}

/** Each send against the ledger. */
function checkSends(world: World, records: ChatRecords, fail: Fail): void {
  const ids = new Map(records.events.map((row) => [row.seq, row.id]));
  for (const row of records.sends) {
    const head =
      records.sends.find(
        (one) => one.turn === row.turn && one.slot === row.slot && one.part === 0,
      ) ?? row;
    const key = keyOf({ ...head, part: row.part }, ids.get(row.turn));
    const text = String((JSON.parse(row.request) as { text?: unknown }).text ?? "");
    // What a preview was posted as is not what it reads now, and what it tidies up is no message.
    const preview = readExtra(row).preview === true;
    const { id } = JSON.parse(row.receipt ?? "{}") as { id?: string };
    const copies = world.platform.ledger.filter(
      (entry) =>
        (preview && row.state === "sent" ? entry.id === id : entry.text === text) &&
        world.home(entry.chat) === records.chat,
    ).length;
    const twins = records.sends.filter(
      (one) => (JSON.parse(one.request) as { text?: unknown }).text === text,
    ).length;
    const extra = readExtra(row);
    // What tidies up after a preview may be repeated at will: there is nothing to be told.
    const told = announced(world, "ambiguous", key) || (preview && row.origin === "runtime");
    if (isOpen(row)) fail(`${key} is still open (${row.state}, due ${row.due_at})`);
    const discarded = row.error === "discarded by an operator";
    if (
      row.state === "dead" &&
      !discarded &&
      !announced(world, "dead", key) &&
      !isLaterPart(records, row)
    ) {
      fail(`${key} is dead and nobody was told`);
    }
    if (row.maybes > 0 && !told)
      fail(`${key} may have been sent (${row.state}) and nobody was told`);
    if (row.state === "unknown" && !told) fail(`${key} is unknown and nobody was told`);
    if (extra.relay === true || twins > 1 || (preview && row.state !== "sent")) continue;
    if (row.state === "sent" && copies === 0)
      fail(`${key} is recorded as sent and is not on the platform`);
    if (copies > 1 && !told) fail(`${key} was said ${copies} times and nobody was told`);
    if (copies > 0 && (row.state === "dead" || row.state === "suppressed")) {
      fail(`${key} is ${row.state} but was said`);
    }
    const proves =
      world.plan.class === "provable" ||
      (world.plan.class === "keyed" && world.plan.markerWindowMs === undefined);
    if (copies > 1 && proves)
      fail(`${key} was said ${copies} times on a ${world.plan.class} channel`);
    if (!proves && copies > 1 + (extra.resends ?? 0) && world.plan.policy.noAnswer !== "resend") {
      fail(`${key} was said ${copies} times, with ${extra.resends ?? 0} repeats allowed`);
    }
  }
}

function isLaterPart(records: ChatRecords, row: OutboxRow): boolean {
  return (
    row.part > 0 &&
    records.sends.some(
      (one) =>
        one.turn === row.turn &&
        one.slot === row.slot &&
        one.part < row.part &&
        one.state === "dead",
    )
  );
}

/** Nothing open, and no alarm but the purge. */
function checkQuiet(records: ChatRecords, fail: Fail): void {
  const open = records.events.filter((row) => row.open > 0);
  for (const row of open) fail(`${row.id} is ${row.state} and still open`);
  for (const row of records.sends)
    if (row.due_at !== null) fail(`a ${row.state} send has still a due time`);
}

/** Parts of a message never overtake each other. */
function checkParts(world: World, records: ChatRecords, fail: Fail): void {
  const entries = world.platform.ledger.filter((entry) => world.home(entry.chat) === records.chat);
  for (const row of records.sends) {
    if (row.part === 0 || row.maybes > 0) continue;
    const before = records.sends.find(
      (one) => one.turn === row.turn && one.slot === row.slot && one.part === row.part - 1,
    );
    if (before === undefined || before.maybes > 0) continue;
    const place = (one: OutboxRow) => {
      const { text } = JSON.parse(one.request) as { text: string };
      return entries.findIndex((entry) => entry.text === text);
    };
    if (place(row) >= 0 && place(before) > place(row))
      fail(`part ${row.part + 1} of ${row.slot} overtook the one before`);
  }
}

/** Turns begin in order of arrival; under `strict`, sends go out in order, too. */
function checkOrder(world: World, records: ChatRecords, fail: Fail): void {
  const seqs = new Map(records.events.map((row) => [row.id, row.seq]));
  const starts = (world.watch.order.get(records.chat) ?? []).map((id) => seqs.get(id) ?? 0);
  if (starts.some((seq, at) => at > 0 && seq < (starts[at - 1] ?? 0)))
    fail(`${records.chat}: turns began out of order`);
  // A send that the journal refused is recorded by a later run, behind those that it took.
  if (world.plan.durability.outbox?.order !== "strict" || world.plan.commitFailRate > 0) return;
  const later = new Set(
    world.plan.events.flatMap((event) =>
      event.ops.flatMap((op) => (op.op === "enqueue" || op.op === "settled" ? [op.text] : [])),
    ),
  );
  const entries = world.platform.ledger.filter((entry) => world.home(entry.chat) === records.chat);
  // A turn that runs again after others says the rest of what it says after them.
  const again = new Set(
    records.events
      .filter((row) =>
        eventsOf(world, records, row).some((event) =>
          event.ops.some((op) => op.op === "retry" || op.op === "nack"),
        ),
      )
      .map((row) => row.id),
  );
  const ids = new Map(records.events.map((row) => [row.seq, row.id]));
  let last = -1;
  // By ordinal: the order in which the handler spoke, whichever run recorded a row.
  const spoken = records.sends
    .filter((row) => /^\d+$/.test(row.slot))
    .sort((a, b) => a.turn - b.turn || Number(a.slot) - Number(b.slot) || a.part - b.part);
  for (const row of spoken) {
    if (again.has(ids.get(row.turn) ?? "")) continue;
    const { text } = JSON.parse(row.request) as { text?: string };
    if (text === undefined) continue;
    const places = entries.flatMap((entry, at) => (entry.text === text ? [at] : []));
    // Only what was said once and without doubt has one place in the order.
    if (row.state !== "sent" || row.maybes > 0 || places.length !== 1 || later.has(text)) continue;
    const place = places[0] ?? 0;
    if (place < last) fail(`"${text.slice(0, 20)}" was overtaken under strict order`);
    last = Math.max(last, place);
  }
}

/** What one chat handed to another is on record there, once. */
function checkRelays(world: World, fail: Fail): void {
  const hub = read(world, HUB).sends.map((row) => row.key);
  if (new Set(hub).size !== hub.length) fail("the hub has a relay twice");
  for (const chat of world.chats) {
    const records = read(world, chat);
    const ids = new Map(records.events.map((row) => [row.seq, row.id]));
    for (const row of records.sends) {
      if (readExtra(row).relay !== true || row.state !== "sent") continue;
      // Under the name of the actor that handed it over: of a chat that moved, either.
      const keys = namesOf(world, chat).map((name) =>
        encodeKey(`relay:${world.nameOf(name)}:${keyOf(row, ids.get(row.turn))}`),
      );
      if (!keys.some((key) => hub.includes(key)))
        fail(`${keys[0]} was handed over and the hub knows nothing of it`);
    }
  }
}

/** Everything on the platform has a record. */
function checkStrays(world: World, fail: Fail): void {
  const texts = new Set<string>();
  const previews = new Set<string | undefined>();
  for (const chat of world.chats) {
    for (const row of read(world, chat).sends) {
      texts.add(String((JSON.parse(row.request) as { text?: unknown }).text));
      if (readExtra(row).preview === true && row.state === "sent")
        previews.add((JSON.parse(row.receipt ?? "{}") as { id?: string }).id);
    }
  }
  for (const entry of world.platform.ledger) {
    // A preview reads what its last edit said.
    if (!texts.has(entry.text) && !previews.has(entry.id))
      fail(`"${entry.text.slice(0, 40)}" was said without a record`);
  }
}

/** What a handler was told is what happened. */
function checkReported(world: World, fail: Fail): void {
  const ids = new Set(world.platform.ledger.map((entry) => entry.id));
  for (const [event, seen] of world.watch.seen) {
    for (const [text, result] of seen.results) {
      if (result.status !== "sent") continue;
      for (const id of result.ids)
        if (!ids.has(id))
          fail(`${event}: "${text}" was reported sent as ${id}, which does not exist`);
      if (result.ids.length === 0) fail(`${event}: "${text}" was reported sent without an id`);
    }
  }
}
