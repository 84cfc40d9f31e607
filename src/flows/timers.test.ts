/** Time: what is not answered ends, and what sleeps wakes. */
import { describe, expect, test } from "vitest";
import { FlowTimeoutError } from "../index.ts";
import type { TestBot } from "../testing/index.ts";
import { made } from "./lab.ts";

describe("time", () => {
  test("an ask that nobody answers ends at its time, also after a restart", async () => {
    const { t } = made((bot) => {
      const order = bot.flow("order", async (c) => {
        try {
          await c.ask("Size?", { timeout: "10m" });
        } catch (error) {
          if (!(error instanceof FlowTimeoutError)) throw error;
          await c.reply("Another time.");
        }
      });
      bot.command("order", (ctx) => ctx.start(order));
    });
    const ann = t.user("ann");
    const begun = t.now;
    await ann.say("/order");
    await t.restart();
    await t.advance("9m");
    expect(ann.screen).toEqual(["Size?"]);
    await t.advance("2m");
    expect(ann.screen).toEqual(["Size?", "Another time."]);
    const said = t.platform().ledger.at(-1)?.at ?? 0;
    expect(said - begun - 600_000).toBeLessThan(1_000);
  });

  test("an answer and a timeout: the one that came first counts, and the other is nothing", async () => {
    for (const [answersAt, said] of [
      [599_000, "so small"],
      [600_500, "late"],
    ] as const) {
      const { t } = made((bot) => {
        const order = bot.flow("order", async (c) => {
          const size = await c.ask("Size?", { timeout: "10m" }).catch(() => undefined);
          await c.reply(size === undefined ? "late" : `so ${size}`);
        });
        bot.command("order", (ctx) => ctx.start(order));
      });
      const ann = t.user("ann");
      const begun = t.now;
      await ann.say("/order");
      await t.advance(begun + answersAt - t.now);
      await ann.say("small");
      await t.advance("1h");
      expect(ann.screen).toEqual(["Size?", said]);
    }
  });

  test("a run that sleeps for 30 days goes on, though records are kept for 7", async () => {
    const { t, notes } = made((bot, notes) => {
      const trial = bot.flow("trial", async (c) => {
        const plan = await c.step("plan", () => {
          notes.push("planned");
          return "pro";
        });
        await c.reply(`Trial of ${plan}.`);
        await c.sleep("30d");
        const more = await c.ask(`Keep ${plan}?`, { choices: ["yes", "no"] });
        await c.reply(`You said ${more}.`);
      });
      bot.command("trial", (ctx) => ctx.start(trial));
    });
    const ann = t.user("ann");
    await ann.say("/trial");
    for (let day = 0; day < 31; day += 1) await t.advance("1d");
    await t.restart();
    await ann.press("yes");
    expect(ann.screen).toEqual(["Trial of pro.", "Keep pro?", "You said yes."]);
    expect(notes).toEqual(["planned"]);
    // Once it is over, it is kept as long as any record, and then all of it goes.
    await t.advance("9d");
    expect(t.runtime.names("ChatActor").flatMap((name) => tables(t, name))).toEqual([]);
  });

  test("many runs that sleep cost one alarm", async () => {
    const { t } = made((bot) => {
      const nap = bot.flow("nap", async (c, minutes: number) => {
        await c.sleep(minutes * 60_000);
        await c.reply(`${minutes} minutes`);
      });
      bot.command("naps", async (ctx) => {
        for (let n = 1; n <= 30; n += 1)
          await ctx.start(nap, n, { id: `nap ${n}`, sender: `nobody ${n}` });
      });
    });
    const ann = t.user("ann");
    await ann.say("/naps");
    await t.advance("31m");
    expect(ann.screen).toEqual(Array.from({ length: 30 }, (_unused, n) => `${n + 1} minutes`));
  });
});

/** Tables of a chat that have rows. */
function tables(t: TestBot, name: string): string[] {
  const storage = t.runtime.storage("ChatActor", name);
  return storage
    .all<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table'`, [])
    .map((row) => row.name)
    .filter((table) => storage.all(`SELECT 1 AS x FROM "${table}" LIMIT 1`, []).length > 0);
}
