import { describe, expect, test } from "vitest";
import { SIM_TOKEN, SimTelegram } from "../../testing/platforms/telegram.ts";
import type { ChannelIo, PollResult } from "../channel.ts";
import type { TelegramConfig } from "./config.ts";
import { updates } from "./fixtures.ts";
import { inbound } from "./inbound.ts";
import { polling } from "./polling.ts";

const NOW = 1_700_000_100_000;
const CONTEXT = { connection: "main", waitMs: 25_000, limit: 100 };

function setUp(token = SIM_TOKEN) {
  const sim = new SimTelegram({
    now: () => NOW,
    setTimer: (_ms, fn) => {
      fn();
      return () => {};
    },
  });
  const options: TelegramConfig = {
    token,
    webhookSecret: "s",
    apiBase: "https://api.telegram.org",
  };
  const io: ChannelIo<TelegramConfig> = {
    options,
    fetch: (input, init) => sim.fetch(new Request(input, init)),
    signal: new AbortController().signal,
    now: () => NOW,
    actors: { call: () => Promise.reject(new Error("none")) },
    scope: "t/e/b/main",
  };
  const poll = (cursor?: string, context = CONTEXT) => polling.poll(cursor, io, context);
  return { sim, io, options, poll };
}

function failureOf(result: PollResult): Extract<PollResult, { ok: false }> {
  if (result.ok) throw new Error("it did not fail");
  return result;
}

describe("poll", () => {
  test("reads an update as the webhook does, whatever its kind", async () => {
    const { sim, options, poll } = setUp();
    for (const update of Object.values(updates)) {
      await poll();
      sim.enqueue(update);
    }
    const result = await poll();
    if (!result.ok) throw new Error(result.message);
    const context = { options, connection: "main", now: NOW };
    const byWebhook = Object.values(updates).flatMap((update) => {
      const body = new TextEncoder().encode(JSON.stringify(update));
      return inbound.parse(
        { method: "POST", url: "https://x/", headers: new Headers(), body },
        context,
      );
    });
    expect(result.updates.flatMap((one) => one.items)).toEqual(byWebhook);
  });

  test("the cursor of an update is the one behind it, also where it cannot be read", async () => {
    const { sim, poll } = setUp();
    sim.enqueue({ update_id: 41, message: { chat: { id: 5, type: "private" } } });
    sim.enqueue({ ...sim.messageUpdate({ chatId: 5, text: "x" }), update_id: 44 });
    const result = await poll("40");
    expect(result).toMatchObject({
      updates: [
        { cursor: "42", items: [{ type: "bad", id: "41" }] },
        { cursor: "45", items: [{ type: "event" }] },
      ],
    });
  });

  test("asks behind the cursor, for all kinds, and never longer than it may", async () => {
    const { sim, poll } = setUp();
    await poll();
    await poll("45", { ...CONTEXT, waitMs: 999, limit: 1_000 });
    await poll("45", { ...CONTEXT, waitMs: 600_000, limit: 0 });
    const [first, second, third] = sim.calls.map((call) => call.params);
    expect(first).not.toHaveProperty("offset");
    expect(first).toMatchObject({ timeout: 25, limit: 100 });
    expect(second).toMatchObject({ offset: 45, timeout: 0, limit: 100 });
    expect(third).toMatchObject({ timeout: 50, limit: 1 });
    expect(first?.allowed_updates).toEqual(expect.arrayContaining(["chat_member", "poll_answer"]));
  });

  test("says what is wrong, and how long to wait", async () => {
    const { sim, poll } = setUp();
    sim.fault({ type: "rateLimit", retryAfter: 9 });
    expect(failureOf(await poll())).toMatchObject({ kind: "rate_limit", retryAfterMs: 9_000 });
    sim.fault({ type: "5xx" });
    expect(failureOf(await poll())).toMatchObject({ kind: "transient" });
    sim.fault({ type: "drop" });
    expect(failureOf(await poll())).toMatchObject({ kind: "transient" });
    sim.fault({ type: "torn" });
    expect(failureOf(await poll()).ok).toBe(false);
    const unknown = failureOf(await setUp("77:other").poll());
    expect(unknown).toMatchObject({ kind: "auth", code: "401" });
    expect(unknown.message).toMatch(/@BotFather/);
    expect(unknown.message).not.toContain("77:other");
  });

  test("an answer that is no list confirms nothing", async () => {
    const { io } = setUp();
    const odd = { ...io, fetch: async () => Response.json({ ok: true, result: {} }) };
    expect(failureOf(await polling.poll("7", odd, CONTEXT)).kind).toBe("unknown");
    const holes = { ...io, fetch: async () => Response.json({ ok: true, result: [null, 7, {}] }) };
    expect(await polling.poll("7", holes, CONTEXT)).toEqual({ ok: true, updates: [] });
  });
});

describe("account", () => {
  test("is who the token belongs to", async () => {
    const { io } = setUp();
    expect(await polling.account(io)).toEqual({
      ok: true,
      account: { name: "@sim_bot", url: "https://t.me/sim_bot" },
    });
    expect(await polling.account(setUp("77:other").io)).toMatchObject({ ok: false, kind: "auth" });
  });
});
