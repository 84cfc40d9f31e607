/** Cron jobs: each run happens once, also over crashes and missed ticks, and none fails silently. */
import { afterEach, describe, expect, test } from "vitest";
import { CATCH_UP_MS, runCrons } from "../../src/edge/cron.ts";
import { Bot, ConfigError, RetryTurn } from "../../src/index.ts";
import { MockPlatform, mockProvider, type TestBot, testBot } from "../../src/testing/index.ts";
import { wallClock } from "../../src/time/Clock.ts";
import { only } from "./lab.ts";

const closing: TestBot[] = [];
afterEach(() => {
  for (const one of closing.splice(0)) one.close();
});

function botOf(setup: (bot: Bot) => void): Bot {
  const bot = new Bot({
    id: "clock",
    channels: [mockProvider({ platform: new MockPlatform(wallClock, "keyed") })],
    durability: { inbox: { minAgeMs: 0 } },
  });
  setup(bot);
  return bot;
}

/** A bot under test, at midnight. */
function clock(setup: (bot: Bot) => void): TestBot {
  const t = testBot(botOf(setup), { now: Date.UTC(2026, 0, 5) });
  closing.push(t);
  return t;
}

const CHAT = "mock/mock/ann";
const DAILY = "main/production/clock/~cron/0_8_*_*_*";

/** A job that tells ann each morning. */
const morning = (bot: Bot) =>
  bot.cron("0 8 * * *", async ({ client }) => {
    await client.chat(CHAT).send("good morning");
  });

describe("a job", () => {
  test("runs at its minute, once each day, and at no other", async () => {
    const t = clock(morning);
    const ann = t.user("ann");
    await t.advance("7h");
    expect(ann.screen).toEqual([]);
    await t.advance("1h");
    expect(ann.screen).toEqual(["good morning"]);
    await t.advance("47h");
    expect(ann.screen).toEqual(["good morning", "good morning"]);
    const { rows } = await t.client.chat("~cron/~cron/0_8_*_*_*").inbox.list();
    expect(rows.map(({ id, state, kind }) => [id, state, kind])).toEqual([
      ["cron:0_8_*_*_*:2026-01-06T08:00Z", "done", "cron"],
      ["cron:0_8_*_*_*:2026-01-05T08:00Z", "done", "cron"],
    ]);
  });

  test("gets env and log, and what middleware does is not for it", async () => {
    const seen: unknown[] = [];
    const bot = botOf((bot) => {
      bot.use(() => void seen.push("middleware"));
      bot.otherwise(() => void seen.push("otherwise"));
      bot.cron("0 8 * * *", ({ env, log }) => {
        seen.push((env as { NAME: string }).NAME, typeof log.info);
      });
    });
    const t = testBot(bot, { now: Date.UTC(2026, 0, 5), env: { NAME: "shop" } });
    closing.push(t);
    await t.advance("9h");
    expect(seen).toEqual(["shop", "function"]);
  });

  test("whose ticks are missed for less than five minutes runs all the same, each minute of it once", async () => {
    const runs: string[] = [];
    const t = clock((bot) => bot.cron("* * * * *", () => void runs.push("run")));
    await t.advance("1m");
    expect(runs).toHaveLength(1);
    const start = t.now - 60_000;
    await t.runtime.advance(CATCH_UP_MS - 60_000);
    await t.tick();
    await t.tick();
    await t.idle();
    expect(runs).toHaveLength(5);
    const { rows } = await t.client.chat("~cron/~cron/*_*_*_*_*").inbox.list();
    expect(rows.map((row) => row.id.slice(-6)).sort()).toEqual(
      [1, 2, 3, 4, 5].map((n) => `${new Date(start + n * 60_000).toISOString().slice(11, 16)}Z`),
    );
  });

  test("that is new does not run for the minutes before it was there, whatever ticks come", async () => {
    const runs: string[] = [];
    const t = clock((bot) => bot.cron("* * * * *", () => void runs.push("run")));
    await t.runtime.advance(CATCH_UP_MS);
    await t.tick();
    await t.tick();
    await t.idle();
    expect(runs).toHaveLength(1);
    await t.advance("2m");
    expect(runs).toHaveLength(3);
    // Also when its records are long gone, and it has slept for weeks.
    await t.runtime.advance(30 * 86_400_000);
    await t.tick();
    await t.idle();
    expect(runs).toHaveLength(8);
  });

  test("makes no call where nothing is due", async () => {
    const t = clock(morning);
    await t.advance("7h");
    expect(t.runtime.calls).toBe(0);
  });

  test("runs one at a time: a slow run makes the next wait", async () => {
    const t: TestBot = clock((bot) =>
      bot.cron("* * * * *", async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((done) => t.runtime.clock.setTimer(150_000, done));
        running -= 1;
        ran += 1;
      }),
    );
    let [running, most, ran] = [0, 0, 0];
    await t.advance("10m");
    expect(most).toBe(1);
    expect(ran).toBe(3);
  });
});

