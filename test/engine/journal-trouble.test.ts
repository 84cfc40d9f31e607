/** A journal that refuses writes for a while, rows that are damaged, and what must not get stuck. */
import { describe, expect, test } from "vitest";
import { RetryTurn } from "../../src/index.ts";
import type { CommitLabel } from "../../src/journal/labels.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

/** Answers each message with two replies, a reminder and a count; every second turn asks to be run again. */
const busy = () =>
  lab({
    class: "keyed",
    setup: (bot) =>
      bot.otherwise(async (ctx) => {
        ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
        ctx.reply(`one ${ctx.text}`).catch(() => {});
        await ctx.reply(`two ${ctx.text}`);
        await ctx.enqueue(`later ${ctx.text}`, { delay: "1500ms", when: "settled" });
        if (ctx.attempt === 1 && Number(ctx.text) % 2 === 1)
          throw new RetryTurn({ after: "300ms" });
      }),
  });

/** All that ten messages must have said. */
const ALL = Array.from({ length: 10 }, (_u, n) => [`one ${n}`, `two ${n}`, `later ${n}`])
  .flat()
  .sort();

/** Refuses commits of `label` (or all) from 2 s to 7 s. */
function outage(l: Lab, label?: string, ms = 5_000): { refused: number } {
  const from = l.now + 2_000;
  const seen = { refused: 0 };
  l.refuseCommits((one) => {
    const refused = (label === undefined || one === label) && l.now >= from && l.now < from + ms;
    if (refused) seen.refused += 1;
    return refused;
  });
  return seen;
}

async function traffic(l: Lab): Promise<void> {
  l.platform.fault = ({ n }) => (n % 4 === 0 ? { type: "refuse", kind: "transient" } : undefined);
  for (let n = 0; n < 10; n += 1) {
    await l.ann.post({ text: `${n}` });
    await l.t.advance("1s");
  }
  await l.t.idle();
  await l.t.advance("5m");
}

describe("a journal that refuses all writes for five seconds", () => {
  test("loses no message and counts each once: the platform is told to deliver again", async () => {
    const l = busy();
    outage(l);
    await traffic(l);
    expect([...l.screen].sort()).toEqual(ALL);
    expect(l.t.state(l.ann, "n")).toBe(10);
    expect(l.told("durability:dead")).toEqual([]);
  });

  test("in the middle of a turn does not lose its answer", async () => {
    const l = lab({
      class: "keyed",
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await l().sleep(2_500);
          await ctx.reply("hello");
        }),
    });
    outage(l);
    await l.ann.say("hi");
    // Either it was said, or the turn is listed as failed and was reported: never neither.
    const failed = (await l.client.inbox.list({ state: "failed" })).rows.length;
    expect(l.screen.length + failed).toBe(1);
    expect(l.told("error").length).toBeGreaterThanOrEqual(failed);
  });
});

describe("a journal that refuses one kind of write for five seconds", () => {
  const labels = [
    "alarm.rearm",
    "inbox.claim",
    "inbox.receive",
    "outbox.arm",
    "outbox.markFailed",
    "outbox.markSending",
    "outbox.markSent",
    "turn.retry",
    "turn.settle",
  ] as const satisfies readonly CommitLabel[];

  test.each(labels)("(%s) loses no message, doubles none and counts each once", async (label) => {
    const l = busy();
    const seen = outage(l, label);
    await traffic(l);
    expect(seen.refused).toBeGreaterThan(0);
    expect([...l.screen].sort()).toEqual(ALL);
    expect(l.t.state(l.ann, "n")).toBe(10);
    expect(l.told("durability:dead")).toEqual([]);
  });

  test("(outbox.insert) fails turns, which are listed and reported, and no others", async () => {
    const l = busy();
    const seen = outage(l, "outbox.insert");
    await traffic(l);
    expect(seen.refused).toBeGreaterThan(0);
    const failed = (await l.client.inbox.list({ state: "failed" })).rows;
    expect(failed.length).toBeGreaterThan(0);
    expect(
      l
        .told("error")
        .map((event) => event.id)
        .sort(),
    ).toEqual(failed.map((row) => row.id).sort());
    expect(l.t.state(l.ann, "n")).toBe(10 - failed.length);
    for (const { ref } of failed) await l.t.client.durability.replayInbound(ref);
    await l.t.idle();
    await l.t.advance("1m");
    expect(l.screen.filter((text) => text.startsWith("two")).sort()).toEqual(
      ALL.filter((text) => text.startsWith("two")),
    );
  });
});

describe("an answer of the platform that cannot be recorded", () => {
  test("for seconds is kept in memory: nothing is said twice, and nothing is in doubt", async () => {
    const l = lab({ class: "blind", setup: echoing });
    outage(l, "outbox.markSent", 4_000);
    await l.t.advance("3s");
    await l.ann.say("hi");
    expect(l.platform.calls).toHaveLength(1);
    expect(l.states).toEqual(["sent"]);
    expect(l.told("durability:ambiguous")).toEqual([]);
  });

  test("for a minute is in doubt, and that is announced", async () => {
    const l = lab({ class: "blind", setup: echoing });
    outage(l, "outbox.markSent", 60_000);
    await l.t.advance("3s");
    await l.ann.say("hi");
    await l.t.advance("10m");
    expect(l.screen).toEqual(["ok hi"]);
    expect(l.told("durability:ambiguous")).toHaveLength(1);
  });
});

