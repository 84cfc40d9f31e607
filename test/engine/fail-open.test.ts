/** `failOpen`: a journal that refuses writes, and a bot that would rather answer than be safe. */
import { describe, expect, test } from "vitest";
import { echoing, type Lab, lab } from "./lab.ts";

function full(failOpen: boolean): Lab {
  const l = lab({
    durability: { failOpen },
    setup: (bot, l) => {
      bot.otherwise(async (ctx) => {
        const price = await ctx.step("price", () => 7);
        ctx.state.set("last", ctx.text);
        const sent = await ctx.reply(`${ctx.text} costs ${price}`);
        l().notes.push(sent.status);
        await ctx
          .reply("must", { durability: "required" })
          .catch((error: { code: string }) => l().notes.push(error.code));
      });
    },
  });
  l.refuseCommits(() => true);
  return l;
}

describe("a journal that refuses writes", () => {
  test("by default nothing is admitted, and the platform is asked to come back", async () => {
    const l = full(false);
    await expect(l.receive([l.message("a", "pizza")])).rejects.toThrow("disk is full");
    expect(l.screen).toEqual([]);
  });

  test("with failOpen the message is answered once, without a record, and counted", async () => {
    const l = full(true);
    expect(await l.receive([l.message("a", "pizza")])).toEqual({ ok: true, results: ["accepted"] });
    expect(await l.receive([l.message("a", "pizza")])).toEqual({
      ok: true,
      results: ["duplicate"],
    });
    await l.t.idle();
    expect(l.screen).toEqual(["pizza costs 7"]);
    expect(l.notes).toEqual(["sent", "payload_too_large"]);
    const metrics = await l.metrics();
    expect([metrics.inboundUnjournaled, metrics.outboxBypassed]).toEqual([1, 1]);
    expect(l.events()).toEqual([]);
  });

  test("turns stay one at a time, and a journal that has room again is used", async () => {
    const l = full(true);
    l.platform.latency = () => 1_000;
    await l.receive([l.message("a", "one")]);
    await l.receive([l.message("b", "two")]);
    await l.t.advance(100);
    expect(l.platform.calls.map((call) => call.text)).toEqual(["one costs 7"]);
    l.refuseCommits(() => false);
    await l.receive([l.message("c", "three")]);
    await l.t.idle();
    expect(l.screen).toEqual(["one costs 7", "two costs 7", "three costs 7", "must"]);
    expect(await l.client.state.get("last")).toBe("three");
  });

  test("what admission would not answer is not answered either: echoes, other bots, what is on record", async () => {
    const l = full(true);
    l.refuseCommits(() => false);
    await l.receive([l.message("a", "pizza")]);
    await l.t.idle();
    const before = l.screen.length;
    l.refuseCommits(() => true);
    const other = { sender: { id: "r2d2", isBot: true } };
    expect(await l.receive([l.message("a", "pizza")])).toMatchObject({ results: ["duplicate"] });
    expect(await l.receive([l.message("b", "beep", other)])).toMatchObject({
      results: ["ignored"],
    });
    const own = l.message("c", "pizza costs 7", { selfAuthored: true });
    expect(await l.receive([own])).toMatchObject({ ok: true });
    await l.t.idle();
    expect(l.screen).toHaveLength(before);
  });

  test("what ran without a record does not run again once there is room", async () => {
    const l = full(true);
    await l.receive([l.message("a", "pizza")]);
    await l.t.idle();
    l.refuseCommits(() => false);
    expect(await l.receive([l.message("a", "pizza")])).toMatchObject({ results: ["duplicate"] });
    await l.t.idle();
    expect(l.screen).toEqual(["pizza costs 7"]);
  });

  test("bots that are listened to are refused: a loop is counted by its records", async () => {
    const l = lab({ durability: { failOpen: true }, busy: { allowBots: true }, setup: echoing });
    l.refuseCommits(() => true);
    const beep = l.message("b", "beep", { sender: { id: "r2d2", isBot: true } });
    await expect(l.receive([beep])).rejects.toThrow("disk is full");
  });

  test("as many may wait as with a journal, and the rest is refused visibly", async () => {
    const l = lab({
      durability: { failOpen: true, inbox: { maxPending: 3 } },
      setup: (bot, l) => bot.otherwise(() => l().sleep(60_000)),
    });
    l.refuseCommits(() => true);
    const answers = [];
    for (let n = 0; n < 6; n += 1) answers.push(await l.receive([l.message(`m${n}`, "x")]));
    // One of them runs.
    expect(answers.map((one) => one.ok)).toEqual([true, true, true, true, false, false]);
    expect(answers[5]).toMatchObject({ reason: "full" });
    await l.t.idle();
  });

  test("a fault of the code is no full disk: nothing runs", async () => {
    const l = full(true);
    l.t.runtime.onCommit = () => {
      throw new TypeError("undefined is not a function");
    };
    await expect(l.receive([l.message("a", "pizza")])).rejects.toThrow(TypeError);
    expect(l.screen).toEqual([]);
  });
});
