/** A replay that says something else than the run before it (design §6 and §17). */
import { describe, expect, test } from "vitest";
import type { DeliveryClass } from "../../src/channels/channel.ts";
import { type DurabilityOptions, RetryTurn } from "../../src/index.ts";
import type { Fault } from "../../src/testing/index.ts";
import { type Lab, lab } from "./lab.ts";

interface Setting {
  class?: DeliveryClass;
  outbox?: DurabilityOptions["outbox"];
  settleAfterMs?: number;
  /** How a run ends, all but the last: it dies, or it asks to be run again after a second. */
  by?: "death" | "retry";
}

/** A bot whose run `n` replies `texts[n]`. */
function saying(texts: string[], setting: Setting = {}): Lab {
  return lab({
    ...(setting.class === undefined ? {} : { class: setting.class }),
    ...(setting.settleAfterMs === undefined
      ? {}
      : {
          capabilities: {
            delivery: { class: setting.class ?? "blind", settleAfterMs: setting.settleAfterMs },
          },
        }),
    durability: { inbox: { leaseMs: 1_000 }, outbox: setting.outbox },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        const { key, status, reason } = await ctx.reply(texts[ctx.attempt - 1] ?? "");
        l().notes.push(reason === undefined ? `${key} ${status}` : `${key} ${status} ${reason}`);
        if (ctx.attempt >= texts.length) return;
        if (setting.by === "retry") throw new RetryTurn({ after: "1s" });
        await l().sleep(1);
        l().t.runtime.kill();
        await new Promise(() => {});
      }),
  });
}

const later: Fault = { type: "refuse", kind: "transient", retryAfterMs: 40_000 };
const diverged = async (l: Lab) => (await l.metrics()).outboxDiverged;
const told = (l: Lab) =>
  l.told("durability:ambiguous").map((event) => `${event.key} ${event.action}`);

describe("a first text that was proven not sent", () => {
  test("is replaced in its place: the user sees only the second", async () => {
    const l = saying(["a", "b"]);
    l.platform.failNext(later);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["b"]);
    expect(l.notes).toEqual(["e1:0 deferred", "e1:0 sent"]);
    expect(l.states).toEqual(["sent"]);
    expect(await diverged(l)).toBe(0);
  });

  test("is replaced again by a third", async () => {
    const l = saying(["a", "b", "c"]);
    l.platform.failNext(later, later);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["c"]);
  });
});

describe("a first text that was sent", () => {
  test("stays, and the second follows under a key of its own, counted", async () => {
    const l = saying(["a", "b"]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.notes[1]).toMatch(/^e1:0~[0-9a-f]{16} sent$/);
    expect(await diverged(l)).toBe(1);
    const key = l.notes[1]?.toString().split(" ")[0] ?? "";
    expect(await l.client.outbox.get(key)).toMatchObject({ state: "sent", content: { text: "b" } });
  });

  test("is followed by the second once, however often that is replayed", async () => {
    const l = saying(["a", "b", "b", "b"]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(new Set(l.notes.slice(1)).size).toBe(1);
  });

  test("comes back: the first is answered from the record", async () => {
    const l = saying(["a", "b", "a"]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.notes[2]).toBe("e1:0 sent");
  });

  test("and a second that was sent: a third is not said, and its handler is told so", async () => {
    const l = saying(["a", "b", "c"]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.notes[2]).toBe("e1:0 suppressed diverged");
  });

  test("and a second that was proven not sent: the third replaces the second", async () => {
    const l = saying(["a", "b", "c"]);
    l.platform.fault = ({ text }) => (text === "b" ? later : undefined);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "c"]);
  });

  test("is the answer where the bot chose to skip what differs", async () => {
    const l = saying(["a", "b"], { outbox: { onDiverged: "skip" } });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a"]);
    expect(l.notes).toEqual(["e1:0 sent", "e1:0 sent"]);
  });

  test("and another in a step are told apart by their step", async () => {
    const l = lab({
      durability: { inbox: { leaseMs: 1_000 } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply(`top ${ctx.attempt}`);
          await ctx
            .step("s", async () => {
              await ctx.reply("inside");
              if (ctx.attempt === 1) throw new RetryTurn();
            })
            .catch((error: unknown) => {
              throw error;
            });
          l().notes.push("done");
        }),
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["top 1", "inside", "top 2"]);
  });
});

describe("a first text that is in flight when the turn runs again", () => {
  /** The first call takes 20 s: the reply is deferred at 15, the turn runs again at 16. */
  const inFlight = (fault: Fault | undefined, setting: Setting = {}) => {
    const l = saying(["a", "b"], { by: "retry", ...setting });
    l.platform.latency = () => (l.platform.calls.length === 1 ? 20_000 : 0);
    l.platform.fault = ({ n }) => (n === 1 ? fault : undefined);
    return l;
  };

  test("and then is taken stays, and the second follows it", async () => {
    const l = inFlight(undefined);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.states).toEqual(["sent", "sent"]);
    expect(await diverged(l)).toBe(1);
  });

  test("and then is refused is not said again: the second goes alone, at once", async () => {
    const l = inFlight({ type: "refuse", kind: "transient" });
    const start = l.now;
    await l.ann.say("hi");
    expect(l.screen).toEqual(["b"]);
    expect(l.states).toEqual(["suppressed", "sent"]);
    expect(l.platform.ledger[0]?.at).toBe(start + 20_000);
  });

  test.each(["blind", "keyed"] as const)(
    "and then may have been taken is not repeated (%s)",
    async (kind) => {
      const l = inFlight(
        { type: "acceptThenDrop" },
        { class: kind, outbox: { onAmbiguous: "resend" } },
      );
      await l.ann.say("hi");
      expect(l.screen).toEqual(["a", "b"]);
      expect(l.states).toEqual(["unknown", "sent"]);
    },
  );

  test("and then may have been taken is announced as held, since it is not resent", async () => {
    const l = inFlight({ type: "acceptThenDrop" }, { outbox: { onAmbiguous: "resend" } });
    await l.ann.say("hi");
    expect(told(l)).toEqual(["e1:0 held"]);
  });
});

describe("a first text that may have been sent before the process died", () => {
  test("in its call is not resent, whatever the policy, once the turn says something else", async () => {
    const l = saying(["a", "b"], { outbox: { onAmbiguous: "resend" } });
    l.t.crash.after("channel.send");
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
  });

  test("and waits for its resend is not resent: the second goes", async () => {
    const l = saying(["a", "b"], {
      outbox: { onAmbiguous: "resend", backoff: { baseMs: 40_000 } },
    });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.states).toEqual(["unknown", "sent"]);
  });

  test("and is looked up: proven not sent, it is suppressed and the second goes alone", async () => {
    const l = saying(["a", "b"], { class: "provable", settleAfterMs: 40_000 });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["b"]);
    expect(l.states).toEqual(["suppressed", "sent"]);
  });

  test("and is looked up: found, it stays and the second follows", async () => {
    const l = saying(["a", "b"], { class: "provable", settleAfterMs: 40_000 });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.states).toEqual(["sent", "sent"]);
  });
});
