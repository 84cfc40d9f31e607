/** Answers that are held until a turn got somewhere. */
import { describe, expect, test } from "vitest";
import { Bot, ConfigError, telegram } from "../../src/index.ts";
import type { ReceiveAnswer } from "../../src/objects/Admission.ts";
import type { AckPolicy } from "../../src/turns/busyOptions.ts";
import { type Lab, lab } from "./lab.ts";

const DEADLINE_MS = 10_000;

function held(ack: AckPolicy, setup: (l: () => Lab, bot: Bot) => void): Lab {
  return lab({
    busy: { ack },
    capabilities: { deadlineMs: DEADLINE_MS },
    setup: (bot, l) => setup(l, bot),
  });
}

/** When the platform is answered, and with what. */
function deliver(l: Lab, id = "a") {
  const answered: { at: number; answer: ReceiveAnswer }[] = [];
  const begun = l.now;
  l.receive([l.message(id, id)]).then((answer) => answered.push({ at: l.now - begun, answer }));
  return answered;
}

describe("ack", () => {
  test("after_agent_dispatch answers once the handler has begun", async () => {
    const l = held("after_agent_dispatch", (l, bot) => bot.otherwise(() => l().sleep(5_000)));
    const first = deliver(l, "a");
    const second = deliver(l, "b");
    await l.t.advance(10);
    expect(first).toMatchObject([{ answer: { ok: true } }]);
    expect(second).toEqual([]);
    await l.t.advance(5_000);
    expect(second).toMatchObject([{ answer: { ok: true } }]);
    await l.t.idle();
  });

  test("after_durable_send answers once a send is recorded, delivered or not", async () => {
    const l = held("after_durable_send", (l, bot) =>
      bot.otherwise(async (ctx) => {
        await l().sleep(2_000);
        await ctx.reply("hello");
      }),
    );
    l.platform.latency = () => 3_000;
    const answered = deliver(l);
    await l.t.advance(1_900);
    expect(answered).toEqual([]);
    await l.t.advance(200);
    expect(answered).toHaveLength(1);
    expect(l.screen).toEqual([]);
    await l.t.idle();
    expect(l.screen).toEqual(["hello"]);
  });

  test("a turn that says nothing answers at its end", async () => {
    const l = held("after_durable_send", (l, bot) => bot.otherwise(() => l().sleep(1_000)));
    const answered = deliver(l);
    await l.t.advance(1_100);
    expect(answered).toMatchObject([{ answer: { ok: true } }]);
  });

  test("manual answers at ack(), and ack() twice or late is harmless", async () => {
    const l = held("manual", (l, bot) =>
      bot.otherwise(async (ctx) => {
        await l().sleep(1_000);
        ctx.ack();
        ctx.ack();
        await l().sleep(1_000);
        ctx.ack();
      }),
    );
    const answered = deliver(l);
    await l.t.advance(1_100);
    expect(answered).toHaveLength(1);
    await l.t.idle();
  });

  test("past the platform's deadline the answer is success: the event is journaled", async () => {
    const l = held("manual", (l, bot) =>
      bot.otherwise(async (ctx) => {
        await l().sleep(60_000);
        await ctx.reply("at last");
      }),
    );
    const answered = deliver(l);
    await l.t.advance(DEADLINE_MS - 1_500);
    expect(answered).toEqual([]);
    await l.t.advance(1_500);
    expect(answered).toMatchObject([{ answer: { ok: true } }]);
    await l.t.idle();
    expect(l.screen).toEqual(["at last"]);
  });

  test("nack answers failure; the redelivery joins the record and hastens its next run", async () => {
    const l = held("manual", (_l, bot) =>
      bot.otherwise(async (ctx) => {
        if (ctx.attempt === 1) return ctx.nack(new Error("not now"), { after: "30s" });
        ctx.ack();
        return ctx.reply(`done at attempt ${ctx.attempt}`);
      }),
    );
    const first = deliver(l);
    await l.t.advance(100);
    expect(first).toMatchObject([{ answer: { ok: false, reason: "nacked" } }]);
    const again = deliver(l);
    await l.t.advance(100);
    expect(again).toMatchObject([{ answer: { ok: true, results: ["duplicate"] } }]);
    expect(l.screen).toEqual(["done at attempt 2"]);
  });

  test("nack under the default policy is a local retry only", async () => {
    const l = held("after_receive_record", (_l, bot) =>
      bot.otherwise(async (ctx) => {
        if (ctx.attempt === 1) return ctx.nack();
        return ctx.reply("second");
      }),
    );
    expect(await l.receive([l.message("a", "a")])).toMatchObject({ ok: true });
    await l.t.idle();
    expect(l.screen).toEqual(["second"]);
  });

  test("two deliveries of one event wait together and run it once", async () => {
    const l = held("after_durable_send", (l, bot) =>
      bot.otherwise(async (ctx) => {
        await l().sleep(1_000);
        await ctx.reply("once");
      }),
    );
    const [one, two] = [deliver(l), deliver(l)];
    await l.t.idle();
    expect([one.length, two.length]).toEqual([1, 1]);
    expect(l.screen).toEqual(["once"]);
  });

  test("a message that joins another's turn is answered when that turn begins", async () => {
    const l = held("manual", (l, bot) => bot.otherwise(() => l().sleep(60_000)));
    const answered: number[] = [];
    for (const id of ["a", "b"]) {
      const item = l.message(id, id, { groupId: "g" });
      void l.receive([item]).then(() => answered.push(l.now));
    }
    await l.t.advance(1_500);
    expect(answered).toHaveLength(1);
    await l.t.advance(DEADLINE_MS);
    expect(answered).toHaveLength(2);
    await l.t.idle();
  });

  test("holding acks with burst or interrupt are refused where a platform delivers one by one", () => {
    for (const concurrency of ["burst", "interrupt"] as const) {
      const make = () => new Bot({ id: "x", channels: [telegram()], ack: "manual", concurrency });
      expect(make).toThrow(ConfigError);
      expect(make).toThrow(/telegram delivers a chat's next message only after/);
    }
  });

  test("an event that an operator gives up answers whoever waits", async () => {
    const l = held("manual", (l, bot) => bot.otherwise(() => l().sleep(5_000)));
    deliver(l, "a");
    const waiting = deliver(l, "b");
    await l.t.advance(100);
    const asked = JSON.stringify({ id: "b" });
    const answer = await l.t.runtime.call("ChatActor", l.actor(), "discardEvent", asked);
    expect(JSON.parse(answer)).toEqual({ value: true });
    await l.t.advance(100);
    expect(waiting).toMatchObject([{ answer: { ok: true } }]);
    await l.t.idle();
  });
});
