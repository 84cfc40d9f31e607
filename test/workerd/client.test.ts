import {
  createExecutionContext,
  createScheduledController,
  runInDurableObject,
} from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { registryOf } from "../../src/objects/Reporter.ts";
import { ambiguous, dead, QUICK_LEASE_MS, sabotage } from "./bots.ts";
import { env, gate, sim, TestChat, until } from "./harness.ts";
import { meterOf } from "./meter.ts";
import worker from "./worker.ts";

interface Sent {
  key: string;
  status: string;
  receipt?: { primaryId: string; platformMessageIds: string[] };
}
interface Row {
  ref: string;
  id: string;
  key?: string;
  address: string;
  state: string;
  kind: string;
  error?: string;
}
interface Listing {
  rows: Row[];
  cursor?: string;
}

/** Calls to this chat that Telegram refuses for good, until the returned function is called. */
function refuse(chat: TestChat): () => void {
  return sim.fault(({ method, params }) =>
    method === "sendMessage" && params.chat_id === chat.id
      ? { type: "refuse", status: 403, description: "Forbidden: bot was blocked by the user" }
      : undefined,
  );
}

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

describe("a send from the bot's own route", () => {
  it("reaches a chat that never wrote, and resolves with its receipt", async () => {
    const chat = new TestChat();
    const sent = await chat.client<Sent>("send", { content: "hello there" });
    expect(sent).toMatchObject({ status: "sent" });
    expect(chat.sent).toMatchObject([{ text: "hello there" }]);
    expect(sent.receipt?.primaryId).toBe(chat.sent[0]?.messageId);
    expect(await chat.client("outbox.get", { key: sent.key })).toMatchObject({
      key: sent.key,
      state: "sent",
      address: chat.address,
      content: { text: "hello there" },
    });
    await chat.settles();
  });

  it("is said once under its key, whoever asks again", async () => {
    const chat = new TestChat();
    const options = { idempotencyKey: "order:17/shipped" };
    const first = await chat.client<Sent>("send", { content: "shipped", options });
    const again = await Promise.all(
      [1, 2, 3].map(() => chat.client<Sent>("send", { content: "shipped!", options })),
    );
    for (const one of again) expect(one.receipt).toEqual(first.receipt);
    await chat.dies();
    expect((await chat.client<Sent>("send", { content: "shipped", options })).status).toBe("sent");
    expect(chat.replies).toEqual(["shipped"]);
    expect(await chat.client("outbox.get", { key: "order:17/shipped" })).toMatchObject({
      state: "sent",
    });
  });

  it("is said once, though it is asked for many times at once", async () => {
    const chat = new TestChat();
    const options = { idempotencyKey: "once" };
    const all = await Promise.all(
      Array.from({ length: 8 }, () => chat.client<Sent>("send", { content: "once", options })),
    );
    expect(new Set(all.map((one) => one.status))).toEqual(new Set(["sent"]));
    expect(chat.replies).toEqual(["once"]);
  });

  it("carries over what JSON does not: bytes, dates, any character", async () => {
    const chat = new TestChat();
    const text = "“quotes” \\ \n 𝄞 👩‍👩‍👧 \u2028 </script>";
    await chat.client("send", { content: text });
    expect(chat.replies).toEqual([text]);
    const bytes = btoa(String.fromCharCode(...Array.from({ length: 256 }, (_unused, at) => at)));
    await chat.client("send", { bytes });
    expect(chat.sent[1]).toMatchObject({ method: "sendPhoto", text: "a picture" });
    expect(chat.sent[1]?.body.photo).toMatchObject({ size: 256, filename: "dot.png" });
    const asked = Date.now();
    const later = await chat.client<Sent>("enqueue", { content: "at a date", inMs: 300 });
    expect(later.status).toBe("deferred");
    await until(() => chat.replies.includes("at a date") || undefined);
    expect((chat.sent[2]?.at ?? 0) - asked).toBeGreaterThanOrEqual(300);
  });

  it("that is refused before it is recorded leaves no storage in a chat that never wrote", async () => {
    const chat = new TestChat();
    expect(await chat.ask("send", { content: { template: { name: "welcome" } } })).toMatchObject({
      error: { name: "UnsupportedContentError" },
    });
    // Nothing would ever come to delete it: without a record there is no alarm.
    expect(await chat.rows("SELECT k FROM meta")).toEqual([]);
  });

  it("tells what went wrong with the code and the key, as an error of its class", async () => {
    const chat = new TestChat();
    const end = refuse(chat);
    const options = { idempotencyKey: "refused" };
    const answer = await chat.ask("send", { content: "hello?", options });
    end();
    expect(answer).toMatchObject({
      error: { name: "RecipientUnreachableError", key: "refused", ours: true },
    });
    expect(await chat.ask("send", { address: "pigeon/coop/7", content: "hello?" })).toMatchObject({
      error: { name: "ConfigError", ours: true },
    });
    expect(await chat.ask("outbox.list", { limit: 1_000 })).toMatchObject({
      error: { name: "ConfigError", ours: true },
    });
    expect(await chat.ask("all.retry", { key: "not a ref" })).toMatchObject({
      error: { name: "ConfigError", ours: true },
    });
  });

  it("that nobody waits for can be cancelled before it begins, and not after", async () => {
    const chat = new TestChat();
    const later = await chat.client<Sent>("enqueue", { content: "never", inMs: 60_000 });
    expect(await chat.client("cancel", { key: later.key })).toBe(true);
    expect(await chat.client("outbox.get", { key: later.key })).toMatchObject({
      state: "suppressed",
      reason: "cancelled",
    });
    const sent = await chat.client<Sent>("send", { content: "said" });
    expect(await chat.client("cancel", { key: sent.key })).toBe(false);
    expect(chat.replies).toEqual(["said"]);
    await chat.settles();
  });
});

