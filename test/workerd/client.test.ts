import { describe, expect, it } from "vitest";
import { ambiguous } from "./bots.ts";
import { type Listing, sim, TestChat, until } from "./harness.ts";

interface Sent {
  key: string;
  status: string;
  receipt?: { primaryId: string; platformMessageIds: string[] };
}

describe.concurrent("a send from the bot's own route", () => {
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

  it("is said once when the chat's object dies while the route waits for it", async () => {
    const chat = new TestChat("quick");
    await chat.say("hello");
    await chat.receives(["you said: hello"]);
    await chat.settles();
    sim.fault({
      type: "hang",
      accepted: true,
      method: "sendMessage",
      when: ({ params }) => params.chat_id === chat.id,
    });
    // Whatever the route is answered: the edge repeats a call that was cut off.
    const answer = chat.ask("send", { content: "paid" });
    await until(() => chat.sent.length === 2 || undefined);
    await chat.dies();
    await answer;
    await chat.settles();
    expect(chat.replies).toEqual(["you said: hello", "paid"]);
    expect(ambiguous.filter((one) => one.chatId === chat.address)).toHaveLength(1);
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
    const end = chat.refuses();
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

describe.concurrent("a look at a chat", () => {
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

describe.concurrent("an external event", () => {
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
