/** `failOpen`: a journal that refuses writes, and a bot that would rather answer than be safe. */
import { describe, expect, test } from "vitest";
import { type Lab, lab } from "./lab.ts";

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
});
