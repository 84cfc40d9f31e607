/** A turn that runs again is answered from the record, and what if it says something else. */
import { describe, expect, test } from "vitest";
import type { DeliveryClass } from "../../src/channels/channel.ts";
import { type Context, type DurabilityOptions, RetryTurn } from "../../src/index.ts";
import { type Lab, lab } from "./lab.ts";

interface Setting {
  class?: DeliveryClass;
  outbox?: DurabilityOptions["outbox"];
  text?: number;
}

/** A bot whose run `n` does `runs[n]` and then dies, all but the last. The watchdog comes after a second. */
function runs(list: ((ctx: Context, l: Lab) => unknown)[], setting: Setting = {}): Lab {
  return lab({
    ...(setting.class === undefined ? {} : { class: setting.class }),
    ...(setting.text === undefined
      ? {}
      : { capabilities: { text: { limit: setting.text, unit: "codepoints" } } }),
    durability: { inbox: { leaseMs: 1_000 }, outbox: setting.outbox },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        await list[ctx.attempt - 1]?.(ctx, l());
        if (ctx.attempt >= list.length) return;
        await l().sleep(1);
        l().t.runtime.kill();
        await new Promise(() => {});
      }),
  });
}

const say =
  (text: string) =>
  async (ctx: Context, l: Lab): Promise<void> => {
    const said = await ctx.reply(text).catch((error: unknown) => error);
    l.notes.push(
      said instanceof Error ? said : { ...(said as object), edit: undefined, delete: undefined },
    );
  };
const told = (l: Lab) =>
  l.told("durability:ambiguous").map((event) => `${event.key} ${event.action}`);
const statuses = (l: Lab) => l.notes.map((note) => (note as { status: string }).status);

describe("a replayed reply", () => {
  test("that was sent gets the same receipt and is not said again", async () => {
    const l = runs([say("hello"), say("hello")]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["hello"]);
    expect(l.notes[0]).toMatchObject({ key: "e1:0", status: "sent", receipt: { primaryId: "m1" } });
    expect(l.notes[1]).toEqual(l.notes[0]);
    const { outboxDeduped, inboundReplayed } = await l.metrics();
    expect({ outboxDeduped, inboundReplayed }).toEqual({ outboxDeduped: 1, inboundReplayed: 1 });
  });

  test("that may have been sent is unknown again and is not said again", async () => {
    const l = runs([say("hello"), say("hello")], { outbox: { onAmbiguous: "skip" } });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(statuses(l)).toEqual(["unknown", "unknown"]);
    expect(l.screen).toEqual(["hello"]);
    expect(told(l)).toEqual(["e1:0 held"]);
  });

  test("that died throws the same error", async () => {
    const l = runs([say("the first\n\nthe second"), say("the first\n\nthe second")], { text: 10 });
    l.platform.fault = ({ n }) =>
      n === 2 ? { type: "refuse", kind: "outside_session_window" } : undefined;
    await l.ann.say("hi");
    const [first, second] = l.notes as Error[];
    expect(first).toMatchObject({
      name: "OutsideSessionWindowError",
      key: "e1:0",
      sentParts: ["m1"],
    });
    expect({ ...second, name: second?.name, message: second?.message }).toEqual({
      ...first,
      name: first?.name,
      message: first?.message,
    });
    expect(l.platform.calls).toHaveLength(2);
  });

  test("that was stopped is suppressed again for the same reason", async () => {
    const l = lab({
      durability: { inbox: { leaseMs: 1_000 } },
      setup: (bot, l) => {
        bot.before("send", (send) => send.cancel("quiet hours"));
        bot.otherwise(async (ctx) => {
          const { status, reason } = await ctx.reply("hello");
          l().notes.push(`${status}: ${reason}`);
          if (ctx.attempt === 1) throw new RetryTurn();
        });
      },
    });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["suppressed: quiet hours", "suppressed: quiet hours"]);
  });

  test("that is under way joins its delivery", async () => {
    const l = runs([say("hello"), say("hello")]);
    // Beyond the first run's budget, within that of the second, which the alarm starts 10 ms later.
    l.platform.failNext({ type: "refuse", kind: "transient", retryAfterMs: 15_005 });
    await l.ann.say("hi");
    expect(statuses(l)).toEqual(["deferred", "sent"]);
    expect(l.platform.calls).toHaveLength(2);
    expect(l.screen).toEqual(["hello"]);
  });

  test("that had not begun when the process died goes out by the replay, in its place", async () => {
    const l = runs(
      [
        (ctx) => {
          void ctx.reply("a");
          void ctx.reply("b");
        },
        async (ctx, l) => {
          await say("a")(ctx, l);
          await say("b")(ctx, l);
        },
      ],
      { class: "keyed" },
    );
    l.platform.latency = () => 500;
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
  });

  test("that the replay does not repeat is dropped if it was not begun, and listed as such", async () => {
    const l = runs(
      [
        (ctx) => {
          void ctx.reply("a");
          void ctx.reply("b");
        },
        say("a"),
      ],
      { class: "keyed" },
    );
    l.platform.latency = () => 500;
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a"]);
    expect(await l.client.outbox.get("e1:1")).toMatchObject({
      state: "suppressed",
      reason: "not_repeated",
    });
  });

  test("that another stands before now is found by its content", async () => {
    const both = async (ctx: Context, l: Lab) => {
      await say("a")(ctx, l);
      await say("b")(ctx, l);
    };
    const l = runs([both, say("b")]);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["a", "b"]);
    expect(l.notes[2]).toMatchObject({ key: "e1:1", status: "sent", receipt: { primaryId: "m2" } });
    expect((await l.metrics()).outboxDiverged).toBe(0);
  });

  test("found by its content is not thrown away by the one that now stands in its place", async () => {
    const remind =
      (...texts: string[]) =>
      async (ctx: Context) => {
        for (const text of texts) await ctx.enqueue(text, { delay: "1h" });
      };
    const l = runs([remind("a", "b"), remind("b", "c")]);
    await l.ann.say("hi");
    await l.t.advance("2h");
    expect(l.screen).toEqual(expect.arrayContaining(["b", "c"]));
  });

  test("found by its content answers one send, not two", async () => {
    const remind =
      (...texts: string[]) =>
      async (ctx: Context) => {
        for (const text of texts) await ctx.enqueue(text, { delay: "1h" });
      };
    const l = runs([remind("x", "ping"), remind("ping", "ping")]);
    await l.ann.say("hi");
    await l.t.advance("2h");
    expect(l.screen.filter((text) => text === "ping")).toHaveLength(2);
  });
});