describe("a run that dies in the middle", () => {
  test.each(["turn.handler", "turn.settle", "inbox.receive"])(
    "at %s runs again, and says nothing twice",
    async (label) => {
      for (const side of ["before", "after"] as const) {
        const t = clock(morning);
        t.crash[side](label);
        await t.advance("8h");
        await t.advance("10m");
        expect(t.user("ann").screen, side).toEqual(["good morning"]);
      }
    },
  );

  test("between two of its sends says each once, to each chat", async () => {
    let deaths = 0;
    const t: TestBot = clock((bot) =>
      bot.cron("0 8 * * *", async ({ client }) => {
        for (const name of ["ann", "bob"]) {
          await client.chat(`mock/mock/${name}`).send("one");
          if (deaths < 2) {
            deaths += 1;
            t.runtime.kill(DAILY);
            await new Promise(() => {});
          }
          await client.chat(`mock/mock/${name}`).send("two");
        }
      }),
    );
    await t.advance("8h");
    await t.advance("30m");
    expect(deaths).toBe(2);
    for (const name of ["ann", "bob"]) expect(t.user(name).screen).toEqual(["one", "two"]);
  });
});

describe("a run that fails", () => {
  test("is listed, announced, and can be replayed once the cause is gone", async () => {
    let broken = true;
    const t = clock((bot) =>
      bot.cron("0 8 * * *", { name: "report" }, async ({ client }) => {
        if (broken) throw new Error("the ledger is closed");
        await client.chat(CHAT).send("report");
      }),
    );
    await t.advance("9h");
    const row = only((await t.client.durability.inbox.list({ state: "failed" })).rows);
    expect(row).toMatchObject({
      id: "cron:report:2026-01-05T08:00Z",
      address: "~cron/~cron/report",
      error: "Error: the ledger is closed",
    });
    expect(t.announced.map(({ kind }) => kind)).toEqual(["error"]);
    broken = false;
    expect(await t.client.durability.replayInbound(row.ref)).toBe(true);
    await t.idle();
    expect(t.user("ann").screen).toEqual(["report"]);
  });

  test("may ask to run again", async () => {
    let runs = 0;
    const t = clock((bot) =>
      bot.cron("0 8 * * *", () => {
        runs += 1;
        if (runs < 3) throw new RetryTurn({ after: "1m" });
      }),
    );
    await t.advance("9h");
    expect(runs).toBe(3);
  });

  test("does not keep other jobs from being told", async () => {
    const runs: string[] = [];
    const t = clock((bot) => {
      bot.cron("0 8 * * *", { name: "first" }, () => void runs.push("first"));
      bot.cron("0 8 * * *", { name: "second" }, () => void runs.push("second"));
    });
    const away = "main/production/clock/~cron/first";
    t.runtime.onCall = (_kind, name) => {
      if (name === away) throw new Error("away");
    };
    await t.advance("8h");
    expect(runs).toEqual(["second"]);
    t.runtime.onCall = () => {};
    await t.advance("1m");
    expect(runs).toEqual(["second", "first"]);
  });

  test("of a job that is gone is listed as failed, not lost", async () => {
    const t = clock(morning);
    const later = botOf(() => {});
    const parts = { bot: botOf(morning), actors: t.runtime, env: {}, log: t.runtime.log };
    // The tick comes of the old code, the run is the new code's.
    t.runtime.make = ((make) => (host, kind, name) => {
      if (kind !== "ChatActor") return make(host, kind, name);
      const other = testBot(later, { now: t.now });
      closing.push(other);
      return other.runtime.make(host, kind, name);
    })(t.runtime.make);
    await t.runtime.advance(8 * 3_600_000);
    expect(await runCrons(parts, t.now)).toBe(0);
    await t.idle();
    expect(only((await t.client.durability.inbox.list({ state: "failed" })).rows)).toMatchObject({
      id: "cron:0_8_*_*_*:2026-01-05T08:00Z",
      error: 'ConfigError: the bot has no cron job "0_8_*_*_*" any more',
    });
  });
});

describe("a bot", () => {
  test("refuses what is no expression, and names it", () => {
    const make = () => botOf((bot) => bot.cron("0 25 * * *", () => {}));
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(
      /cron "0 25 \* \* \*" is no cron expression.*23\. It takes five fields in UTC/,
    );
  });

  test("refuses two jobs of one name, and says how to name them", () => {
    const twice = (name?: string) => () =>
      botOf((bot) => {
        bot.cron("0 8 * * *", () => {});
        bot.cron(" 0  8 * * *", { name }, () => {});
      });
    expect(twice()).toThrow(/two cron jobs are called "0_8_\*_\*_\*".*\{ name: "…" \}/);
    expect(twice("other")).not.toThrow();
    expect(twice("no spaces")).toThrow(/the name of cron .* is "no spaces"/);
  });

  test("refuses a job without a handler", () => {
    expect(() => botOf((bot) => bot.cron("0 8 * * *", undefined as never))).toThrow(
      /needs a handler function/,
    );
  });

  test("does not send into the record of a job", async () => {
    const t = clock(morning);
    await expect(t.client.chat("~cron/~cron/x").send("hi")).rejects.toThrow(/not a chat/);
    await expect(t.client.chat("~cron/~cron/x").sendEvent({ type: "a", id: "1" })).rejects.toThrow(
      /not a chat/,
    );
  });
});
