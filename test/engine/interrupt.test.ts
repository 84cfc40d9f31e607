/** `concurrency: "interrupt"`: a newer message stops the running answer, and nothing is said twice. */
import { describe, expect, test } from "vitest";
import { TurnEndedError } from "../../src/index.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";
import { type Lab, lab } from "./lab.ts";

/** A bot that answers in three sends with a pause between, and counts what it finished. */
function slow(more: { stubborn?: number } = {}, busy: BusyOptions = {}): Lab {
  return lab({
    busy: { concurrency: "interrupt", ...busy },
    setup: (bot, l) => {
      bot.on("error", ({ error }) => {
        l().notes.push(`error ${String(error)}`);
      });
      bot.otherwise(async (ctx) => {
        ctx.state.update<string[]>("begun", (begun) => [...(begun ?? []), ctx.text]);
        for (const n of [1, 2, 3]) {
          await ctx.reply(`${ctx.text}${n}`);
          await l().sleep(1_000);
          if (ctx.signal.aborted) l().notes.push(`${ctx.text} aborted`);
        }
        if (more.stubborn !== undefined && ctx.text === "a") await l().sleep(more.stubborn);
      });
    },
  });
}

describe("interrupt", () => {
  test("what was sent stays, the rest is not sent, the next answer is whole, state is dropped", async () => {
    const l = slow();
    await l.receive([l.message("a", "a")]);
    await l.t.advance(1_500);
    await l.receive([l.message("b", "b")]);
    await l.t.idle();
    await l.t.advance("1m");
    expect(l.screen).toEqual(["a1", "a2", "b1", "b2", "b3"]);
    expect(l.notes[0]).toBe("a aborted");
    expect(await l.client.state.get("begun")).toEqual(["b"]);
    expect(l.events().map((row) => [row.id, row.state, row.error])).toEqual([
      ["a", "done", null],
      ["b", "done", null],
    ]);
  });

  test("a send on the closed context throws, and the next turn waits at most 5 s for the handler", async () => {
    const l = slow({ stubborn: 60_000 });
    await l.receive([l.message("a", "a")]);
    await l.t.advance(2_500);
    await l.receive([l.message("b", "b")]);
    await l.t.advance(4_000);
    expect(l.screen).toEqual(["a1", "a2", "a3"]);
    await l.t.advance(1_600);
    expect(l.screen).toEqual(["a1", "a2", "a3", "b1"]);
    await l.t.idle();
  });

  test("sends that had not begun are suppressed and say why", async () => {
    const l = lab({
      busy: { concurrency: "interrupt" },
      setup: (bot, l) => {
        bot.otherwise(async (ctx) => {
          const all = [ctx.reply(`${ctx.text}1`), ctx.reply(`${ctx.text}2`)];
          for (const one of await Promise.allSettled(all)) l().notes.push(one);
          await ctx.reply("late").catch((error: unknown) => l().notes.push(error));
        });
      },
    });
    l.platform.latency = () => 2_000;
    await l.receive([l.message("a", "a")]);
    await l.t.advance(1_000);
    await l.receive([l.message("b", "b")]);
    await l.t.idle();
    expect(l.screen).toEqual(["a1", "b1", "b2", "late"]);
    expect(l.sends().map((row) => row.state)).toEqual([
      "sent",
      "suppressed",
      "sent",
      "sent",
      "sent",
    ]);
    expect(l.notes[1]).toMatchObject({ value: { status: "suppressed", reason: "interrupted" } });
    expect(l.notes[2]).toBeInstanceOf(TurnEndedError);
  });

  test("a chat where many messages of another bot rest is interrupted all the same", async () => {
    const l = slow({}, { allowBots: true, loopGuard: 1 });
    const bot = { sender: { id: "r2d2", isBot: true } };
    for (let n = 0; n < 40; n += 1) await l.receive([l.message(`m${n}`, `m${n}`, bot)]);
    await l.t.advance(10_000);
    await l.receive([l.message("a", "a")]);
    await l.t.advance(1_500);
    await l.receive([l.message("b", "b")]);
    await l.t.advance(5_000);
    expect(l.screen.filter((text) => /^[ab]/.test(text))).toEqual(["a1", "a2", "b1", "b2", "b3"]);
  });

  test("another sender, a reaction and a duplicate interrupt nothing", async () => {
    const l = slow();
    await l.receive([l.message("a", "a")]);
    await l.t.advance(500);
    await l.receive([l.message("b", "b", { sender: { id: "bob" } })]);
    await l.receive([l.message("r", "", { kind: "reaction" })]);
    await l.receive([l.message("a", "a")]);
    await l.t.idle();
    expect(l.screen).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
  });

  for (const side of ["before", "after"] as const) {
    test(`killed ${side} the commit that ends it, the interrupted answer does not go on`, async () => {
      const l = slow();
      l.t.crash[side]("turn.interrupt");
      await l.receive([l.message("a", "a")]);
      await l.t.advance(1_500);
      // The process dies before it answers: the platform delivers again.
      await expect(l.receive([l.message("b", "b")])).rejects.toThrow("reset");
      await l.receive([l.message("b", "b")]);
      await l.t.idle();
      await l.t.advance("5m");
      await l.t.idle();
      expect(l.screen).toEqual(["a1", "a2", "b1", "b2", "b3"]);
    });
  }

  test("a message that finds the turn of a dead process interrupts it all the same", async () => {
    const l = slow();
    await l.receive([l.message("a", "a")]);
    await l.t.advance(500);
    l.t.restart();
    await l.receive([l.message("b", "b")]);
    await l.t.idle();
    await l.t.advance("5m");
    expect(l.screen).toEqual(["a1", "b1", "b2", "b3"]);
  });

  test("messages that wait behind a handler that will not stop are one turn: the newest is answered", async () => {
    const l = lab({
      busy: { concurrency: "interrupt" },
      setup: (bot, l) => {
        bot.otherwise(async (ctx) => {
          l().notes.push(ctx.burst.map((one) => one.text));
          if (ctx.text === "0") await l().sleep(20_000);
          await ctx.reply(`about ${ctx.text}`);
        });
      },
    });
    for (let n = 0; n < 20; n += 1) {
      await l.receive([l.message(`m${n}`, String(n))]);
      await l.t.advance(100);
    }
    await l.t.idle();
    const behind = Array.from({ length: 19 }, (_unused, n) => String(n + 1));
    expect(l.notes).toEqual([["0"], behind]);
    expect(l.screen).toEqual(["about 19"]);
    expect(l.events().map((row) => row.state)).toEqual(Array(20).fill("done"));
  });

  test("two messages in one delivery: the newer is answered, and the bot sees both", async () => {
    const l = slow();
    await l.receive([l.message("a", "a"), l.message("b", "b")]);
    await l.t.idle();
    await l.t.advance("1m");
    expect(l.screen).toEqual(["b1", "b2", "b3"]);
    expect(l.events().map((row) => row.state)).toEqual(["done", "done"]);
  });

  test("messages of nobody in particular, such as a channel's posts, interrupt nobody", async () => {
    const l = slow();
    const post = (id: string) => {
      const item = l.message(id, id);
      if (item.type === "event") delete item.event.sender;
      return item;
    };
    await l.receive([post("a")]);
    await l.t.advance(500);
    await l.receive([post("b")]);
    await l.t.idle();
    expect(l.screen).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
  });

  test("an interrupted turn that an operator replays says what it had not, and keeps what it sets", async () => {
    const l = slow();
    await l.receive([l.message("a", "a")]);
    await l.t.advance(1_500);
    await l.receive([l.message("b", "b")]);
    await l.t.idle();
    expect(await l.client.inbox.replay("a")).toBe(true);
    await l.t.idle();
    expect(l.screen).toEqual(["a1", "a2", "b1", "b2", "b3", "a3"]);
    expect(await l.client.state.get("begun")).toEqual(["b", "a"]);
  });
});
