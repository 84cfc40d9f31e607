/**
 * One seed of the simulator: a bot, chats, a platform and a machine that all misbehave for a while, then
 * stop misbehaving. Afterwards everything must have come out right, or have been announced.
 *
 * @module
 */

import type {
  ChannelPolling,
  DeliveryClass,
  InboundItem,
  Pace,
} from "../../src/channels/channel.ts";
import type { SqlRow } from "../../src/host/Host.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { ConnectionBook } from "../../src/objects/ConnectionBook.ts";
import { chatActorName, connectionActorName } from "../../src/objects/names.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { type Fault, MockPlatform } from "../../src/testing/MockPlatform.ts";
import { mockProvider } from "../../src/testing/MockProvider.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { busyUntil } from "../../src/testing/quiet.ts";
import { seededRandom } from "../../src/testing/random.ts";
import { sleep } from "../../src/time/Clock.ts";
import type { Bot } from "../../src/turns/Bot.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";
import type { AmbiguousPolicy, DurabilityOptions } from "../../src/turns/options.ts";
import { checkRun } from "./check.ts";
import { HUB, type Op, scriptBot, type Watch } from "./script.ts";

/** How long misbehaviour lasts, in ms. */
const CHAOS_MS = 120_000;
/** How long the world has to come to rest afterwards, in ms. */
const REST_MS = 24 * 3_600_000;
/** Text limit of the simulated platform: small, so that messages have parts. */
export const TEXT_LIMIT = 40;

/** One event that the simulated platform delivers. */
export interface SimEvent {
  id: string;
  chat: string;
  at: number;
  sender: string;
  /** The album that it is part of. */
  group?: string;
  ops: Op[];
  /** A notice of the platform that the chat has another name. */
  migration?: { to?: string; from?: string };
  admitted: boolean;
}

/** A chat that the platform renames on the way. */
export interface Move {
  chat: string;
  to: string;
  at: number;
}

/** What one seed decided. */
export interface Plan {
  seed: number;
  class: DeliveryClass;
  policy: { afterCrash: AmbiguousPolicy; noAnswer: AmbiguousPolicy };
  durability: DurabilityOptions;
  markerWindowMs: number | undefined;
  crashRate: number;
  faultRate: number;
  commitFailRate: number;
  /** Whether the platform reports deliveries. */
  statuses: boolean;
  busy: BusyOptions;
  /** How fast the platform lets one chat be written to. */
  pace: Pace | undefined;
  /** Updates are fetched through a connection instead of delivered by a webhook. */
  polled: boolean;
  move: Move | undefined;
  events: SimEvent[];
}

/** Everything the checks look at. */
export interface World {
  plan: Plan;
  runtime: NodeRuntime;
  platform: MockPlatform;
  watch: Watch;
  chats: string[];
  actorOf(chat: string): string;
  /** The actor of a chat's present name. */
  nameOf(chat: string): string;
  /** The first name of a chat. */
  home(chat: string): string;
  /** Calls that came before a rate limit was over. */
  early: string[];
  rested: boolean;
}

type Random = () => number;

function pick<T>(random: Random, options: readonly T[]): T {
  return options[Math.floor(random() * options.length)] as T;
}

