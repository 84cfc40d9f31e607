/** A chat is written to no faster than its platform allows. */
import { describe, expect, test } from "vitest";
import { Pacer } from "../../src/outbox/Pacer.ts";
import { echoing, lab } from "./lab.ts";

const pacing = { direct: { burst: 3, perMs: 1_000 }, group: { burst: 1, perMs: 3_000 } };

describe("pacing", () => {
  test("replies past the burst wait for their turn, in order, and no call is refused for it", async () => {
    const l = lab({ setup: echoing, capabilities: { pacing } });
    const began = l.now;
    await Promise.all([..."abcdef"].map((text) => l.receive([l.message(text, text)])));
    await l.t.idle();
    expect(l.screen).toEqual([..."abcdef"].map((text) => `ok ${text}`));
    expect(l.platform.ledger.map((entry) => entry.at - began)).toEqual([
      0, 0, 0, 3_000, 3_000, 3_000,
    ]);
  });

  test("a group has a pace of its own", async () => {
    const l = lab({ setup: echoing, capabilities: { pacing } });
    const group = { ...l.ann.chat, kind: "group" as const };
    const began = l.now;
    for (const text of ["a", "b"]) {
      const item = l.message(text, text);
      const request = { connection: "mock", channel: "mock", chat: group, items: [item] };
      await l.t.runtime.call("ChatActor", l.actor(), "receive", JSON.stringify(request));
    }
    await l.t.idle();
    expect(l.platform.ledger.map((entry) => entry.at - began)).toEqual([0, 3_000]);
  });

  test("enqueued sends keep the pace without anybody waiting", async () => {
    const l = lab({
      setup: (bot) => {
        bot.otherwise(async (ctx) => {
          for (let n = 0; n < 6; n += 1) await ctx.enqueue(String(n));
        });
      },
      capabilities: { pacing },
    });
    const began = l.now;
    await l.ann.say("go");
    await l.t.advance("1m");
    expect(l.screen).toEqual(["0", "1", "2", "3", "4", "5"]);
    const times = l.platform.ledger.map((entry) => entry.at - began);
    expect(times[5]).toBeGreaterThanOrEqual(3_000);
    expect(times[5]).toBeLessThan(6_000);
  });

  test("no window of time has more calls than the pace allows", () => {
    const pacer = new Pacer({ burst: 2, perMs: 100 });
    pacer.take(0);
    pacer.take(50);
    expect(pacer.nextAt(60)).toBe(200);
    pacer.take(200);
    expect(pacer.nextAt(200)).toBe(250);
    expect(pacer.nextAt(10_000)).toBe(10_000);
  });

  test("a pace that counts after a 429 only holds nobody back before it", () => {
    const pacer = new Pacer({ burst: 2, perMs: 1_000, afterLimit: true });
    for (let n = 0; n < 50; n += 1) pacer.take(n);
    expect(pacer.nextAt(50)).toBe(50);
    pacer.limited(50);
    expect(pacer.nextAt(50)).toBe(2_048);
    expect(pacer.nextAt(60_050)).toBe(60_050);
  });

  test("after a 429 chats share their bot's pace, and none is silenced for another's limit", async () => {
    const perBot = { burst: 1, perMs: 500 };
    const calm = { burst: 100, perMs: 1 };
    const l = lab({
      setup: echoing,
      capabilities: { pacing: { direct: calm, group: calm, perBot } },
    });
    const people = ["p1", "p2", "p3", "p4"].map((name) => l.t.user(name));
    const limit = { type: "refuse" as const, kind: "rate_limit" as const, retryAfterMs: 1_000 };
    l.platform.failNext(limit, limit, limit, limit);
    await Promise.all(people.map((one) => one.post({ text: "hi" })));
    await l.t.advance(900);
    const asked: string[] = [];
    l.t.runtime.onCall = (kind) => {
      if (kind === "Connection") asked.push(kind);
    };
    await l.ann.post({ text: "not limited" });
    await l.t.advance(50);
    expect(l.screen).toEqual(["ok not limited"]);
    expect(asked, "a chat that was never limited asks nobody").toEqual([]);
    const from = l.platform.ledger.length;
    await l.t.idle();
    const times = l.platform.ledger.slice(from).map((entry) => entry.at);
    expect(asked).toHaveLength(4);
    expect(times).toHaveLength(4);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(500);
  });

  test("a call that the bot's pace puts off does not spend its chat's, and waits for milliseconds", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          for (let n = 0; n < 15; n += 1) await ctx.enqueue(`n${n}`);
        }),
      capabilities: {
        pacing: {
          direct: { burst: 20, perMs: 3_000 },
          group: { burst: 20, perMs: 3_000 },
          perBot: { burst: 1, perMs: 34 },
        },
      },
    });
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 1_000 });
    const begun = l.now;
    await l.ann.say("go");
    await l.t.idle();
    expect(l.screen).toHaveLength(15);
    const times = l.platform.ledger.map((entry) => entry.at);
    expect((times.at(-1) ?? Number.NaN) - begun).toBeLessThan(5_000);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(34);
  });

  test("a send that failed before its call has spent nothing of the bot's pace", async () => {
    const calm = { burst: 100, perMs: 1 };
    const l = lab({
      setup: echoing,
      capabilities: { pacing: { direct: calm, group: calm, perBot: { burst: 5, perMs: 10_000 } } },
    });
    let failures = 0;
    l.deploy({
      setup: echoing,
      capabilities: { pacing: { direct: calm, group: calm, perBot: { burst: 5, perMs: 10_000 } } },
      outbound: () => ({
        prepare: (request) => {
          failures += 1;
          if (failures === 1 || failures > 4) return Promise.resolve({ ok: true, request });
          const refusal = { kind: "transient", evidence: "not_sent", message: "no" } as const;
          return Promise.resolve({ ok: false, ...refusal });
        },
      }),
    });
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 1_000 });
    const begun = l.now;
    await l.ann.say("hi");
    await l.t.advance("10m");
    // The connection's first grant is for ten seconds later; each failed preparation is tried again within seconds.
    const last = l.platform.ledger.at(-1)?.at ?? Number.NaN;
    expect(failures).toBe(5);
    expect(last - begun).toBeLessThan(25_000);
  });

  test("a connection that does not answer holds nobody up", async () => {
    const calm = { burst: 100, perMs: 1 };
    const l = lab({
      setup: echoing,
      capabilities: { pacing: { direct: calm, group: calm, perBot: { burst: 1, perMs: 500 } } },
    });
    l.t.runtime.onCall = (kind) => {
      if (kind === "Connection") throw new Error("unreachable");
    };
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 1_000 });
    await l.ann.say("hi");
    await l.t.advance("3s");
    expect(l.screen).toEqual(["ok hi"]);
  });
});