describe("a look at a chat", () => {
  it("that nobody ever used leaves no storage", async () => {
    const chat = new TestChat();
    expect(await chat.client("outbox.list")).toEqual({ rows: [] });
    expect(await chat.client("inbox.list")).toEqual({ rows: [] });
    expect(await chat.client("inbox.get", { key: "1" })).toBeNull();
    expect(await chat.client("getState", { key: "count" })).toBeNull();
    expect(await chat.client("log")).toEqual([]);
    expect(await chat.client("inbox.replay", { key: "1" })).toBe(false);
    expect(await chat.client("outbox.discard", { key: "1:0" })).toBe(false);
    expect(chat.meter.rowsWritten).toBe(0);
    expect(chat.meter.alarmsSet).toBe(0);
  });

  it("shows its state, its log and its records, page by page", async () => {
    const chat = new TestChat();
    const ids: string[] = [];
    for (let n = 1; n <= 5; n += 1) {
      ids.push(await chat.say(`message ${n}`));
      await chat.settles();
    }
    await chat.client("setState", { key: "count", value: 41 });
    await chat.say("/count");
    await until(() => chat.replies.includes("count 42") || undefined);
    await chat.settles();

    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page: Listing = await chat.client<Listing>("inbox.list", {
        state: "done",
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      });
      seen.push(...page.rows.map((row) => row.id));
      cursor = page.cursor;
    } while (cursor !== undefined && seen.length < 20);
    expect(seen.slice(1).reverse()).toEqual(ids);

    const { rows } = await chat.client<Listing>("outbox.list", { state: "sent", limit: 200 });
    expect(rows.map((row) => row.key)).toEqual([
      expect.any(String),
      ...ids.map((id) => `${id}:0`).reverse(),
    ]);
    const log = await chat.client<{ type: string; text: string }[]>("log", { limit: 4 });
    expect(log.map((entry) => [entry.type, entry.text])).toEqual([
      ["event", "message 1"],
      ["send", "you said: message 1"],
      ["event", "message 2"],
      ["send", "you said: message 2"],
    ]);
    expect(await chat.client("metrics")).toMatchObject({ inboundJournaled: 6, outboxJournaled: 6 });
  });
});

describe("an external event", () => {
  it("is a turn, once for its id", async () => {
    const chat = new TestChat();
    const event = { key: "order-17", value: { amount: 12.5, items: ["tea", null] } };
    expect(await chat.client("sendEvent", event)).toEqual({ accepted: true });
    expect(await chat.client("sendEvent", event)).toEqual({ accepted: false });
    await chat.receives([`paid: ${JSON.stringify(event.value)}`]);
    await chat.settles();
    expect(chat.sent).toHaveLength(1);
  });
});

describe("an operator", () => {
  it("sees a send that died, in its chat and across chats, sends it again, and gives another up", async () => {
    const chat = new TestChat();
    const end = refuse(chat);
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
    const ends = chats.map(refuse);
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

  it("sees the counters of all chats summed up, a lease later at the latest", async () => {
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

describe("what must be listed across chats", () => {
  afterEach(() => {
    sabotage.beforeReport = undefined;
  });

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
    const end = refuse(chat);
    let arrived = () => {};
    const onItsWay = new Promise<void>((done) => {
      arrived = done;
    });
    let died = false;
    sabotage.beforeReport = async (report) => {
      if (!report.includes(chat.name)) return;
      arrived();
      await until(() => died || undefined);
    };
    await chat.client("enqueue", { content: "never heard", inMs: 200 });
    await onItsWay;
    await until(() => dead.find((one) => one.chatId === chat.address));
    died = true;
    await until(() => isListed(chat, "dead"), 4 * QUICK_LEASE_MS);
    end();
  }, 15_000);

  it("is a send that dies while the Registry cannot be reached for a moment", async () => {
    const chat = await rested();
    const end = refuse(chat);
    let failed = 0;
    sabotage.beforeReport = async (report) => {
      if (!report.includes(chat.name)) return;
      failed += 1;
      throw new Error("the Registry is not there");
    };
    await chat.client("enqueue", { content: "never heard" });
    await until(() => failed > 0 || undefined);
    await until(() => dead.find((one) => one.chatId === chat.address));
    sabotage.beforeReport = undefined;
    await until(() => isListed(chat, "dead"), 4 * QUICK_LEASE_MS);
    end();
  }, 15_000);

  it("is a send that is scheduled, so that the sweep knows it if its alarm is lost", async () => {
    const chat = await rested();
    await chat.client("enqueue", { content: "in an hour", inMs: 3_600_000 });
    await until(() => isListed(chat, "pending"), 4 * QUICK_LEASE_MS);
  }, 15_000);

  it("is a turn that failed, before a lease is over", async () => {
    const chat = new TestChat();
    const id = await chat.say("/throw");
    await until(async () => {
      const rows = await pages(chat, "all.inbox", "failed");
      return rows.find((row) => row.id === id);
    });
  });
});

describe("the sweep", () => {
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
          "UPDATE chats SET due_at = ? WHERE name = ?",
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
