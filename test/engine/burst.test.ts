/** Messages that become one turn: bursts of one sender, and albums. */
import { describe, expect, test } from "vitest";
import type { InboundEvent } from "../../src/index.ts";
import { type Code, type Lab, lab, only } from "./lab.ts";

/** A bot that says what a turn is made of. */
function telling(more: Omit<Code, "setup"> = { busy: { concurrency: "burst" } }): Lab {
  return lab({
    ...more,
    setup: (bot, l) => {
      bot.use(async (ctx, next) => {
        l().notes.push(ctx.burst.map((one) => one.text ?? ""));
        await next();
      });
      bot.command("now", (ctx) => ctx.reply("now"));
      bot.otherwise((ctx) => ctx.reply(`[${ctx.text.replaceAll("\n", "|")}] ${ctx.media.length}`));
    },
  });
}

async function say(l: Lab, id: string, text: string, more: Partial<InboundEvent> = {}) {
  return l.receive([l.message(id, text, more)]);
}

const photo = (id: string): Partial<InboundEvent> => ({
  media: [{ kind: "image", ref: { fileId: id } }],
});

describe("a burst", () => {
  test("three quick messages are one turn with all three", async () => {
    const l = telling();
    await say(l, "a", "I want");
    await l.t.advance(400);
    await say(l, "b", "a pizza");
    await l.t.advance(400);
    await say(l, "c", "with olives");
    await l.t.idle();
    expect(l.notes).toEqual([["I want", "a pizza", "with olives"]]);
    expect(l.screen).toEqual(["[I want|a pizza|with olives] 0"]);
    expect(l.events().map((row) => row.state)).toEqual(["done", "done", "done"]);
  });

  test("silence ends it; what comes later is a turn of its own", async () => {
    const l = telling();
    await say(l, "a", "one");
    await l.t.advance(1_500);
    await say(l, "b", "two");
    await l.t.idle();
    expect(l.screen).toEqual(["[one] 0", "[two] 0"]);
  });

  test("somebody who never stops is answered after maxWait", async () => {
    const l = telling({ busy: { concurrency: { mode: "burst", quiet: "1s", maxWait: "2s" } } });
    for (let n = 0; n < 6; n += 1) {
      await say(l, `m${n}`, String(n));
      await l.t.advance(500);
    }
    await l.t.idle();
    expect(l.screen[0]).toBe("[0|1|2|3] 0");
    expect(l.screen.join(" ").match(/\d+(?=[|\]])/g)).toEqual(["0", "1", "2", "3", "4", "5"]);
  });

  test("a command is not held back, and ends what was said before it", async () => {
    const l = telling();
    await say(l, "a", "one");
    await say(l, "b", "/now");
    await say(l, "c", "two");
    await l.t.advance(10);
    expect(l.screen).toEqual(["[one] 0", "now"]);
    await l.t.idle();
    expect(l.screen).toEqual(["[one] 0", "now", "[two] 0"]);
  });

  test("two senders' messages never mix", async () => {
    const l = telling();
    await say(l, "a", "mine");
    await say(l, "b", "theirs", { sender: { id: "bob" } });
    await say(l, "c", "mine too");
    await l.t.idle();
    expect(l.screen).toEqual(["[mine|mine too] 0", "[theirs] 0"]);
  });

  test("killed in its turn, it runs again with the same members, and a late one stands alone", async () => {
    const l = telling();
    await say(l, "a", "one");
    await say(l, "b", "two");
    l.t.crash.before("outbox.insert");
    await l.t.advance(1_200);
    await say(l, "c", "three");
    await l.t.idle();
    expect(l.notes).toEqual([["one", "two"], ["one", "two"], ["three"]]);
    expect(l.screen).toEqual(["[one|two] 0", "[three] 0"]);
  });

  test("killed while it waits, it is answered without further traffic", async () => {
    const l = telling();
    await say(l, "a", "one");
    await say(l, "b", "two");
    l.t.restart();
    await l.t.advance(1_200);
    expect(l.screen).toEqual(["[one|two] 0"]);
  });

  test("a member that is delivered again is dropped, and its replay answers from the record", async () => {
    const l = telling();
    await say(l, "a", "one");
    await say(l, "b", "two");
    await l.t.idle();
    expect(await say(l, "b", "two")).toEqual({ ok: true, results: ["duplicate"] });
    expect(await l.client.inbox.replay("b")).toBe(true);
    await l.t.idle();
    expect(l.notes).toEqual([
      ["one", "two"],
      ["one", "two"],
    ]);
    expect(l.screen).toEqual(["[one|two] 0"]);
  });

  test("waiting costs one alarm each quiet time, not one each tick", async () => {
    const l = telling({ busy: { concurrency: { mode: "burst", quiet: "5s", maxWait: "5m" } } });
    await say(l, "a", "one");
    const before = l.t.runtime.alarmRuns;
    await l.t.advance(4_900);
    expect(l.t.runtime.alarmRuns - before).toBe(0);
    await l.t.advance(200);
    expect(l.screen).toEqual(["[one] 0"]);
  });
});

describe("an album", () => {
  const queue = {};

  test("is one event, however its parts arrive", async () => {
    const l = telling(queue);
    await say(l, "a", "holiday", { groupId: "g1", ...photo("1") });
    await l.t.advance(300);
    await say(l, "b", "", { groupId: "g1", ...photo("2") });
    await say(l, "c", "", { groupId: "g1", ...photo("3") });
    await l.t.idle();
    expect(l.screen).toEqual(["[holiday] 3"]);
  });

  test("does not swallow what else is said, and a late part stands alone", async () => {
    const l = telling(queue);
    await say(l, "a", "", { groupId: "g1", ...photo("1") });
    await say(l, "x", "nice?");
    await say(l, "b", "", { groupId: "g1", ...photo("2") });
    await l.t.idle();
    await say(l, "c", "", { groupId: "g1", ...photo("3") });
    await l.t.idle();
    expect(l.screen).toEqual(["[] 2", "[nice?] 0", "[] 1"]);
  });

  test("messages without a group cost no wait", async () => {
    const l = telling(queue);
    await say(l, "a", "hello");
    await l.t.advance(1);
    expect(only(l.screen)).toBe("[hello] 0");
  });

  test("a clock that jumps back an hour does not silence the chat", async () => {
    const l = telling();
    await say(l, "a", "hello");
    l.damage("UPDATE inbox SET received_at = received_at + 3600000");
    l.t.restart();
    await l.t.advance("1m");
    expect(l.screen).toEqual(["[hello] 0"]);
  });
});
