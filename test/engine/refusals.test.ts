import { describe, expect, test } from "vitest";
import type { ErrorKind } from "../../src/channels/errors.ts";
import {
  DeliveryError,
  type DurabilityOptions,
  OutsideSessionWindowError,
  PayloadTooLargeError,
  RecipientUnreachableError,
  UnsupportedContentError,
} from "../../src/index.ts";
import type { Fault } from "../../src/testing/index.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

const refuse = (kind: ErrorKind, retryAfterMs?: number): Fault => ({
  type: "refuse",
  kind,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

/** Times of all calls since the lab was made. */
function watched(outbox: DurabilityOptions["outbox"] = {}): Lab & { times: number[] } {
  const times: number[] = [];
  const l = Object.assign(lab({ durability: { outbox }, setup: echoing }), { times });
  const start = l.now;
  const { platform } = l;
  const send = platform.send.bind(platform);
  platform.send = (...call) => {
    times.push(l.now - start);
    return send(...call);
  };
  return l;
}

describe("a rate limit", () => {
  test("is waited for to the millisecond, and spends none of the retries", async () => {
    const l = watched({ retries: 0 });
    l.platform.failNext(
      refuse("rate_limit", 40_000),
      refuse("rate_limit", 5_000),
      refuse("rate_limit", 90_000),
    );
    await l.ann.say("hi");
    expect(l.times).toEqual([0, 40_000, 45_000, 135_000]);
    expect(l.screen).toEqual(["ok hi"]);
    expect(only(l.sends()).attempts).toBe(0);
    expect(l.told("durability:dead")).toEqual([]);
  });

  test("is not shortened, whatever the cap of the backoff", async () => {
    const l = watched({ backoff: { baseMs: 10, capMs: 1_000 } });
    l.platform.failNext(refuse("rate_limit", 3_600_000));
    await l.ann.post({ text: "hi" });
    await l.t.advance("2h");
    expect(l.times).toEqual([0, 3_600_000]);
  });

  test("holds every message of the chat, even across a restart, and of no other chat", async () => {
    const l = watched();
    l.platform.failNext(refuse("rate_limit", 120_000));
    await l.ann.post({ text: "one" });
    await l.t.advance("1s");
    l.t.runtime.kill();
    await l.ann.post({ text: "two" });
    await l.client.enqueue("from outside");
    await l.t.user("bob").post({ text: "three" });
    await l.t.advance("118s");
    expect(l.called).toEqual(["ok one", "ok three"]);
    await l.t.idle();
    expect(l.times.slice(2).every((time) => time >= 120_000)).toBe(true);
    expect([...l.screen].sort()).toEqual(["from outside", "ok one", "ok two"]);
  });

  test("without a time is answered with a growing backoff", async () => {
    const l = watched({ retries: 0 });
    l.platform.failNext(...Array.from({ length: 4 }, () => refuse("rate_limit")));
    await l.ann.say("hi");
    const waits = l.times.slice(1).map((time, n) => time - (l.times[n] ?? 0));
    for (const [n, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(500 * 2 ** n);
      expect(wait).toBeLessThanOrEqual(1_000 * 2 ** n);
    }
    expect(l.screen).toEqual(["ok hi"]);
  });

  test("that lasts longer than a message may live ends the message, with its kind", async () => {
    const l = watched({ maxAgeMs: 60_000 });
    l.platform.failNext(refuse("rate_limit", 61_000));
    await l.ann.say("hi");
    expect(l.told("durability:dead")).toEqual([
      expect.objectContaining({ id: "e1:0", errorKind: "rate_limit" }),
    ]);
  });

  test("that ends a message still holds the next one: the platform asked for silence", async () => {
    const l = watched({ maxAgeMs: 60_000 });
    l.platform.failNext(refuse("rate_limit", 61_000));
    await l.ann.say("hi");
    await l.t.advance("10s");
    await l.ann.post({ text: "again" });
    await l.t.advance("5m");
    expect(l.times).toEqual([0, 61_000]);
  });
});

describe("a platform that fails for half a minute", () => {
  const faults: [string, () => Fault][] = [
    ["refuses", () => refuse("transient")],
    ["rate limits", () => refuse("rate_limit", 2_000)],
    ["refuses for unknown reasons", () => refuse("unknown")],
    ["answers 502", () => ({ type: "serverError" })],
    ["drops connections", () => ({ type: "drop" })],
  ];

  test.each(faults)(
    "and %s loses no message, doubles none, and repeats none unannounced",
    async (_name, fault) => {
      const l = lab({ setup: echoing });
      const until = l.now + 30_000;
      l.platform.fault = () => (l.now < until ? fault() : undefined);
      // A blind channel's self test fails as long as the platform does.
      l.platform.healthy = () => l.now >= until;
      const users = ["ann", "bob", "cem"].map((name) => l.t.user(name));
      for (let n = 0; n < 10; n += 1) {
        for (const user of users) await user.post({ text: `${n}` });
        await l.t.advance("3s");
      }
      await l.t.idle();
      for (const user of users) {
        expect([...user.screen].sort()).toEqual(Array.from({ length: 10 }, (_u, n) => `ok ${n}`));
      }
      const told = l.told("durability:ambiguous");
      const resent = users.flatMap((user) => l.sends(user)).filter((row) => row.maybes > 0);
      expect(told.every((event) => event.action === "resent")).toBe(true);
      expect(new Set(told.map((event) => `${event.chatId} ${event.key}`)).size).toBe(told.length);
      expect(told.length).toBe(resent.length);
      expect(l.told("durability:dead")).toEqual([]);
    },
  );

  test("and then cannot be reached by its own test, gets no blind repeat until it can", async () => {
    const l = watched();
    l.platform.failNext({ type: "drop" });
    const until = l.now + 200_000;
    l.platform.healthy = () => l.now >= until;
    await l.ann.post({ text: "hi" });
    await l.t.advance("199s");
    expect(l.times).toEqual([0]);
    await l.t.idle();
    expect(l.times).toHaveLength(2);
    expect(l.screen).toEqual(["ok hi"]);
    expect(only(l.sends()).attempts).toBe(1);
  });
});

describe("a definitive refusal", () => {
  const kinds: [ErrorKind, new (message: string) => DeliveryError][] = [
    ["auth", DeliveryError],
    ["permission", DeliveryError],
    ["not_found", DeliveryError],
    ["invalid_payload", DeliveryError],
    ["payload_too_large", PayloadTooLargeError],
    ["unsupported_content", UnsupportedContentError],
    ["outside_session_window", OutsideSessionWindowError],
    ["recipient_unreachable", RecipientUnreachableError],
    ["conflict", DeliveryError],
  ];

  test.each(kinds)(
    "(%s) ends the send at once: thrown, listed, announced, and retried by an operator",
    async (kind, type) => {
      const l = lab({
        setup: (bot, l) =>
          bot.otherwise(async (ctx) => {
            l().notes.push(await ctx.reply("hello").catch((error: unknown) => error));
          }),
      });
      l.platform.failNext(refuse(kind));
      await l.ann.say("hi");
      expect(l.notes).toEqual([expect.any(type)]);
      expect(l.notes[0]).toMatchObject({ kind, key: "e1:0", retryable: false, sentParts: [] });
      expect(l.platform.calls).toHaveLength(1);
      expect(l.told("durability:dead")).toEqual([
        {
          kind: "outbound",
          id: "e1:0",
          chatId: "mock/mock/ann",
          error: `refused: ${kind}`,
          errorKind: kind,
        },
      ]);
      const dead = only((await l.client.outbox.list({ state: "dead" })).rows);
      expect(dead).toMatchObject({ key: "e1:0", kind, error: `refused: ${kind}` });
      expect(await l.t.client.durability.retrySend(dead.ref)).toBe(true);
      await l.t.idle();
      expect(l.screen).toEqual(["hello"]);
      expect((await l.client.outbox.list({ state: "dead" })).rows).toEqual([]);
    },
  );

  test("that the handler does not catch fails its turn, not the chat", async () => {
    const l = lab({ setup: echoing });
    l.platform.failNext(refuse("permission"));
    await l.ann.say("one");
    await l.ann.say("two");
    expect(l.screen).toEqual(["ok two"]);
    expect((await l.client.inbox.list({ state: "failed" })).rows).toHaveLength(1);
  });
});

describe("retries", () => {
  test("are twelve, with waits that double to five minutes, half fixed and half random", async () => {
    const l = watched();
    l.platform.fault = () => refuse("transient");
    await l.ann.say("hi");
    expect(l.times).toHaveLength(13);
    const waits = l.times.slice(1).map((time, n) => time - (l.times[n] ?? 0));
    for (const [n, wait] of waits.entries()) {
      const full = Math.min(300_000, 1_000 * 2 ** n);
      expect(wait).toBeGreaterThanOrEqual(full / 2);
      expect(wait).toBeLessThanOrEqual(full + 1);
    }
    expect(new Set(waits.map((wait, n) => wait / 2 ** n)).size).toBeGreaterThan(3);
    expect(l.told("durability:dead")).toEqual([
      expect.objectContaining({ id: "e1:0", errorKind: "transient" }),
    ]);
  });

  test("never come sooner than the platform asked", async () => {
    const l = watched({ backoff: { baseMs: 10, capMs: 100 } });
    l.platform.failNext(refuse("transient", 777_000));
    await l.ann.say("hi");
    expect(l.times).toEqual([0, 777_000]);
  });

  test("survive a restart with what they had spent", async () => {
    const l = watched({ retries: 3 });
    l.platform.fault = () => refuse("transient");
    await l.client.enqueue("hello");
    await l.t.advance("2s");
    await l.t.restart();
    expect(l.times).toHaveLength(4);
  });

  test("end at maxAgeMs, counted from when the send was first due", async () => {
    const l = watched({ maxAgeMs: 100_000, retries: 1_000 });
    l.platform.fault = () => refuse("transient");
    await l.client.enqueue("now");
    await l.client.enqueue("tomorrow", { delay: "24h" });
    await l.t.advance("5m");
    expect(l.times.at(-1)).toBeLessThanOrEqual(100_000);
    expect(l.told("durability:dead")).toHaveLength(1);
    l.platform.fault = () => undefined;
    await l.t.advance("24h");
    expect(l.screen).toEqual(["tomorrow"]);
  });

  test("end at notAfter: a stale message is dead, not late", async () => {
    const l = watched();
    l.platform.failNext(refuse("transient", 50_000), refuse("transient", 50_000));
    await l.client.enqueue("your code is 123", { notAfter: l.now + 60_000 });
    await l.t.idle();
    expect(l.times).toEqual([0, 50_000]);
    expect(l.screen).toEqual([]);
    expect(l.told("durability:dead")).toEqual([
      expect.objectContaining({ errorKind: "cancelled" }),
    ]);
  });
});
