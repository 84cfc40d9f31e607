import { evictAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { ambiguous, QUICK_LEASE_MS } from "./bots.ts";
import { gate, sim, startsOf, TestChat, until } from "./harness.ts";

/** How late the recovery may be: a lease, and a loaded machine. */
const RECOVERED_MS = QUICK_LEASE_MS + 3_000;

/** Calls of `sendMessage` for a chat. */
function callsFor(chat: TestChat) {
  return sim.calls.filter(
    ({ method, params }) => method === "sendMessage" && params.chat_id === chat.id,
  );
}

describe.concurrent("an object that dies in the middle of a turn", () => {
  it("answers once by itself afterwards, and its state changes once", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    const id = await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    await chat.dies();
    slow.open();
    await chat.receives(["slow 1"], RECOVERED_MS);
    await chat.settles();
    expect(chat.replies).toEqual(["slow 1"]);
    expect(startsOf(id)).toBe(2);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
    expect(await chat.client("inbox.get", { key: id })).toMatchObject({ state: "done", runs: 2 });
  });

  it("does not repeat what it had said before", async () => {
    const chat = new TestChat("quick");
    const half = gate();
    const id = await chat.say(`/halves ${half.name}`);
    await half.reached();
    expect(chat.replies).toEqual(["first half 1"]);
    await chat.dies();
    half.open();
    await chat.receives(["first half 1", "second half 1"], RECOVERED_MS);
    await chat.settles();
    expect(chat.replies).toEqual(["first half 1", "second half 1"]);
    expect(startsOf(id)).toBe(2);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  });

  it("goes on at once when the next message comes, in the order in which they came", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    await chat.dies();
    slow.open();
    await chat.say("/count");
    await chat.receives(["slow 1", "count 2"], QUICK_LEASE_MS - 200);
  });

  it("goes on with the next message when its alarm was lost as well", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    await loseAlarm(chat);
    await chat.dies();
    slow.open();
    await chat.say("/count");
    await chat.receives(["slow 1", "count 2"]);
    await chat.settles();
  });

  it("goes on when the sweep wakes it, though its alarm was lost", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    await loseAlarm(chat);
    await chat.dies();
    slow.open();
    await (chat.stub as unknown as { call(method: string, payload: string): Promise<string> }).call(
      "wake",
      "{}",
    );
    await chat.receives(["slow 1"]);
    await chat.settles();
  });

  it("loses none of the messages that were waiting behind", async () => {
    const chat = new TestChat("quick");
    const slow = gate();
    await chat.say(`/slow ${slow.name}`);
    await slow.reached();
    for (let n = 0; n < 5; n += 1) await chat.say("/count");
    await chat.dies();
    slow.open();
    await chat.receives(
      ["slow 1", ...[2, 3, 4, 5, 6].map((count) => `count ${count}`)],
      RECOVERED_MS,
    );
    await chat.settles();
    expect(await chat.client("getState", { key: "count" })).toBe(6);
  });

  it("says nothing twice when the platform had it and its answer was not recorded, and says so", async () => {
    const chat = new TestChat("quick");
    sim.fault({
      type: "hang",
      accepted: true,
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    const id = await chat.say("/count");
    await until(() => chat.sent.length === 1 || undefined);
    await chat.dies();
    const event = await until(() => ambiguous.find((one) => one.key === `${id}:0`), RECOVERED_MS);
    expect(event).toMatchObject({ cause: "crash", action: "held", chatId: chat.address });
    await chat.settles();
    expect(callsFor(chat)).toHaveLength(1);
    expect(await chat.client("outbox.get", { key: `${id}:0` })).toMatchObject({ state: "unknown" });
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  });
});

