/** Sends that nobody awaits, and batches. */
import { describe, expect, test } from "vitest";
import { type Lab, lab, only } from "./lab.ts";

/** Rejections that nobody handles while `work` runs: each would end a Node process. */
async function unhandledIn(work: () => Promise<void>): Promise<unknown[]> {
  const seen: unknown[] = [];
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (error) => seen.push(error));
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  process.removeAllListeners("unhandledRejection");
  for (const one of others) process.on("unhandledRejection", one);
  return seen;
}

describe("a send that nobody awaits", () => {
  test("is over before its turn is, so that the next turn comes after it", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise((ctx) => {
          l().notes.push(`${ctx.text} sees ${l().screen.length}`);
          void ctx.reply(`${ctx.text} 1`);
          void ctx.reply(`${ctx.text} 2`);
        }),
    });
    l.platform.latency = () => 1_000;
    await l.receive([l.message("a", "a"), l.message("b", "b")]);
    await l.t.idle();
    expect(l.notes).toEqual(["a sees 0", "b sees 2"]);
    expect(l.screen).toEqual(["a 1", "a 2", "b 1", "b 2"]);
  });

  test("and fails does not fail its turn, nor the process", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise((ctx) => {
          ctx.state.set("done", true);
          void ctx.reply("hello");
          void ctx.enqueue({});
        }),
    });
    l.platform.failNext({ type: "refuse", kind: "permission" });
    const unhandled = await unhandledIn(() => l.ann.say("hi"));
    expect(l.told("error")).toEqual([]);
    expect(l.t.state(l.ann, "done")).toBe(true);
    expect(l.told("durability:dead")).toHaveLength(1);
    expect(unhandled).toEqual([]);
  });

  test("and is started by one that nobody awaits either is still waited for", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise((ctx) => {
          void ctx.reply("a").then(() => ctx.reply("b"));
        }),
    });
    l.platform.latency = () => 1_000;
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
  });
});

describe("sendBatch", () => {
  const batch = (texts: string[], durability: Parameters<typeof lab>[0]["durability"] = {}) =>
    lab({
      durability,
      setup: (bot, l) => {
        bot.before("send", (send) => {
          if (send.content === "veto") send.cancel("no");
        });
        bot.otherwise(async (ctx) => {
          l().notes.push(await ctx.sendBatch(texts));
        });
      },
    });
  const result = async (l: Lab) => {
    await l.ann.say("hi");
    return only(l.notes) as {
      status: string;
      keys: string[];
      receipts: unknown[];
      error?: Error;
      stage?: string;
    };
  };

  test("says all in order and returns all receipts", async () => {
    const l = batch(["a", "b"]);
    expect(await result(l)).toMatchObject({
      status: "sent",
      keys: ["e1:0", "e1:1"],
      receipts: [{ primaryId: "m1" }, { primaryId: "m2" }],
    });
    expect(l.screen).toEqual(["a", "b"]);
  });

  test("tells what was said of a batch that failed in part, and where", async () => {
    const l = batch(["a", "b", "c"]);
    l.platform.fault = ({ text }) =>
      text === "b" ? { type: "refuse", kind: "invalid_payload" } : undefined;
    const seen = await result(l);
    expect(seen).toMatchObject({
      status: "partial_failed",
      stage: "platform_send",
      error: { kind: "invalid_payload" },
    });
    expect(seen.receipts).toHaveLength(2);
    expect(l.screen).toEqual(["a", "c"]);
  });

  test("that fails as a whole is failed, and throws nothing", async () => {
    const l = batch(["a", "b"]);
    l.platform.fault = () => ({ type: "refuse", kind: "recipient_unreachable" });
    expect(await result(l)).toMatchObject({
      status: "failed",
      receipts: [],
      error: { code: "recipient_unreachable" },
    });
    expect(l.told("error")).toEqual([]);
  });

  test("that was stopped as a whole is suppressed", async () => {
    expect(await result(batch(["veto", "veto"]))).toMatchObject({
      status: "suppressed",
      receipts: [],
    });
  });

  test("with one that goes on in the background is deferred", async () => {
    const l = batch(["a", "b"]);
    l.platform.fault = ({ n }) =>
      n === 1 ? { type: "refuse", kind: "transient", retryAfterMs: 60_000 } : undefined;
    expect(await result(l)).toMatchObject({ status: "deferred" });
    expect([...l.screen].sort()).toEqual(["a", "b"]);
  });

  test("with one that may have been said is unknown", async () => {
    const l = batch(["a", "b"], { outbox: { onAmbiguous: "skip" } });
    l.platform.failNext({ type: "drop" });
    expect(await result(l)).toMatchObject({ status: "unknown", receipts: [{ primaryId: "m1" }] });
  });

  test("of something that cannot be said at all failed in the queue", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push(await ctx.sendBatch(["a", {}]));
        }),
    });
    expect(await result(l)).toMatchObject({ status: "partial_failed", stage: "queue" });
  });
});
