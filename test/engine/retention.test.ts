/** What is kept, for how long, and that an emptied chat starts afresh. */
import { describe, expect, test } from "vitest";
import { echoing, type Lab, lab } from "./lab.ts";

const tables = (l: Lab) =>
  l.t.runtime.storage("ChatActor", l.actor()).all("SELECT name FROM sqlite_master", []).length;

describe("a finished message", () => {
  test("is kept for its retention and then goes with its sends, steps and buttons", async () => {
    const l = lab({
      durability: { retention: "3d" },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          ctx.state.set("kept", true);
          await ctx.step("s", () => 1);
          await ctx.reply({
            text: "hello",
            buttons: [{ text: "x", action: "x", data: "y".repeat(100) }],
          });
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("71h");
    expect([l.events().length, l.sends().length]).toEqual([1, 1]);
    await l.t.advance("31h");
    expect([l.events().length, l.sends().length]).toEqual([0, 0]);
    expect(l.sql("SELECT 1 FROM steps UNION ALL SELECT 1 FROM buttons")).toEqual([]);
    expect(l.t.state(l.ann, "kept")).toBe(true);
  });

  test("is kept for as long as the platform may deliver it again, and a day, whatever the option says", async () => {
    const l = lab({
      durability: { retention: "1h" },
      capabilities: { redelivery: { behaviour: "for three days", windowMs: 3 * 86_400_000 } },
      setup: echoing,
    });
    await l.receive([l.message("m1", "hi")]);
    await l.t.idle();
    await l.t.advance("72h");
    expect(await l.receive([l.message("m1", "hi")])).toEqual({ ok: true, results: ["duplicate"] });
    await l.t.advance("48h");
    expect(l.events()).toEqual([]);
  });

  test("goes although the process is restarted every day, and nobody writes", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    for (let day = 0; day < 9; day += 1) {
      l.t.runtime.kill();
      await l.t.advance("1d");
    }
    expect(tables(l)).toBe(0);
  });

  test("that is one of a thousand goes in slices, all of them", async () => {
    const l = lab({ setup: (bot) => bot.otherwise((ctx) => ctx.state.set("last", ctx.text)) });
    for (let n = 0; n < 1_000; n += 100) {
      await l.receive(Array.from({ length: 100 }, (_u, at) => l.message(`m${n + at}`, "x")));
      await l.t.idle();
    }
    expect(l.events()).toHaveLength(1_000);
    await l.t.advance("8d");
    expect(l.events()).toEqual([]);
    expect(l.t.runtime.alarmRuns).toBeLessThan(100);
  });
});

describe("trouble", () => {
  test("is kept for thirty days: dead sends, unknown sends, dead events", async () => {
    const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
    l.platform.failNext({ type: "refuse", kind: "permission" }, { type: "drop" });
    await l.ann.say("dead");
    await l.ann.say("unknown");
    await l.receive([{ type: "bad", id: "bad", chat: l.ann.chat, error: "broken", sample: "" }]);
    await l.ann.say("fine");
    await l.t.idle();
    await l.t.advance("29d");
    expect(l.states).toEqual(["dead", "unknown"]);
    expect(l.events().map((row) => row.id)).toEqual(["e1", "e2", "bad"]);
    expect(await l.client.outbox.retry("e1:0")).toBe(true);
    await l.t.idle();
    expect(l.screen).toContain("ok dead");
    await l.t.advance("40d");
    expect(tables(l)).toBe(0);
  });
});

describe("what is not finished", () => {
  test("is never purged: a reminder of next quarter", async () => {
    const l = lab({ durability: { retention: "1d" }, setup: echoing });
    await l.client.enqueue("reminder", { delay: "90d" });
    await l.t.advance("91d");
    expect(l.screen).toEqual(["reminder"]);
  });

  test("is never purged: a message that waits for its explicit retry", async () => {
    const l = lab({
      durability: { retention: "1d" },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          if (ctx.attempt === 1) return ctx.nack(undefined, { after: "30d" });
          await ctx.reply("a month later");
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("31d");
    expect(l.screen).toEqual(["a month later"]);
  });

  test("keeps its sends: they are what answers its replay", async () => {
    const l = lab({
      durability: { retention: "1d" },
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("hello");
          if (ctx.attempt === 1) ctx.nack(undefined, { after: "30d" });
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("31d");
    expect(l.screen).toEqual(["hello"]);
  });
});

describe("a chat with nothing left", () => {
  test("deletes its storage and its alarm, and costs nothing from then on", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    await l.t.advance("9d");
    expect(tables(l)).toBe(0);
    const alarms = l.t.runtime.alarmRuns;
    await l.t.advance("90d");
    expect(l.t.runtime.alarmRuns).toBe(alarms);
    expect(l.t.runtime.storage("ChatActor", l.actor()).alarm).toBeUndefined();
  });

  test("works again when somebody writes, in the same life and after a restart", async () => {
    for (const restart of [false, true]) {
      const l = lab({ setup: echoing });
      await l.ann.say("one");
      await l.t.advance("9d");
      expect(tables(l)).toBe(0);
      if (restart) l.t.runtime.kill();
      await l.ann.say("two");
      await l.client.enqueue("three", { delay: "1h" });
      await l.t.advance("2h");
      expect(l.screen).toEqual(["ok one", "ok two", "three"]);
      expect(l.events()).toHaveLength(1);
      await l.t.advance("9d");
      expect(tables(l)).toBe(0);
    }
  });

  test("is deleted although the process dies around that", async () => {
    for (const side of ["before", "after"] as const) {
      for (const label of ["purge", "deleteAll"]) {
        const l = lab({ setup: echoing });
        await l.ann.say("hi");
        l.t.crash[side](label);
        await l.t.advance("20d");
        expect(tables(l), `${side} ${label}`).toBe(0);
        await l.ann.say("again");
        expect(l.screen).toEqual(["ok hi", "ok again"]);
      }
    }
  });

  test("that is only asked about keeps no storage", async () => {
    const l = lab({ setup: echoing });
    expect(await l.client.state.get("x")).toBeUndefined();
    expect(await l.client.inbox.list()).toEqual({ rows: [] });
    expect(await l.client.outbox.get("x")).toBeUndefined();
    expect(await l.client.cancel("x")).toBe(false);
    expect(tables(l)).toBe(0);
  });
});
