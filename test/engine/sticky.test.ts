/** Once a message may have been said, only a proof about it says otherwise. */
import { describe, expect, test } from "vitest";
import type { DeliveryClass } from "../../src/channels/channel.ts";
import type { DurabilityOptions } from "../../src/index.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

const make = (kind: DeliveryClass, outbox: DurabilityOptions["outbox"] = {}) =>
  lab({ class: kind, durability: { outbox }, setup: echoing });

async function listed(l: Lab) {
  return {
    unknown: (await l.client.outbox.list({ state: "unknown" })).rows.length,
    dead: (await l.client.outbox.list({ state: "dead" })).rows.length,
    told: l.told("durability:dead").length,
  };
}

describe("a message that may have been said, and is then", () => {
  test.each(["keyed", "blind"] as const)(
    "refused for good, is unknown and not dead (%s)",
    async (kind) => {
      const l = make(kind);
      l.platform.failNext({ type: "acceptThenDrop" }, { type: "refuse", kind: "permission" });
      await l.ann.say("hi");
      expect(l.screen).toEqual(["ok hi"]);
      expect(await listed(l)).toEqual({ unknown: 1, dead: 0, told: 0 });
      expect(only(l.sends())).toMatchObject({ error_kind: "permission" });
    },
  );

  test("refused until the retries are spent, is unknown and not dead", async () => {
    const l = make("keyed", { retries: 3 });
    l.platform.fault = (call) =>
      call.n === 1 ? { type: "drop" } : { type: "refuse", kind: "transient" };
    await l.ann.say("hi");
    expect(l.platform.calls).toHaveLength(4);
    expect(await listed(l)).toEqual({ unknown: 1, dead: 0, told: 0 });
  });

  test("older than it may be, is unknown and not dead", async () => {
    const l = make("keyed", { maxAgeMs: 60_000, retries: 1_000 });
    l.platform.fault = (call) =>
      call.n === 1 ? { type: "drop" } : { type: "refuse", kind: "transient" };
    await l.ann.say("hi");
    expect(await listed(l)).toEqual({ unknown: 1, dead: 0, told: 0 });
  });

  test("past its notAfter, is unknown and not dead", async () => {
    const l = make("keyed");
    l.platform.failNext(
      { type: "drop" },
      { type: "refuse", kind: "transient", retryAfterMs: 60_000 },
    );
    await l.client.enqueue("code", { notAfter: l.now + 30_000 });
    await l.t.idle();
    expect(await listed(l)).toEqual({ unknown: 1, dead: 0, told: 0 });
  });

  test("refused its formatting, is not said again in plain text", async () => {
    const l = make("keyed");
    l.platform.failNext(
      { type: "acceptThenDrop" },
      { type: "refuse", kind: "invalid_payload", fallback: "plain" },
    );
    await l.ann.say("hi");
    expect(l.screen).toEqual(["ok hi"]);
    expect(l.platform.calls).toHaveLength(2);
    expect(await listed(l)).toMatchObject({ unknown: 1 });
  });

  test("told that the chat has moved, is not said again there", async () => {
    const l = make("keyed");
    l.platform.failNext({ type: "acceptThenDrop" }, { type: "moved", to: "elsewhere" });
    await l.ann.say("hi");
    expect(l.platform.ledger.map((entry) => entry.chat)).toEqual(["ann"]);
    expect(await listed(l)).toMatchObject({ unknown: 1 });
  });

  test("proven not sent, is as if never tried: a refusal then is dead", async () => {
    const l = make("provable");
    l.platform.failNext({ type: "drop" }, { type: "refuse", kind: "permission" });
    await l.ann.say("hi");
    expect(await listed(l)).toEqual({ unknown: 0, dead: 1, told: 1 });
  });
});

describe("an unknown message", () => {
  test("releases the messages behind it and is answered as unknown, not as an error", async () => {
    const l = lab({
      durability: { outbox: { onAmbiguous: "skip" } },
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push((await ctx.reply("first")).status, (await ctx.reply("second")).status);
        }),
    });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    expect(l.notes).toEqual(["unknown", "sent"]);
    expect(l.screen).toEqual(["second"]);
  });

  test("can be sent again by an operator, who takes the risk", async () => {
    const l = make("blind", { onAmbiguous: "skip" });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(await l.client.outbox.retry("e1:0")).toBe(true);
    await l.t.idle();
    expect(l.screen).toEqual(["ok hi", "ok hi"]);
    expect(l.states).toEqual(["sent"]);
  });

  test("of a keyed channel can be sent again within the window without being seen twice", async () => {
    const l = make("keyed", { retries: 0 });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(l.states).toEqual(["unknown"]);
    await l.client.outbox.retry("e1:0");
    await l.t.idle();
    expect(l.screen).toEqual(["ok hi"]);
    expect(l.states).toEqual(["sent"]);
    expect(l.told("durability:ambiguous")).toHaveLength(1);
  });

  test("past the window goes under a new marker when an operator resends it, and that is announced", async () => {
    const l = lab({
      class: "keyed",
      capabilities: { delivery: { class: "keyed", markerWindowMs: 600_000 } },
      durability: { outbox: { retries: 0 } },
      setup: echoing,
    });
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    await l.t.advance("10m");
    await l.client.outbox.retry("e1:0");
    await l.t.idle();
    expect(new Set(l.platform.calls.map((call) => call.marker)).size).toBe(2);
    expect(
      l.told("durability:ambiguous").map(({ cause, action }) => `${cause}: ${action}`),
    ).toEqual(["no_answer: held", "operator: resent"]);
  });

  test("that an operator discards is dead, is not announced as news, and stays so", async () => {
    const l = make("blind", { onAmbiguous: "skip" });
    l.platform.failNext({ type: "drop" });
    await l.ann.say("hi");
    expect(await l.client.outbox.discard("e1:0")).toBe(true);
    await l.t.restart();
    await l.t.advance("1h");
    expect(await listed(l)).toEqual({ unknown: 0, dead: 1, told: 0 });
    expect(l.screen).toEqual([]);
  });

  test("discarded and then retried too late ends, instead of making the chat's outbox spin for ever", async () => {
    const l = make("blind", { onAmbiguous: "skip" });
    l.platform.failNext({ type: "drop" });
    await l.client.enqueue("code", { notAfter: l.now + 60_000, idempotencyKey: "k" });
    await l.t.idle();
    await l.client.outbox.discard("k");
    await l.t.advance("2m");
    await l.client.outbox.retry("k");
    await l.t.advance("1m");
    expect(["unknown", "dead"]).toContain(only(l.sends()).state);
    const alarms = l.t.runtime.alarmRuns;
    await l.t.advance("1h");
    expect(l.t.runtime.alarmRuns - alarms).toBeLessThan(5);
  });
});

test("an operator's retry of a reminder that died lets it try again, however old its date is", async () => {
  const l = lab({ setup: () => {} });
  await l.client.enqueue("reminder", { delay: "1h", idempotencyKey: "r" });
  l.platform.fault = () => ({ type: "refuse", kind: "recipient_unreachable" });
  await l.t.advance("2h");
  expect(l.states).toEqual(["dead"]);
  l.platform.fault = () => undefined;
  await l.t.advance("48h");
  expect(await l.client.outbox.retry("r")).toBe(true);
  await l.t.idle();
  expect(l.screen).toEqual(["reminder"]);
});
