import {
  createExecutionContext,
  createScheduledController,
  runInDurableObject,
} from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { registryOf } from "../../src/objects/Reporter.ts";
import { ambiguous, beforeReport, dead, QUICK_LEASE_MS } from "./bots.ts";
import { env, gate, type Listing, type Row, sim, TestChat, until } from "./harness.ts";
import { meterOf } from "./meter.ts";
import worker from "./worker.ts";

/** All pages of a list across chats. */
async function pages(
  chat: TestChat,
  method: "all.outbox" | "all.inbox",
  state: string,
  limit = 50,
) {
  const rows: Row[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 100; page += 1) {
    const listing: Listing = await chat.client<Listing>(method, {
      state,
      limit,
      ...(cursor === undefined ? {} : { cursor }),
    });
    expect(listing.rows.length).toBeLessThanOrEqual(limit);
    rows.push(...listing.rows);
    cursor = listing.cursor;
    if (cursor === undefined) return rows;
  }
  throw new Error("the list does not end");
}

describe.concurrent("an operator", () => {
  it("sees a send that died, in its chat and across chats, sends it again, and gives another up", async () => {
    const chat = new TestChat();
    const end = chat.refuses();
    const first = await chat.say("first");
    const second = await chat.say("second");
    await until(() => dead.filter((one) => one.chatId === chat.address).length === 2 || undefined);
    end();
    expect(dead.find((one) => one.id === `${first}:0`)).toMatchObject({
      kind: "outbound",
      errorKind: "recipient_unreachable",
    });
    const mine = await chat.client<Listing>("outbox.list", { state: "dead" });
    expect(mine.rows.map((row) => row.key)).toEqual([`${second}:0`, `${first}:0`]);

    const across = await until(async () => {
      const rows = await pages(chat, "all.outbox", "dead");
      const found = rows.filter((row) => row.address === chat.address);
      return found.length === 2 ? found : undefined;
    });
    expect(across.map((row) => row.key)).toEqual([`${second}:0`, `${first}:0`]);
    const refOf = (id: string) => across.find((row) => row.key === `${id}:0`)?.ref ?? "";
    expect(await chat.client("all.retry", { key: refOf(first) })).toBe(true);
    await chat.receives(["you said: first"]);
    expect(await chat.client("all.retry", { key: refOf(first) })).toBe(false);
    expect(await chat.client("all.discard", { key: refOf(second) })).toBe(true);
    await chat.settles();
    expect(await chat.client("outbox.get", { key: `${first}:0` })).toMatchObject({ state: "sent" });
  });

  it("replays a turn that failed, and what it had said is not said again", async () => {
    const chat = new TestChat("quick");
    const id = await chat.say("/throw");
    await chat.receives(["before the throw"]);
    const found = await until(async () => {
      const rows = await pages(chat, "all.inbox", "failed");
      return rows.find((row) => row.address === chat.address);
    });
    expect(found).toMatchObject({ id, state: "failed", kind: "message" });
    expect(await chat.client("all.replay", { key: found.ref })).toBe(true);
    await until(async () => {
      const record = await chat.client<{ state: string; runs: number }>("inbox.get", { key: id });
      return (record.runs === 2 && record.state === "failed") || undefined;
    });
    await chat.settles();
    expect(chat.replies).toEqual(["before the throw"]);
  });

  it("replays a turn that was done: nothing is said or counted again", async () => {
    const chat = new TestChat();
    const id = await chat.say("/count");
    await chat.receives(["count 1"]);
    await chat.settles();
    expect(await chat.client("inbox.replay", { key: id })).toBe(true);
    await until(async () => {
      const record = await chat.client<{ state: string; runs: number }>("inbox.get", { key: id });
      return (record.runs === 2 && record.state === "done") || undefined;
    });
    await chat.settles();
    expect(chat.replies).toEqual(["count 1"]);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  });

  it("sees every chat in a list that has many, once each, page by page", async () => {
    const chats = Array.from({ length: 45 }, () => new TestChat());
    const ends = chats.map((chat) => chat.refuses());
    await Promise.all(chats.map((chat) => chat.say("hello?")));
    const wanted = chats.map((chat) => chat.address).sort();
    const one = chats[0] as TestChat;
    const mine = new Set(wanted);
    const found = await until(async () => {
      const rows = (await pages(one, "all.outbox", "dead", 7)).map((row) => row.address);
      const known = rows.filter((address) => mine.has(address)).sort();
      return known.length >= wanted.length ? known : undefined;
    });
    expect(found).toEqual(wanted);
    for (const end of ends) end();
  });

  it("sends again what nobody knows about, once, by hand", async () => {
    const chat = new TestChat("quick");
    sim.fault({
      type: "hang",
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    const id = await chat.say("hello?");
    await until(() => sim.calls.find((call) => call.params.chat_id === chat.id));
    await chat.dies();
    await until(() => ambiguous.find((one) => one.key === `${id}:0`));
    expect(chat.sent).toEqual([]);
    const held = await chat.client<Listing>("outbox.list", { state: "unknown" });
    expect(held.rows).toMatchObject([{ key: `${id}:0`, state: "unknown" }]);
    expect(await chat.client("outbox.retry", { key: `${id}:0` })).toBe(true);
    await chat.receives(["you said: hello?"]);
    await chat.settles();
    expect(await chat.client("outbox.get", { key: `${id}:0` })).toMatchObject({ state: "sent" });
  });
});

describe.concurrent("what must be listed across chats", () => {
  /** A chat that has rested: its only alarm is the purge's. */
  async function rested(): Promise<TestChat> {
    const chat = new TestChat("quick");
    await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await until(async () => ((await chat.alarm()) ?? 0) > Date.now() + 3_600_000 || undefined);
    return chat;
  }

  /** Whether a list across chats has a record of this chat. */
  async function isListed(chat: TestChat, state: string): Promise<true | undefined> {
    const rows = await pages(chat, "all.outbox", state);
    return rows.some((row) => row.address === chat.address) || undefined;
  }

  it("is a send that dies while a report of its chat is on its way", async () => {
    const chat = await rested();
    const end = chat.refuses();
    let arrived = () => {};
    const onItsWay = new Promise<void>((done) => {
      arrived = done;
    });
    let died = false;
    beforeReport.set(chat.name, async () => {
      arrived();
      await until(() => died || undefined);
    });
    await chat.client("enqueue", { content: "never heard", inMs: 200 });
    await onItsWay;
    await until(() => dead.find((one) => one.chatId === chat.address));
    died = true;
    await until(() => isListed(chat, "dead"), 4 * QUICK_LEASE_MS);
    end();
  }, 15_000);

  it("is a send that died while the Registry could not be reached for a while", async () => {
    const chat = await rested();
    const end = chat.refuses();
    let failed = 0;
    beforeReport.set(chat.name, async () => {
      failed += 1;
      throw new Error("the Registry is not there");
    });
    await chat.client("enqueue", { content: "never heard" });
    await until(() => dead.find((one) => one.chatId === chat.address));
    const began = Date.now();
    await until(() => Date.now() - began > 2 * QUICK_LEASE_MS || undefined);
    expect(failed).toBeGreaterThan(0);
    beforeReport.delete(chat.name);
    await until(() => isListed(chat, "dead"), 4 * QUICK_LEASE_MS);
    end();
  }, 15_000);

  it("is a send that is scheduled, so that the sweep knows it if its alarm is lost", async () => {
    const chat = await rested();
    await chat.client("enqueue", { content: "in an hour", inMs: 3_600_000 });
    await until(() => isListed(chat, "pending"), 4 * QUICK_LEASE_MS);
  }, 15_000);
});

describe.concurrent("the sweep", () => {
  it("brings what a chat owes whose alarm was lost, though nobody writes", async () => {
    const chat = new TestChat();
    await chat.say("/later 2000");
    await chat.settledButFor(1);
    // Told to the Registry as it would be by the next alarm.
    await (chat.stub as unknown as { call(method: string, payload: string): Promise<string> }).call(
      "wake",
      "{}",
    );
    const registry = env.REGISTRY.getByName(registryOf(chat.name));
    await until(() => meterOf(registryOf(chat.name)).requests.has("report") || undefined);
    await runInDurableObject(chat.stub, (_object, { storage }) => storage.deleteAlarm());
    await chat.dies();
    const overdue = Date.now() - 600_000;
    await until(() =>
      runInDurableObject(registry, (_object, { storage }) => {
        const changed = storage.sql.exec(
          "UPDATE chats SET wake_at = ? WHERE name = ?",
          overdue,
          chat.name,
        );
        return changed.rowsWritten > 0 || undefined;
      }),
    );
    await worker.scheduled(createScheduledController(), env, createExecutionContext());
    await chat.receives(["after 2000"]);
  });

  it("ends well where nothing is overdue", async () => {
    const chat = new TestChat();
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    const runs = chat.meter.alarmRuns.length;
    await worker.scheduled(createScheduledController(), env, createExecutionContext());
    expect(chat.meter.alarmRuns.length).toBe(runs);
    slow.open();
    await chat.receives(["slow 1"]);
  });
});

describe("the counters of all chats", () => {
  it("are summed up, a lease later at the latest", async () => {
    const chats = [new TestChat("quick"), new TestChat("quick"), new TestChat("quick")];
    const one = chats[0] as TestChat;
    const before = await one.client<Record<string, number>>("all.metrics");
    for (const chat of chats) {
      const update = chat.update("hello");
      await chat.deliver(update);
      await chat.deliver(update);
    }
    await until(async () => {
      const now = await one.client<Record<string, number>>("all.metrics");
      const more = (name: string) => (now[name] ?? 0) - (before[name] ?? 0);
      return (
        (more("inboundJournaled") === 3 &&
          more("inboundDuplicates") === 3 &&
          more("outboxJournaled") === 3) ||
        undefined
      );
    }, 3 * QUICK_LEASE_MS);
  });
});
