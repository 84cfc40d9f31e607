/** What the platform says of a message after it took it, and our own messages come back. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/channels/content.ts";
import type { DeliveryStatus } from "../../src/channels/events.ts";
import type { Bot } from "../../src/index.ts";
import { type Code, echoing, type Lab, lab, only } from "./lab.ts";

const statuses = { statuses: true as const };
const markerOf = (l: Lab, n = 0) => l.platform.calls[n]?.marker ?? "";
const receipt = async (l: Lab, key = "e1:0") => (await l.client.outbox.get(key))?.receipt;
const FAILED = {
  status: "failed",
  error: { kind: "recipient_unreachable", message: "number is not in use" },
} as const satisfies Omit<DeliveryStatus, "at" | "chat">;

describe("a delivery status", () => {
  test("by marker or by the platform's id updates the receipt, and only forwards", async () => {
    const l = lab({ capabilities: statuses, setup: echoing });
    await l.ann.say("hi");
    const seen: unknown[] = [];
    const steps = [
      { platformId: "m1", status: "read" },
      { marker: markerOf(l), status: "delivered" },
      { platformId: "m1", status: "sent" },
    ] as const;
    await l.status({ marker: markerOf(l), status: "delivered" });
    seen.push((await receipt(l))?.status);
    for (const step of steps) {
      await l.status(step);
      seen.push((await receipt(l))?.status);
    }
    expect(seen).toEqual(["delivered", "read", "read", "read"]);
    expect(l.events()).toHaveLength(1);
  });

  test("reaches the bot's listener with the key of its send", async () => {
    const l = lab({
      setup: (bot, l) => {
        echoing(bot);
        bot.on("status", (event) => l().notes.push(`${event.key} ${event.status}`));
      },
    });
    await l.ann.say("hi");
    await l.status({ marker: markerOf(l), status: "delivered" });
    await l.t.idle();
    expect(l.notes).toEqual(["e1:0 delivered"]);
  });

  test("that names nothing of ours is taken and forgotten", async () => {
    const l = lab({ capabilities: statuses, setup: echoing });
    await l.ann.say("hi");
    await l.status({ platformId: "other", status: "failed" });
    await l.status({ marker: "1z1z12345678", status: "read" });
    await l.status({ marker: "not a marker", status: "read" });
    expect(await receipt(l)).toMatchObject({ status: "sent" });
    expect(l.told("durability:dead")).toEqual([]);
  });
});

describe("a late failure", () => {
  test("makes a sent message dead, with its kind, announced and listed", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    await l.status({ marker: markerOf(l), ...FAILED });
    await l.t.idle();
    expect(l.told("durability:dead")).toEqual([
      {
        kind: "outbound",
        id: "e1:0",
        chatId: "mock/mock/ann",
        error: "number is not in use",
        errorKind: "recipient_unreachable",
      },
    ]);
    expect(only((await l.client.outbox.list({ state: "dead" })).rows)).toMatchObject({
      key: "e1:0",
    });
    expect((await l.metrics()).outboxDead).toBe(1);
  });

  test("told twice is announced once", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    for (let n = 0; n < 2; n += 1) await l.status({ marker: markerOf(l), ...FAILED });
    await l.t.idle();
    expect(l.told("durability:dead")).toHaveLength(1);
  });

  test("is announced although the process dies before its listener ran, without new traffic", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    // The watchdog of the turn is over: nothing wakes the chat but what the status arms.
    await l.t.advance("10m");
    l.t.crash.before("listener");
    await l.status({ marker: markerOf(l), ...FAILED }).catch(() => {});
    await l.t.advance("10m");
    expect(l.told("durability:dead")).toHaveLength(1);
  });

  test("costs no alarm after alarm where nobody listens", async () => {
    const l = lab({ setup: echoing });
    l.deploy({ setup: echoing });
    await l.ann.say("hi");
    await l.status({ marker: markerOf(l), ...FAILED });
    await l.client.enqueue("poke");
    await l.t.advance("5m");
    const alarms = l.t.runtime.alarmRuns;
    await l.t.advance("1h");
    expect(l.t.runtime.alarmRuns - alarms).toBeLessThan(5);
  });

  test("can be retried by an operator, and is then really sent again", async () => {
    const l = lab({ class: "keyed", setup: echoing });
    await l.ann.say("hi");
    await l.status({ marker: markerOf(l), ...FAILED });
    await l.t.idle();
    expect(await l.client.outbox.retry("e1:0")).toBe(true);
    await l.t.idle();
    expect(l.states).toEqual(["sent"]);
    // The platform has done the first marker: only a new one makes it say the message again.
    expect(l.platform.ledger).toHaveLength(2);
  });
});

describe("a status that comes before the platform's own answer", () => {
  const early = (fault?: { type: "acceptThenDrop" }) => {
    const l = lab({
      capabilities: statuses,
      durability: { outbox: { onAmbiguous: "skip" } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          const { status, receipt: got } = await ctx.reply("hello");
          l().notes.push(`${status} ${got?.primaryId ?? ""} ${got?.status ?? ""}`.trim());
        }),
    });
    l.platform.latency = () => 1_000;
    if (fault !== undefined) l.platform.failNext(fault);
    return l;
  };

  test("by the platform's id is kept for it", async () => {
    const l = early();
    await l.ann.post({ text: "hi" });
    await l.status({ platformId: "m1", status: "delivered" });
    await l.t.idle();
    expect(await receipt(l)).toMatchObject({ primaryId: "m1", status: "delivered" });
  });

  test("by marker settles the send at once", async () => {
    const l = early({ type: "acceptThenDrop" });
    await l.ann.post({ text: "hi" });
    await l.status({ marker: markerOf(l), platformId: "m1", status: "delivered" });
    await l.t.idle();
    expect(l.notes).toEqual(["sent m1 delivered"]);
    expect(l.told("durability:ambiguous")).toEqual([]);
    expect(l.platform.calls).toHaveLength(1);
  });

  test("by marker alone does not cost the message its id: it can still be edited", async () => {
    const l = early();
    await l.ann.post({ text: "hi" });
    await l.status({ marker: markerOf(l), status: "delivered" });
    await l.t.idle();
    expect(await receipt(l)).toMatchObject({ primaryId: "m1", status: "delivered" });
  });

  test("and says that it failed is not forgotten: the message is dead", async () => {
    const l = early();
    await l.ann.post({ text: "hi" });
    await l.status({ marker: markerOf(l), ...FAILED });
    await l.t.idle();
    expect(l.states).toEqual(["dead"]);
    expect(l.told("durability:dead")).toHaveLength(1);
  });
});

describe("an unknown message", () => {
  const unknown = async (setup: Code["setup"] = echoing) => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(l.states).toEqual(["unknown"]);
    return l;
  };

  test("is sent once a status proves it", async () => {
    const l = await unknown();
    await l.status({ marker: markerOf(l), platformId: "m1", status: "delivered" });
    expect(l.states).toEqual(["sent"]);
    expect(await receipt(l)).toMatchObject({ primaryId: "m1", status: "delivered" });
    expect((await l.client.outbox.list({ state: "unknown" })).rows).toEqual([]);
  });

  test("is dead once a status says that it failed", async () => {
    const l = await unknown();
    await l.status({ marker: markerOf(l), ...FAILED });
    await l.t.idle();
    expect(l.states).toEqual(["dead"]);
    expect(l.told("durability:dead")).toHaveLength(1);
  });

  test('that a status proves sent is told to after("send"), like any other', async () => {
    const l = await unknown((bot, get) => {
      echoing(bot);
      bot.after("send", (event) => get().notes.push(event.key));
    });
    await l.status({ marker: markerOf(l), platformId: "m1", status: "delivered" });
    await l.t.advance("10m");
    expect(l.notes).toEqual(["e1:0"]);
  });

  test("waiting for its lookup lets the parts behind it go once a status proves it, even after its turn", async () => {
    const l = lab({
      class: "provable",
      capabilities: {
        text: { limit: 10, unit: "codepoints" },
        delivery: { class: "provable", settleAfterMs: 3_600_000 },
      },
      setup: (bot) => bot.otherwise((ctx) => ctx.reply("the first\n\nthe second")),
    });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.post({ text: "hi" });
    await l.t.advance("1m");
    await l.status({ marker: markerOf(l), platformId: "m1", status: "delivered" });
    await l.t.advance("1m");
    expect(l.screen.map((text) => text.trim())).toEqual(["the first", "the second"]);
  });
});

describe("the bot's own message that comes back", () => {
  test("is no message to answer, and proves an unknown send", async () => {
    const l = lab({ capabilities: statuses, setup: echoing });
    await l.ann.say("hi");
    const answer = await l.receive([
      l.message("echo-1", "ok hi", { selfAuthored: true, messageId: "m1" }),
    ]);
    await l.t.idle();
    expect(answer).toEqual({ ok: true, results: ["echo"] });
    expect(l.screen).toEqual(["ok hi"]);
    expect(l.events()).toHaveLength(1);
  });

  test("with neither id nor marker it is known by its text, while the send is in doubt", async () => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
    const textOf = (request: JsonObject) => String(request.text);
    l.deploy({ outbound: () => ({ textOf }), setup: echoing });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    await l.t.idle();
    expect(l.states).toEqual(["unknown"]);
    const echo = { selfAuthored: true, sender: { id: "me" } };
    const other = await l.receive([l.message("e1", "something else", echo)]);
    expect(other).toEqual({ ok: true, results: ["ignored"] });
    expect(l.states).toEqual(["unknown"]);
    const answer = await l.receive([l.message("e2", "ok  hi\n", { ...echo, messageId: "77" })]);
    expect(answer).toEqual({ ok: true, results: ["echo"] });
    expect(l.states).toEqual(["sent"]);
    // Settled: the same words again are somebody else's.
    await l.receive([l.message("e3", "ok hi", { sender: { id: "bob" } })]);
    await l.t.idle();
    expect(l.screen.at(-1)).toBe("ok ok hi");
  });

  test("by text the send in flight is settled, and no older one that said the same", async () => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
    const textOf = (request: JsonObject) => String(request.text);
    l.deploy({ outbound: () => ({ textOf }), setup: echoing });
    const echo = { selfAuthored: true, sender: { id: "me" } };
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    await l.t.idle();
    l.platform.latency = () => 5_000;
    await l.receive([l.message("b", "hi")]);
    await l.t.advance(1_000);
    await l.receive([l.message("e1", "ok hi", { ...echo, messageId: "77" })]);
    expect(l.states).toEqual(["unknown", "sent"]);
    await l.t.idle();
  });

  test.each(["blind", "provable"] as const)(
    "by text the newest doubt is settled, and none older than ten minutes (%s)",
    async (kind) => {
      const outbox = { onAmbiguous: "skip" } as const;
      const l = lab({ class: kind, durability: { outbox }, setup: echoing });
      const textOf = (request: JsonObject) => String(request.text);
      const reconcile = () => Promise.resolve({ result: "unresolved" } as const);
      l.deploy({ outbound: () => ({ textOf, reconcile }), durability: { outbox }, setup: echoing });
      const echo = (id: string) =>
        l.message(id, "ok hi", { selfAuthored: true, sender: { id: "me" }, messageId: id });
      for (const id of ["a", "b", "c"]) {
        l.platform.failNext({ type: "drop" });
        await l.receive([l.message(id, "hi")]);
        await l.t.advance("4m");
      }
      expect(l.states).toEqual(["unknown", "unknown", "unknown"]);
      await l.receive([echo("e1")]);
      expect(l.states).toEqual(["unknown", "unknown", "sent"]);
      await l.t.advance("1m");
      await l.receive([echo("e2")]);
      expect(l.states).toEqual(["unknown", "sent", "sent"]);
      const answer = await l.receive([echo("e3")]);
      expect(answer).toEqual({ ok: true, results: ["ignored"] });
      expect(l.states, "a message that was lost is not taken for sent").toEqual([
        "unknown",
        "sent",
        "sent",
      ]);
    },
  );

  test("by text a reminder is settled whose process died, however long ago it was written", async () => {
    const setup = (bot: Bot) => {
      bot.otherwise(async (ctx) => {
        await ctx.enqueue("wake up", { delay: "1h" });
      });
    };
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup });
    const textOf = (request: JsonObject) => String(request.text);
    l.deploy({ outbound: () => ({ textOf }), setup });
    await l.receive([l.message("a", "remind me")]);
    l.t.crash.after("outbox.markSending");
    await l.t.advance("1h");
    expect(l.states).toEqual(["sending"]);
    const echo = { selfAuthored: true, sender: { id: "me" }, messageId: "77" };
    await l.receive([l.message("e1", "wake up", echo)]);
    expect(l.states).toEqual(["sent"]);
  });

  test("a damaged record does not stop what arrives", async () => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
    const textOf = (request: JsonObject) => String(request.text);
    l.deploy({ outbound: () => ({ textOf }), setup: echoing });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    await l.t.idle();
    const echo = { selfAuthored: true, sender: { id: "me" } };
    for (const [n, broken] of ["'{broken'", "'null'", "'7', extra = '{broken'"].entries()) {
      l.damage(`UPDATE outbox SET request = ${broken} WHERE pos = 0`);
      const items = [l.message(`e${n}`, "whatever", echo), l.message(`b${n}`, "hello")];
      const answer = await l.receive(items);
      expect(answer, broken).toEqual({ ok: true, results: ["ignored", "accepted"] });
      await l.t.idle();
    }
    expect(l.screen).toEqual(Array(3).fill("ok hello"));
  });

  test("a person who says the same words is answered, also while the send is in doubt", async () => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
    const textOf = (request: JsonObject) => String(request.text);
    l.deploy({ outbound: () => ({ textOf }), setup: echoing });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    await l.receive([l.message("b", "ok hi")]);
    await l.t.idle();
    expect(l.states).toEqual(["unknown", "sent"]);
  });
});
