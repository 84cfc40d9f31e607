/** Messages of other bots: ignored by default, and never a loop. */
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/index.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";
import { echoing, type Lab, lab } from "./lab.ts";

const other = { sender: { id: "r2d2", isBot: true } };

function chatty(busy: BusyOptions): Lab {
  return lab({ busy, setup: echoing });
}

describe("other bots", () => {
  test("are ignored by default, without a record, and counted", async () => {
    const l = chatty({});
    expect(await l.receive([l.message("a", "beep", other)])).toEqual({
      ok: true,
      results: ["ignored"],
    });
    await l.receive([l.message("b", "hello")]);
    await l.t.idle();
    expect(l.screen).toEqual(["ok hello"]);
    expect(l.events().map((row) => row.id)).toEqual(["b"]);
    expect((await l.metrics()).inboundIgnored).toBe(1);
  });

  test("are heard where allowBots names them", async () => {
    const l = chatty({ allowBots: ["r2d2"] });
    await l.receive([l.message("a", "beep", other)]);
    await l.receive([l.message("b", "boop", { sender: { id: "c3po", isBot: true } })]);
    await l.t.idle();
    expect(l.screen).toEqual(["ok beep"]);
  });

  test("a loop is paused after 20 turns a minute and announced; people go on; nothing is lost", async () => {
    const l = chatty({ allowBots: true });
    for (let n = 0; n < 25; n += 1) {
      await l.receive([l.message(`m${n}`, String(n), other)]);
      await l.t.advance(100);
    }
    await l.receive([l.message("h", "human")]);
    await l.t.advance(100);
    expect(l.screen).toHaveLength(21);
    expect(l.screen.at(-1)).toBe("ok human");
    expect(l.told("durability:paused")).toMatchObject([
      { reason: "loop_guard", sender: "r2d2", until: expect.any(Number) },
    ]);
    await l.t.advance("2m");
    expect(l.screen.slice(21)).toEqual(["ok 20", "ok 21", "ok 22", "ok 23", "ok 24"]);
  });

  test("loopGuard: false has no limit, and a wrong one is refused by name", async () => {
    const l = chatty({ allowBots: true, loopGuard: false });
    for (let n = 0; n < 30; n += 1) await l.receive([l.message(`m${n}`, String(n), other)]);
    await l.t.idle();
    expect(l.screen).toHaveLength(30);
    expect(() => chatty({ loopGuard: 0 })).toThrow(ConfigError);
    expect(() => chatty({ loopGuard: 0 })).toThrow(/loopGuard is 0/);
  });

  test("a flood costs a chat a bounded number of reads and writes, and locks no person out", async () => {
    const l = chatty({ allowBots: true });
    const storage = l.t.runtime.storage("ChatActor", l.actor());
    let read = 0;
    const all = storage.all.bind(storage);
    storage.all = (query, params) => {
      const rows = all<never>(query, params);
      read += rows.length;
      return rows;
    };
    const flood = 1_100;
    for (let n = 0; n < flood; n += 1) await l.receive([l.message(`m${n}`, "beep", other)]);
    expect(read).toBeLessThan(flood * 5);
    read = 0;
    expect(await l.receive([l.message("h", "human")])).toMatchObject({ ok: true });
    await l.t.advance(100);
    expect(l.screen.at(-1)).toBe("ok human");
    expect(read).toBeLessThan(20);
    const written = storage.rowsChanged;
    await l.t.advance("10m");
    const answered = l.screen.length - 21;
    expect(answered).toBeGreaterThanOrEqual(180);
    expect(storage.rowsChanged - written).toBeLessThan(answered * 8);
    await l.t.advance("1h");
    expect(l.screen).toHaveLength(flood + 1);
  });
});