describe("an object that is evicted", () => {
  it("while it rests, knows everything afterwards", async () => {
    const chat = new TestChat();
    await chat.say("/count");
    await chat.receives(["count 1"]);
    await chat.settles();
    await evictDurableObject(chat.stub);
    await chat.say("/count");
    await chat.receives(["count 1", "count 2"]);
  });

  it("while its handler is slow, answers once", async () => {
    const chats = [new TestChat("quick"), new TestChat("quick")];
    const slow = gate();
    const ids = await Promise.all(chats.map((chat) => chat.say(`/slow ${slow.name}`)));
    await slow.reached(2);
    const evicting = evictAllDurableObjects();
    slow.open();
    await evicting;
    await Promise.all(chats.map((chat) => chat.receives(["slow 1"], RECOVERED_MS)));
    await Promise.all(chats.map((chat) => chat.settles()));
    for (const [at, chat] of chats.entries()) {
      expect(chat.replies).toEqual(["slow 1"]);
      expect(startsOf(ids[at] ?? "")).toBeLessThanOrEqual(2);
      expect(await chat.client("getState", { key: "count" })).toBe(1);
    }
  });
});

describe.concurrent("a journal that refuses a write", () => {
  it("at the first touch of a chat: what the chat owes comes all the same, also after a restart", async () => {
    const chat = new TestChat("quick");
    // With a table that lacks columns, the commit fails after the chat has noted who it is.
    await chat.sabotage("CREATE TABLE inbox (seq INTEGER PRIMARY KEY, open INTEGER)");
    const update = chat.update("/later 800");
    expect((await chat.deliver(update)).status).toBe(503);
    await chat.sabotage("DROP TABLE inbox");
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.settledButFor(1);
    await chat.dies();
    await chat.receives(["after 800"], RECOVERED_MS);
    await chat.settles();
  }, 10_000);

  it("at the end of a turn: the turn runs again, and its reply is not said again", async () => {
    const chat = new TestChat("quick");
    await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await chat.settles();
    await chat.sabotage(
      `CREATE TRIGGER refuse BEFORE UPDATE ON inbox WHEN new.state = 'done'
       BEGIN SELECT RAISE(ABORT, 'as the test asked'); END`,
    );
    const id = await chat.say("/count");
    await chat.receives(["you said: hello", "count 1"]);
    await until(async () => (await chat.open()).length > 0 || undefined);
    await chat.sabotage("DROP TRIGGER refuse");
    await chat.settles(RECOVERED_MS);
    expect(chat.replies).toEqual(["you said: hello", "count 1"]);
    expect(startsOf(id)).toBeGreaterThanOrEqual(2);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  }, 10_000);

  it("of a send that went out: it is not said again, and it is recorded or announced", async () => {
    const chat = new TestChat("quick");
    await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await chat.settles();
    await chat.sabotage(
      `CREATE TRIGGER refuse BEFORE UPDATE ON outbox WHEN new.state = 'sent'
       BEGIN SELECT RAISE(ABORT, 'as the test asked'); END`,
    );
    const id = await chat.say("/count");
    await until(() => chat.sent.length === 2 || undefined);
    await chat.sabotage("DROP TRIGGER refuse");
    const state = await until(async () => {
      const record = await chat.client<{ state: string }>("outbox.get", { key: `${id}:0` });
      return ["sent", "unknown"].includes(record.state) ? record.state : undefined;
    }, 10_000);
    await chat.settles(10_000);
    const told = ambiguous.some((one) => one.key === `${id}:0`);
    expect(told).toBe(state === "unknown");
    expect(chat.replies).toEqual(["you said: hello", "count 1"]);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  }, 20_000);

  it("of a reply: the handler sees it, and the chat goes on", async () => {
    const chat = new TestChat("quick");
    await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await chat.settles();
    await chat.sabotage(
      `CREATE TRIGGER refuse BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'as the test asked'); END`,
    );
    const id = await chat.say("never said");
    await chat.settles();
    await chat.sabotage("DROP TRIGGER refuse");
    expect(await chat.client("inbox.get", { key: id })).toMatchObject({ state: "failed" });
    await chat.say("and on");
    await chat.receives(["you said: hello", "you said: and on"]);
    expect(await chat.client("inbox.replay", { key: id })).toBe(true);
    await chat.receives(["you said: hello", "you said: and on", "you said: never said"]);
  });
});

/** Deletes the alarm behind the runtime's back. */
async function loseAlarm(chat: TestChat): Promise<void> {
  await runInDurableObject(chat.stub, (_object, { storage }) => storage.deleteAlarm());
}
