import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { BRIEF_RETENTION_MS, QUICK_LEASE_MS } from "./bots.ts";
import { gate, sim, TestChat, until } from "./harness.ts";

const DAY_MS = 86_400_000;

/** How late a timer may be on a machine with two cores and other tests. */
const LATE_MS = 400;

/** Bounded waiting for nothing to happen: the alarm is only the purge's, and stays so. */
async function onlyPurgeIsArmed(chat: TestChat, timeoutMs: number): Promise<void> {
  await until(async () => {
    const at = await chat.alarm();
    return (at !== null && at > Date.now() + DAY_MS) || undefined;
  }, timeoutMs);
  expect(await chat.open()).toEqual([]);
}

/** When the platform accepted each text, in ms after `from`. */
function acceptedAfter(chat: TestChat, from: number): Map<string, number> {
  return new Map(chat.sent.map((message) => [message.text, message.at - from]));
}

describe.concurrent("the alarm of a chat", () => {
  it("runs a handful of times in a turn of 20 s, in which work comes due on time", async () => {
    const chat = new TestChat();
    const began = Date.now();
    const delays = [1_000, 1_100, 5_000, 12_000];
    await chat.say(`/long 20000 ${delays.join(" ")}`);
    const all = [...delays.map((ms) => `after ${ms}`), "done at last"];
    await chat.receives(all, 25_000);
    const at = acceptedAfter(chat, began);
    for (const ms of delays) {
      expect(at.get(`after ${ms}`)).toBeGreaterThanOrEqual(ms);
      expect(at.get(`after ${ms}`)).toBeLessThan(ms + LATE_MS);
    }
    // One for each time at which something is due, and a few for whatever.
    expect(chat.meter.alarmRuns.length).toBeLessThanOrEqual(delays.length + 3);
    expect(chat.meter.alarmsSet).toBeLessThanOrEqual(2 * delays.length + 4);
  }, 30_000);

  it("runs once in a lease while a turn goes on, however short the lease is", async () => {
    const chat = new TestChat("quick");
    await chat.say("/long 4000");
    await chat.receives(["done at last"], 8_000);
    expect(chat.meter.alarmRuns.length).toBeLessThanOrEqual(4_000 / QUICK_LEASE_MS + 1);
  }, 15_000);

  it("does not spin while work is due that must wait for the platform", async () => {
    const chat = new TestChat("quick");
    sim.fault({
      type: "rateLimit",
      retryAfter: 3,
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    await chat.say("/long 4000 50 100 150");
    await chat.receives(["after 50", "after 100", "after 150", "done at last"], 8_000);
    expect(chat.meter.alarmRuns.length).toBeLessThanOrEqual(3 + 4_000 / QUICK_LEASE_MS + 3);
  }, 15_000);

  it("does not spin while a send is on its way to a platform that does not answer", async () => {
    const chat = new TestChat("quick");
    sim.fault({
      type: "hang",
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    await chat.say("/later 20 40 60");
    const began = Date.now();
    await until(() => Date.now() - began > 3_000 || undefined);
    expect(chat.meter.alarmRuns.length).toBeLessThanOrEqual(3 + 3_000 / QUICK_LEASE_MS + 2);
    await chat.dies();
  }, 15_000);

  it("brings a scheduled send on time to a chat that was evicted meanwhile", async () => {
    const chat = new TestChat("quick");
    const began = Date.now();
    await chat.say("/later 1500");
    await chat.settledButFor(1);
    await chat.dies();
    await chat.receives(["after 1500"]);
    const at = acceptedAfter(chat, began).get("after 1500") ?? 0;
    expect(at).toBeGreaterThanOrEqual(1_500);
    expect(at).toBeLessThan(1_500 + LATE_MS);
  });

  it("brings a refused send again when the platform said, not earlier", async () => {
    const chat = new TestChat("quick");
    sim.fault({
      type: "rateLimit",
      retryAfter: 2,
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    await chat.say("/later 1");
    const refused = await until(() =>
      sim.calls.find((call) => call.method === "sendMessage" && call.params.chat_id === chat.id),
    );
    await chat.receives(["after 1"]);
    const waited = acceptedAfter(chat, refused.at).get("after 1") ?? 0;
    expect(waited).toBeGreaterThanOrEqual(2_000);
    expect(waited).toBeLessThan(2_000 + LATE_MS);
    await chat.settles();
  });

  it("is the purge's alone once nothing is open", async () => {
    const chat = new TestChat("quick");
    for (const text of ["hello", "/twice", "/count", "/throw", "/later 100"]) await chat.say(text);
    await until(() => chat.replies.includes("after 100") || undefined);
    await chat.settles();
    await onlyPurgeIsArmed(chat, 3 * QUICK_LEASE_MS + LATE_MS);
    const runs = chat.meter.alarmRuns.length;
    expect(runs).toBeLessThanOrEqual(4);
    const quiet = Date.now();
    await until(() => Date.now() - quiet > 2 * QUICK_LEASE_MS || undefined);
    expect(chat.meter.alarmRuns.length).toBe(runs);
  }, 15_000);
});

describe.concurrent("an actor whose records are old", () => {
  it("deletes its storage, and is a new chat to the next message", async () => {
    const chat = new TestChat("quick", "brief");
    await chat.say("hello");
    await chat.say("/twice");
    await chat.receives(["you said: hello", "one", "two"]);
    await until(() => gone(chat), BRIEF_RETENTION_MS + 4 * QUICK_LEASE_MS);
    const runs = chat.meter.alarmRuns.length;
    expect(runs).toBeLessThanOrEqual(6);
    const quiet = Date.now();
    await until(() => Date.now() - quiet > 2 * QUICK_LEASE_MS || undefined);
    expect(await gone(chat)).toBe(true);
    expect(chat.meter.alarmRuns.length).toBe(runs);

    await chat.say("hello again");
    await chat.receives(["you said: hello", "one", "two", "you said: hello again"]);
    await chat.settles();
  }, 15_000);

  it("keeps its state, though its records go", async () => {
    const chat = new TestChat("quick", "brief");
    await chat.say("/count");
    await chat.receives(["count 1"]);
    await until(
      async () => (await chat.rows("SELECT seq FROM inbox")).length === 0 || undefined,
      BRIEF_RETENTION_MS + 4 * QUICK_LEASE_MS,
    );
    expect(await chat.rows("SELECT turn FROM outbox")).toEqual([]);
    await chat.say("/count");
    await chat.receives(["count 1", "count 2"]);
  }, 15_000);

  it("keeps what is scheduled, and purges nothing of a turn that still runs", async () => {
    const chat = new TestChat("quick", "brief");
    const slow = gate();
    const id = await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    await chat.client("enqueue", { content: "much later", inMs: 2 * BRIEF_RETENTION_MS + 1_500 });
    const began = Date.now();
    await until(() => Date.now() - began > 2 * BRIEF_RETENTION_MS + 200 || undefined);
    expect(await chat.client("inbox.get", { key: id })).toMatchObject({ state: "processing" });
    slow.open();
    await chat.receives(["slow 1", "much later"]);
  }, 15_000);
});

/** True once the object holds nothing at all: no tables and no alarm. */
async function gone(chat: TestChat): Promise<true | undefined> {
  return runInDurableObject(chat.stub, async (_object, { storage }) => {
    const tables = storage.sql.exec("SELECT name FROM sqlite_master").toArray();
    return (tables.length === 0 && (await storage.getAlarm()) === null) || undefined;
  });
}