function between(random: Random, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

function makeOps(random: Random, id: string): Op[] {
  const count = between(random, 1, 4);
  const ops: Op[] = [];
  for (let n = 0; n < count; n += 1) {
    const text = `${id}.${n}`;
    const roll = random();
    if (roll < 0.34) ops.push({ op: "reply", text });
    else if (roll < 0.4) ops.push({ op: "reply", text: longText(text, between(random, 2, 4)) });
    else if (roll < 0.44) {
      const answer = longText(text, between(random, 1, 3));
      ops.push({ op: "stream", text: answer, everyMs: pick(random, [20, 300, 2_000]) });
    } else if (roll < 0.5) ops.push({ op: "loose", text });
    else if (roll < 0.56)
      ops.push({ op: "enqueue", text, delay: pick(random, [0, 0, 1_000, 40_000]) });
    else if (roll < 0.61) ops.push({ op: "settled", text });
    else if (roll < 0.66) ops.push({ op: "keyed", text, key: `key-${text}` });
    else if (roll < 0.72) ops.push({ op: "batch", texts: [`${text}a`, `${text}b`] });
    else if (roll < 0.79) ops.push({ op: "step", name: `s${n}`, text });
    else if (roll < 0.82) ops.push({ op: "diverge", text });
    else if (roll < 0.86) ops.push({ op: "relay", text });
    else if (roll < 0.93)
      ops.push({ op: "sleep", ms: pick(random, [1, 50, 2_000, 20_000, 70_000]) });
    else if (roll < 0.95) ops.push({ op: "throw" });
    else if (roll < 0.97) ops.push({ op: "nack" });
    else if (roll < 0.985)
      ops.push({ op: "flow", text: `${text}f`, rounds: between(random, 1, 3) });
    else ops.push(random() < 0.5 ? { op: "retry" } : { op: "retry", after: 90_000 });
  }
  return ops;
}

/** A text of several parts, whose words name their place. */
export function longText(text: string, parts: number): string {
  return Array.from({ length: parts }, (_unused, index) =>
    `${text}#${index}`.padEnd(TEXT_LIMIT - 4, "."),
  ).join("\n\n");
}

/** What a bot may do while a chat is busy. */
const BUSY: readonly BusyOptions[] = [
  {},
  {},
  { concurrency: { mode: "burst", quiet: 1_000, maxWait: 4_000 } },
  { concurrency: "interrupt" },
  { ack: "after_agent_dispatch" },
  { ack: "after_durable_send" },
  { ack: "manual" },
];

/** The platform renames one chat: it says so under both names, and nothing is said under the old one later. */
function moveOf(random: Random, events: SimEvent[]): Move {
  const move = { chat: "c1", to: "c1-new", at: between(random, 5_000, CHAOS_MS * 0.6) };
  const notice = { at: move.at, sender: "platform", ops: [], admitted: false };
  events.push(
    { ...notice, id: "moved-to", chat: move.chat, migration: { to: move.to } },
    { ...notice, id: "moved-from", chat: move.chat, migration: { from: move.chat } },
  );
  return move;
}

/** The name under which an event arrives. */
function nameOf({ move }: Plan, event: SimEvent): string {
  if (move === undefined || event.chat !== move.chat) return event.chat;
  if (event.migration !== undefined) return event.migration.to === undefined ? move.to : move.chat;
  return event.at >= move.at ? move.to : move.chat;
}

/** Decides everything about a seed. */
export function planOf(seed: number): Plan {
  const random = seededRandom(seed);
  const policies: AmbiguousPolicy[] = ["skip", "resend-once", "resend"];
  const policy = { afterCrash: pick(random, policies), noAnswer: pick(random, policies) };
  const chats = between(random, 1, 3);
  const events: SimEvent[] = [];
  const quick = random() < 0.3;
  for (let n = 0; n < between(random, 3, 9); n += 1) {
    const id = `e${n}`;
    const last = events.at(-1)?.at ?? 0;
    events.push({
      id,
      chat: `c${between(random, 1, chats)}`,
      at: quick
        ? Math.min(last + between(random, 0, 2_500), CHAOS_MS * 0.7)
        : between(random, 0, CHAOS_MS * 0.7),
      sender: random() < 0.8 ? "u1" : "u2",
      ...(quick && random() < 0.2 ? { group: "album" } : {}),
      ops: makeOps(random, id),
      admitted: false,
    });
  }
  const move = random() < 0.15 ? moveOf(random, events) : undefined;
  const calm = random() < 0.15;
  return {
    seed,
    class: pick(random, ["blind", "keyed", "provable"] as const),
    policy,
    markerWindowMs: random() < 0.3 ? between(random, 40_000, 90_000) : undefined,
    durability: {
      inbox: {
        leaseMs: pick(random, [1_000, 10_000, 60_000]),
        minAgeMs: pick(random, [0, 120_000]),
        maxAttempts: pick(random, [3, 5, 8]),
        turnTimeoutMs: pick(random, [30_000, 600_000]),
      },
      outbox: {
        leaseMs: pick(random, [1_000, 60_000]),
        sendTimeoutMs: pick(random, [2_000, 30_000]),
        inlineMaxMs: pick(random, [500, 15_000]),
        retries: pick(random, [3, 12]),
        order: pick(random, ["inline", "inline", "strict"] as const),
        onDiverged: pick(random, ["send", "skip"] as const),
        onAmbiguous: policy,
      },
    },
    crashRate: calm ? 0 : pick(random, [0, 0.01, 0.03, 0.08]),
    faultRate: calm ? 0 : pick(random, [0, 0.1, 0.3]),
    commitFailRate: calm ? 0 : pick(random, [0, 0, 0.02]),
    statuses: random() < 0.3,
    busy: pick(random, BUSY),
    pace: random() < 0.2 ? { burst: 2, perMs: 1_500 } : undefined,
    polled: move === undefined && random() < 0.2,
    move,
    events,
  };
}

function faultOf(random: Random): Fault {
  const roll = random();
  if (roll < 0.2)
    return { type: "refuse", kind: "rate_limit", retryAfterMs: between(random, 500, 20_000) };
  if (roll < 0.35) return { type: "refuse", kind: "transient" };
  if (roll < 0.4) return { type: "refuse", kind: "recipient_unreachable" };
  if (roll < 0.45) return { type: "refuse", kind: "invalid_payload", fallback: "plain" };
  if (roll < 0.55) return { type: "drop" };
  if (roll < 0.7) return { type: "acceptThenDrop" };
  if (roll < 0.78) return { type: "acceptThenHang" };
  if (roll < 0.86) return { type: "hang" };
  if (roll < 0.95) return { type: "serverError" };
  return { type: "noId" };
}

/** Runs a seed to the end. Returns the violations: none, if all is well. */
export async function simulate(seed: number): Promise<string[]> {
  const plan = planOf(seed);
  const random = seededRandom(seed ^ 0x5eed);
  let bot: Bot;
  const runtime = new NodeRuntime({
    seed,
    make: (host, kind, name) =>
      kind === "Registry"
        ? new RegistryBook(host)
        : kind === "Connection"
          ? new ConnectionBook(host, bot, name)
          : new Chat(host, bot, name),
  });
  const start = runtime.clock.now();
  const chaos = () => runtime.clock.now() < start + CHAOS_MS;
  const platform = new MockPlatform(runtime.clock, plan.class);
  const watch: Watch = {
    seen: new Map(),
    running: new Map(),
    overlaps: [],
    order: new Map(),
    announced: [],
    sleep: (ms) => new Promise((resolve) => runtime.clock.setTimer(ms, resolve)),
  };
  const mock = mockProvider({
    platform,
    capabilities: {
      text: { limit: TEXT_LIMIT, unit: "codepoints" },
      ...(plan.pace === undefined ? {} : { pacing: { direct: plan.pace, group: plan.pace } }),
      ...(plan.statuses ? { statuses: true as const } : {}),
      delivery: {
        class: plan.class,
        ...(plan.markerWindowMs === undefined ? {} : { markerWindowMs: plan.markerWindowMs }),
        settleAfterMs: 3_000,
      },
    },
  });
  const channel = plan.polled ? { ...mock, polling: feedOf(plan, runtime, start) } : mock;
  bot = scriptBot(channel, plan.durability, plan.busy, () => watch);
  const home = (chat: string) => (chat === plan.move?.to ? plan.move.chat : chat);
  const actorOf = (chat: string) => chatActorName(bot.scope, "mock", home(chat));
  const connection = connectionActorName(bot.scope, "mock");
  const early: string[] = [];
  const gates = new Map<string, number>();
  platform.latency = () =>
    chaos() && random() < 0.3 ? between(random, 1, 3_000) : between(random, 0, 30);
  platform.healthy = () => !chaos() || random() > plan.faultRate;
  platform.fault = (call) => {
    const gate = gates.get(actorOf(call.chat)) ?? 0;
    if (runtime.clock.now() < gate)
      early.push(`${call.text} came ${gate - runtime.clock.now()} ms early`);
    const { move } = plan;
    if (move !== undefined && call.chat === move.chat && runtime.clock.now() - start >= move.at)
      return { type: "moved", to: move.to };
    if (!chaos() || random() >= plan.faultRate) return undefined;
    return faultOf(random);
  };
  const send = platform.send.bind(platform);
  platform.send = async (chat, text, buttons, marker) => {
    const called = runtime.clock.now();
    const engine = runtime.engine("ChatActor", actorOf(chat));
    const known = platform.ledger.length;
    const sending = send(chat, text, buttons, marker);
    const result = await sending;
    const accepted = platform.ledger.slice(known).find((entry) => entry.marker === marker);
    if (plan.statuses && accepted !== undefined) report(world, random, chat, accepted.id, marker);
    const heard =
      runtime.engine("ChatActor", actorOf(chat)) === engine &&
      runtime.clock.now() - called < (plan.durability.outbox?.sendTimeoutMs ?? 0);
    // Only what was heard can be honoured.
    if (heard && !result.ok && result.retryAfterMs !== undefined) {
      gates.set(actorOf(chat), runtime.clock.now() + result.retryAfterMs);
    }
    return result;
  };
  runtime.onProbe = (hit) => {
    const dies = hit.kind !== "Registry" && chaos() && random() < plan.crashRate;
    // What the platform said is lost with the process that heard it, if it dies before the record.
    if (dies && hit.label !== "outbox.markSent") gates.delete(hit.actor);
    return dies;
  };
  runtime.onCommit = (actor) => {
    if (actor === connection) return;
    if (chaos() && random() < plan.commitFailRate)
      throw new Error("database or disk is full: SQLITE_FULL");
  };
  const world: World = {
    plan,
    runtime,
    platform,
    watch,
    chats: [...new Set([...plan.events.map((event) => event.chat), HUB])],
    actorOf,
    nameOf: (chat) => chatActorName(bot.scope, "mock", chat),
    home,
    early,
    rested: false,
  };
  if (plan.polled) poll(runtime, connection);
  else deliverAll(world, random, start);
  if (plan.crashRate > 0) scheduleKills(world, random);
  await runtime.advance(CHAOS_MS);
  const delivered = () =>
    plan.events.every((event) => event.admitted || (plan.polled && isOnRecord(world, event)));
  world.rested = await runtime.until(
    () => delivered() && !busyUntil(runtime) && !anyScheduled(world),
    REST_MS,
  );
  const violations = checkRun(world);
  runtime.close();
  return violations;
}

/** The updates of a platform that are fetched: confirmed by the cursor of the next poll, and not before. */
function feedOf(plan: Plan, runtime: NodeRuntime, start: number): ChannelPolling<MockPlatform> {
  const feed = [...plan.events].sort((a, b) => a.at - b.at);
  return {
    account: async () => ({ ok: true, account: { id: "1", name: "mock" } }),
    poll: async (cursor) => {
      const from = cursor === undefined ? 0 : Number(cursor);
      const ready = () =>
        feed.slice(from).filter((event) => start + event.at <= runtime.clock.now());
      for (let waited = 0; waited < 5 && ready().length === 0; waited += 1)
        await sleep(runtime.clock, 1_000);
      const updates = ready().map((event, index) => ({
        cursor: String(from + index + 1),
        items: itemsOf(plan, [event], start),
      }));
      return { ok: true, updates };
    },
  };
}

/** Has a connection fetch, as often as it takes to tell it. */
function poll(runtime: NodeRuntime, connection: string): void {
  const start = () => {
    runtime.call("Connection", connection, "poll.start", "{}").catch(() => {
      runtime.clock.setTimer(1_000, start);
    });
  };
  start();
}

/** Whether a chat has an event. */
function isOnRecord(world: World, event: SimEvent): boolean {
  const storage = world.runtime.storage("ChatActor", world.actorOf(event.chat));
  const ready = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'inbox'`, []);
  return (
    ready.length > 0 && storage.all(`SELECT 1 AS x FROM inbox WHERE id = ?`, [event.id]).length > 0
  );
}

/** The platform reports a delivery: late, twice, or not at all. */
function report(
  world: World,
  random: Random,
  chat: string,
  platformId: string,
  marker: string,
): void {
  const { runtime } = world;
  for (let n = between(random, 0, 2); n > 0; n -= 1) {
    runtime.clock.setTimer(between(random, 0, 30_000), () => {
      const status = {
        marker,
        platformId,
        status: pick(random, ["sent", "delivered", "read"] as const),
        at: runtime.clock.now(),
        chat: { id: chat, kind: "direct" },
      };
      const items = [{ type: "status", status }];
      runtime
        .call(
          "ChatActor",
          world.actorOf(chat),
          "receive",
          JSON.stringify({ connection: "mock", channel: "mock", chat: status.chat, items }),
        )
        .catch(() => {});
    });
  }
}

/** The platform delivers, redelivers, duplicates and batches. */
function deliverAll(world: World, random: Random, start: number): void {
  const { runtime, plan } = world;
  const batches: SimEvent[][] = [];
  for (const event of [...plan.events].sort((a, b) => a.at - b.at)) {
    const last = batches.at(-1);
    const with_ = last?.[0];
    const together = with_ !== undefined && nameOf(plan, with_) === nameOf(plan, event);
    if (together && random() < 0.2) last?.push(event);
    else batches.push([event]);
  }
  for (const batch of batches) {
    const at = batch[0]?.at ?? 0;
    const attempt = async (n: number): Promise<void> => {
      const ok = await receive(world, batch, start);
      if (ok) for (const event of batch) event.admitted = true;
      // A redelivery after success, too: the answer may have been lost on its way.
      const again = ok ? random() < 0.25 && n < 4 : true;
      if (again)
        runtime.clock.setTimer(
          between(random, 1, 1_000 * 2 ** Math.min(n, 5)),
          () => void attempt(n + 1),
        );
    };
    runtime.clock.setTimer(at, () => {
      void attempt(0);
      if (random() < 0.2) void attempt(3);
    });
  }
}

async function receive(world: World, batch: readonly SimEvent[], start: number): Promise<boolean> {
  const first = batch[0];
  if (first === undefined) return true;
  const { plan } = world;
  const chat = { id: nameOf(plan, first), kind: "direct" as const };
  // A platform delivers one by one in a chat: the first under the new name says which the old one was.
  const named = plan.events.find((event) => event.migration?.from !== undefined);
  const early = chat.id === plan.move?.to && named?.admitted !== true;
  if (early && !batch.some((event) => event === named)) return false;
  const items = itemsOf(plan, batch, start);
  try {
    const answer = await world.runtime.call(
      "ChatActor",
      world.nameOf(chat.id),
      "receive",
      JSON.stringify({ connection: "mock", channel: "mock", chat, items }),
    );
    return (JSON.parse(answer) as { ok: boolean }).ok;
  } catch {
    return false;
  }
}

/** Events as the edge hands them on. */
function itemsOf(plan: Plan, batch: readonly SimEvent[], start: number): InboundItem[] {
  return batch.map((event) => ({
    type: "event",
    event: {
      id: event.id,
      kind: event.migration === undefined ? "message" : "mock:moved",
      ...(event.migration === undefined ? {} : { migration: event.migration }),
      ...(event.group === undefined ? {} : { groupId: event.group }),
      channel: "mock",
      connection: "mock",
      chat: { id: nameOf(plan, event), kind: "direct" },
      sender: { id: event.sender },
      at: start + event.at,
      text: JSON.stringify(event.ops),
    },
  }));
}

/** Evictions and whole-process deaths at random moments, beside those at labelled steps. */
function scheduleKills(world: World, random: Random): void {
  const kills = between(random, 0, 4);
  for (let n = 0; n < kills; n += 1) {
    const victim = random() < 0.3 ? undefined : world.actorOf(pick(random, world.chats));
    world.runtime.clock.setTimer(between(random, 0, CHAOS_MS), () => world.runtime.kill(victim));
  }
}

/** A run of a flow, as a chat keeps it. */
export interface SimRun {
  id: string;
  state: string;
  error: string | null;
  input: string;
}

/** The runs of an actor. */
export function runsOf(world: World, actor: string): SimRun[] {
  const storage = world.runtime.storage("ChatActor", actor);
  const made = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'flows'`, []);
  if (made.length === 0) return [];
  return storage.all<SimRun & SqlRow>(`SELECT id, state, error, input FROM flows`, []);
}

/** Whether any actor has work for later; a renamed chat may be owned under either name. */
function anyScheduled(world: World): boolean {
  return world.runtime.names("ChatActor").some((name) => {
    const storage = world.runtime.storage("ChatActor", name);
    const ready = storage.all(`SELECT 1 AS x FROM sqlite_master WHERE name = 'outbox'`, []);
    if (ready.length === 0) return false;
    return (
      storage.all(`SELECT 1 AS x FROM outbox WHERE due_at IS NOT NULL LIMIT 1`, []).length > 0 ||
      storage.all(`SELECT 1 AS x FROM inbox WHERE open > 0 LIMIT 1`, []).length > 0 ||
      runsOf(world, name).some((run) => run.state === "active")
    );
  });
}