describe("a damaged row of the outbox", () => {
  test.each(["request", "extra", "content", "address"])(
    "(%s) ends alone, announced; the rest of the chat is sent",
    async (column) => {
      const l = lab({ setup: echoing });
      await l.client.enqueue("broken", { delay: "1h", idempotencyKey: "broken" });
      await l.client.enqueue("whole", { delay: "1h", idempotencyKey: "whole" });
      l.damage(`UPDATE outbox SET ${column} = '{' WHERE key = 'broken'`);
      await l.t.advance("2h");
      expect(l.screen).toEqual(["whole"]);
      expect(l.told("durability:dead")).toEqual([expect.objectContaining({ id: "broken" })]);
      expect(only((await l.client.outbox.list({ state: "dead" })).rows).error).toMatch(
        /unreadable/,
      );
    },
  );

  test("(receipt) does not keep the turn that asks for it from being answered", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const said = await ctx
            .reply(`v ${ctx.text}`, { idempotencyKey: "k" })
            .catch((error: unknown) => error);
          l().notes.push(said instanceof SyntaxError ? "SyntaxError" : "answered");
        }),
    });
    await l.ann.say("one");
    l.damage("UPDATE outbox SET receipt = '{'");
    await l.ann.say("two");
    expect(l.notes).toEqual(["answered", "answered"]);
    expect((await l.client.outbox.list()).rows).toHaveLength(1);
    await expect(l.client.outbox.get("k")).resolves.toBeDefined();
  });
});

describe("a turn's send that had not begun", () => {
  /** Two replies; the first is rate limited for an hour, so the second has not begun when the turn asks for a retry. */
  const waiting = () =>
    lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("first");
          await ctx.reply("second");
          if (ctx.attempt === 1) throw new RetryTurn({ after: "2h" });
        }),
    });

  test("is not left open for ever when an operator discards the event that waits for its retry", async () => {
    const l = waiting();
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 3_600_000 });
    await l.ann.post({ text: "hi" });
    await l.t.advance("1m");
    expect(l.states).toEqual(["failed", "pending"]);
    const { ref } = only((await l.client.inbox.list({ state: "pending" })).rows);
    expect(await l.t.client.durability.discard(ref)).toBe(true);
    await l.t.advance("3h");
    expect(l.states.filter((state) => state === "pending")).toEqual([]);
  });

  test("is not left open for ever when the record of its event cannot be read any more", async () => {
    const l = waiting();
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 3_600_000 });
    await l.ann.post({ text: "hi" });
    await l.t.advance("1m");
    l.damage("UPDATE inbox SET payload = '{'");
    // A life that wrote the record knows it; the next one reads it.
    l.t.restart();
    await l.t.advance("3h");
    expect(l.told("durability:dead").map((event) => event.kind)).toEqual(["inbound"]);
    expect(l.states.filter((state) => state === "pending")).toEqual([]);
  });

  test("is sent when its event dies of its crashes", async () => {
    const l = lab({
      durability: { inbox: { maxAttempts: 1, minAgeMs: 0, leaseMs: 1_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          void ctx.reply("first");
          void ctx.reply("second");
          await l().sleep(10);
          l().t.runtime.kill();
          await new Promise(() => {});
        }),
    });
    l.platform.failNext({ type: "refuse", kind: "rate_limit", retryAfterMs: 60_000 });
    await l.ann.say("hi");
    expect(l.told("durability:dead").map((event) => event.kind)).toEqual(["inbound"]);
    expect(l.screen).toEqual(["first", "second"]);
  });
});

test("a send that nobody awaits and that cannot be recorded does not vanish without a word", async () => {
  const errors: string[] = [];
  const quiet = () => {};
  const l = lab({
    log: { debug: quiet, info: quiet, warn: quiet, error: (message) => void errors.push(message) },
    setup: (bot) =>
      bot.otherwise((ctx) => {
        ctx.reply("hello").catch(() => {});
      }),
  });
  l.refuseCommits((label) => label === "outbox.insert");
  await l.ann.say("hi");
  expect(l.screen).toEqual([]);
  expect(errors.length + l.told("error").length).toBeGreaterThan(0);
});

test("a crash and the loss of the alarm heal on the next contact", async () => {
  const l = busy();
  let left = 1;
  l.t.runtime.onProbe = ({ label, side }) => {
    if (label !== "turn.settle" || side !== "before" || left === 0) return false;
    left -= 1;
    l.t.runtime.loseAlarm("ChatActor", l.actor());
    return true;
  };
  await l.ann.post({ text: "1" });
  await l.t.advance("1h");
  expect(l.t.state(l.ann, "n")).toBeUndefined();
  await l.ann.say("2");
  expect(l.t.state(l.ann, "n")).toBe(2);
});
