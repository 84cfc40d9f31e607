/** The sweep: chats that slept past their time are woken, gently, and none is forgotten. */
import { afterEach, describe, expect, test } from "vitest";
import { Bot } from "../../src/index.ts";
import { REGISTRY_COMMITS } from "../../src/journal/labels.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { registryOf } from "../../src/objects/Reporter.ts";
import { SWEEP_LANES, SWEEP_SLICE, WAKE_MS } from "../../src/objects/WakeSweep.ts";
import { MockPlatform, mockProvider, type TestBot, testBot } from "../../src/testing/index.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { wallClock } from "../../src/time/Clock.ts";
import { echoing, lab } from "./lab.ts";

const SHARD = "main/production/lab/0";
const MINUTE = 60_000;
const closing: { close(): void }[] = [];
afterEach(() => {
  for (const one of closing.splice(0)) one.close();
});

/** What a chat does when it is woken: answers, reports, fails or hangs. */
type Waking = (name: string) => Promise<void>;

/** One shard over chats that are only there to be woken. */
class Shard {
  readonly runtime: NodeRuntime;
  /** Every wake, in order. */
  readonly woken: { name: string; at: number }[] = [];
  inFlight = 0;
  most = 0;
  waking: Waking = (name) => this.report(name);

  constructor() {
    this.runtime = new NodeRuntime({
      make: (host, kind, name) =>
        kind === "Registry" ? new RegistryBook(host) : { call: () => this.#wake(name) },
    });
    closing.push(this.runtime);
  }

  async #wake(name: string): Promise<string> {
    this.woken.push({ name, at: this.runtime.clock.now() });
    this.inFlight += 1;
    this.most = Math.max(this.most, this.inFlight);
    try {
      await this.waking(name);
    } finally {
      this.inFlight -= 1;
    }
    return "{}";
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.runtime.clock.setTimer(ms, resolve));
  }

  /** A chat says how it stands: with nothing due it is off the list. */
  async report(name: string, dueAt?: number): Promise<void> {
    const state = { dead: 0, unknown: 0, failed: 0, metrics: {}, address: `a/${name}`, dueAt };
    await this.runtime.call("Registry", SHARD, "report", JSON.stringify({ name, ...state }));
  }

  async names(): Promise<string[]> {
    const answer = await this.runtime.call("Registry", SHARD, "chats", `{"limit":200}`);
    return (JSON.parse(answer) as { chats: string[] }).chats;
  }

  /** Calls the cron's sweep and lets it end. */
  async sweep(): Promise<number> {
    let answer: string | undefined;
    this.runtime.call("Registry", SHARD, "sweep", "{}").then((text) => {
      answer = text;
    });
    await this.runtime.until(() => answer !== undefined, 10 * MINUTE);
    return (JSON.parse(answer ?? "") as { woken: number }).woken;
  }
}

const numbered = (n: number) => `chat-${String(n).padStart(4, "0")}`;

describe("a shard of the Registry", () => {
  test("drains 1,000 overdue chats slice by slice, a few at a time, longest overdue first", async () => {
    const shard = new Shard();
    const start = shard.runtime.clock.now();
    for (let n = 0; n < 1_000; n += 1) await shard.report(numbered(n), start + n);
    await shard.runtime.advance(10 * MINUTE);
    shard.waking = async (name) => {
      await shard.sleep(200);
      await shard.report(name);
    };
    expect(await shard.sweep()).toBe(SWEEP_SLICE);
    // No other call: the shard goes on by its own alarm.
    await shard.runtime.advance(3 * MINUTE);
    expect(shard.woken.map((one) => one.name)).toEqual(
      Array.from({ length: 1_000 }, (_none, n) => numbered(n)),
    );
    expect(shard.most).toBe(SWEEP_LANES);
    expect(await shard.names()).toEqual([]);
    // Spread out: no second sees more than one slice.
    const first = shard.woken[0]?.at ?? 0;
    const perSecond = new Map<number, number>();
    for (const { at } of shard.woken) {
      const second = Math.floor((at - first) / 1_000);
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
    }
    expect(Math.max(...perSecond.values())).toBeLessThanOrEqual(SWEEP_SLICE);
    const runs = shard.runtime.alarmRuns;
    await shard.runtime.advance(60 * MINUTE);
    expect(shard.runtime.alarmRuns).toBe(runs);
  });

  test("leaves alone what is not two minutes past its time", async () => {
    const shard = new Shard();
    await shard.report("soon", shard.runtime.clock.now() + MINUTE);
    await shard.runtime.advance(3 * MINUTE - 1_000);
    expect(await shard.sweep()).toBe(0);
    await shard.runtime.advance(2_000);
    expect(await shard.sweep()).toBe(1);
  });

  test("is not stopped by a chat that hangs: it goes to the back, and is tried again later", async () => {
    const shard = new Shard();
    const now = shard.runtime.clock.now();
    await shard.report("hangs", now);
    for (let n = 0; n < 60; n += 1) await shard.report(numbered(n), now + 1 + n);
    await shard.runtime.advance(10 * MINUTE);
    let heals = false;
    shard.waking = async (name) => {
      if (name === "hangs" && !heals) await new Promise(() => {});
      await shard.report(name);
    };
    const began = shard.runtime.clock.now();
    expect(await shard.sweep()).toBe(SWEEP_SLICE - 1);
    expect(shard.runtime.clock.now() - began).toBeLessThanOrEqual(WAKE_MS);
    await shard.runtime.advance(30_000);
    expect(await shard.names()).toEqual(["hangs"]);
    heals = true;
    await shard.runtime.advance(MINUTE);
    await shard.sweep();
    expect(await shard.names()).toEqual([]);
  });

  test("is not blocked by chats that cannot be woken: others have their turn, those are tried ever more seldom", async () => {
    const shard = new Shard();
    const now = shard.runtime.clock.now();
    const broken = (name: string) => name.startsWith("broken");
    for (let n = 0; n < 120; n += 1) await shard.report(`broken-${n}`, now);
    await shard.report("well", now + MINUTE);
    await shard.runtime.advance(10 * MINUTE);
    shard.waking = (name) => (broken(name) ? Promise.reject(new Error("no")) : shard.report(name));
    await shard.sweep();
    await shard.runtime.advance(20_000);
    expect(shard.woken.filter(({ name }) => name === "well")).toHaveLength(1);
    const began = shard.woken.length;
    for (let n = 0; n < 120; n += 1) {
      await shard.sweep();
      await shard.runtime.advance(MINUTE);
    }
    const tries = (shard.woken.length - began) / 120;
    // Two hours: minutes apart at first, an hour apart in the end.
    expect(tries).toBeGreaterThan(3);
    expect(tries).toBeLessThan(12);
    expect(await shard.names()).toHaveLength(120);
  });

  test("wakes a chat once while it has not reported yet", async () => {
    const shard = new Shard();
    await shard.report("late", shard.runtime.clock.now());
    await shard.runtime.advance(5 * MINUTE);
    shard.waking = () => Promise.resolve();
    await Promise.all([shard.sweep(), shard.sweep()]);
    await shard.runtime.advance(30_000);
    await shard.sweep();
    expect(shard.woken).toHaveLength(1);
    await shard.runtime.advance(90_000);
    await shard.sweep();
    expect(shard.woken).toHaveLength(2);
  });

  test("goes on with the storage of before it kept times of its own", async () => {
    const shard = new Shard();
    const storage = shard.runtime.storage("Registry", SHARD);
    const due = shard.runtime.clock.now();
    for (const statement of [
      `CREATE TABLE chats (name TEXT PRIMARY KEY, address TEXT NOT NULL, dead INTEGER NOT NULL,
         unknown INTEGER NOT NULL, failed INTEGER NOT NULL, due_at INTEGER, at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
      `CREATE INDEX chats_due ON chats (due_at) WHERE due_at IS NOT NULL`,
      `INSERT INTO chats VALUES ('old', 'a/old', 0, 0, 0, ${due}, ${due})`,
    ])
      storage.run(statement, []);
    await shard.runtime.advance(5 * MINUTE);
    expect(await shard.sweep()).toBe(1);
    expect(await shard.names()).toEqual([]);
  });
});

/** A bot whose sends to "bad" chats die, and that is asked to remind. */
function reminding(): TestBot {
  const bot = new Bot({
    id: "sweep",
    channels: [mockProvider({ platform: new MockPlatform(wallClock, "keyed") })],
  });
  bot.when(/later (\d+)m/, (ctx) => ctx.enqueue("later", { delay: `${Number(ctx.match[1])}m` }));
  bot.when("hang once", async (ctx, next) => {
    if (ctx.attempt === 1) await new Promise(() => {});
    await next();
  });
  bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`).catch(() => {}));
  const t = testBot(bot);
  closing.push(t);
  return t;
}

/** The cron, minute by minute. */
async function minutes(t: TestBot, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await t.advance("1m");
    await t.tick();
  }
}

describe("the sweep", () => {
  test("wakes a chat whose alarm was deleted behind the runtime's back", async () => {
    const t = reminding();
    const ann = t.user("ann");
    await ann.say("later 10m");
    await t.advance("5m");
    t.runtime.loseAlarm("ChatActor", t.actorOf(ann));
    t.runtime.kill();
    await t.advance("10m");
    expect(ann.screen).toEqual([]);
    await minutes(t, 1);
    expect(ann.screen).toEqual(["later"]);
    await minutes(t, 3);
    expect((await t.client.durability.chats()).rows).toEqual([]);
  });

  test("brings what 1,000 chats owe after an outage in which every alarm was lost, once each", async () => {
    const t = reminding();
    const users = Array.from({ length: 1_000 }, (_none, n) => t.user(`u${n}`));
    for (const user of users) await user.post({ text: "later 30m" });
    await t.idle();
    await t.advance("2m");
    for (const name of t.runtime.names("ChatActor")) t.runtime.loseAlarm("ChatActor", name);
    t.runtime.kill();
    await t.advance("1h");
    expect(t.platform().ledger).toEqual([]);
    await minutes(t, 3);
    expect(
      t
        .platform()
        .ledger.map((entry) => entry.chat)
        .sort(),
    ).toEqual(users.map((user) => user.name).sort());
    await minutes(t, 5);
    expect(t.platform().calls).toHaveLength(1_000);
    expect((await t.client.durability.chats()).rows).toEqual([]);
  }, 60_000);

  test("cannot know a chat that died and lost its alarm before it reported: the next message heals it", async () => {
    const t = reminding();
    const ann = t.user("ann");
    await ann.post({ text: "hang once" });
    t.runtime.loseAlarm("ChatActor", t.actorOf(ann));
    t.runtime.kill();
    await minutes(t, 10);
    expect(ann.screen).toEqual([]);
    await ann.say("two");
    expect(ann.screen).toEqual(["ok hang once", "ok two"]);
  });

  test("goes on where a shard, or a connection, does not answer", async () => {
    const t = reminding();
    const ann = t.user("ann");
    const away = registryOf(t.actorOf(ann));
    // Somebody of another shard.
    const bob = ["bob", "cem", "dan", "eve", "flo"]
      .map((name) => t.user(name))
      .find((user) => registryOf(t.actorOf(user)) !== away);
    if (bob === undefined) throw new Error("all names fall into one shard");
    for (const user of [ann, bob]) await user.say("later 5m");
    await t.advance("1m");
    for (const user of [ann, bob]) t.runtime.loseAlarm("ChatActor", t.actorOf(user));
    t.runtime.kill();
    await t.advance("10m");
    const asked: string[] = [];
    t.runtime.onCall = (kind, name, method) => {
      if (kind === "Connection") asked.push(`${name} ${method}`);
      if (kind === "Connection" || name === away) throw new Error("away");
    };
    await t.tick();
    expect(asked).toEqual(["main/production/sweep/mock sweep"]);
    expect([ann.screen, bob.screen]).toEqual([[], ["later"]]);
    t.runtime.onCall = () => {};
    await t.tick();
    expect(ann.screen).toEqual(["later"]);
  });
});

describe("a Registry that dies", () => {
  const sides = ["before", "after"] as const;

  test.each(REGISTRY_COMMITS.flatMap((label) => sides.map((side) => [side, label] as const)))(
    "%s %s loses no chat from the lists, and wakes every one",
    async (side, label) => {
      const t = reminding();
      const names = ["ann", "bob", "cem", "dan", "eve"];
      let armed = true;
      let died = 0;
      t.runtime.onProbe = (hit) => {
        if (!armed || hit.kind !== "Registry" || hit.label !== label || hit.side !== side)
          return false;
        died += 1;
        return died <= 3;
      };
      t.platform().fault = ({ text }) =>
        text === "ok bad" ? { type: "refuse", kind: "permission" } : undefined;
      for (const name of names) await t.user(name).say("bad");
      for (const name of names) await t.user(name).say("later 10m");
      await t.advance("5m");
      for (const name of t.runtime.names("ChatActor")) t.runtime.loseAlarm("ChatActor", name);
      for (const name of t.runtime.names("ChatActor")) t.runtime.kill(name);
      // One of them cannot be woken at first, and the sweep has more than a slice to do.
      let refuses = true;
      t.runtime.onCall = (_kind, name, method) => {
        if (refuses && method === "wake" && name.endsWith("/eve")) throw new Error("not now");
      };
      await t.advance("10m");
      if (label === "registry.rearm") {
        const shard = registryOf(t.actorOf(t.user("ann")));
        t.runtime.storage("Registry", shard).alarm = t.now + 1;
        await hangingSlice(t, shard);
      }
      await minutes(t, 4);
      refuses = false;
      await minutes(t, 10);
      armed = false;
      expect(died, `${label} was not reached`).toBeGreaterThan(0);
      for (const name of names) expect(t.user(name).screen, name).toEqual(["later"]);
      const { rows } = await t.client.durability.chats();
      expect(rows.map((row) => [row.address, row.dead]).sort()).toEqual(
        names.map((name) => [`mock/mock/${name}`, 1]),
      );
      const dead = await t.client.durability.outbox.list({ state: "dead" });
      expect(dead.rows).toHaveLength(names.length);
    },
  );
});

/** A slice whose wakes take their time, so that the alarm finds it at work. */
async function hangingSlice(t: TestBot, shard: string): Promise<void> {
  const { call } = t.runtime;
  t.runtime.call = async (kind, name, method, payload) => {
    if (method === "wake") await new Promise(() => {});
    return call.call(t.runtime, kind, name, method, payload);
  };
  t.runtime.call("Registry", shard, "sweep", "{}").catch(() => {});
  await t.advance("20s");
  t.runtime.call = call;
}

describe("what the Registry lists", () => {
  const cases: [string, (l: ReturnType<typeof lab>) => Promise<unknown>, object][] = [
    [
      "a send that died",
      (l) => {
        l.platform.failNext({ type: "refuse", kind: "permission" });
        return l.ann.say("x");
      },
      // The handler did not catch it, so its turn failed as well.
      { dead: 1, failed: 1 },
    ],
    [
      "a send that nobody knows about",
      async (l) => {
        l.t.crash.after("channel.send");
        await l.ann.say("x");
      },
      { unknown: 1, dueAt: expect.any(Number) },
    ],
    [
      "a reply that is deferred",
      async (l) => {
        l.platform.fault = () => ({ type: "refuse", kind: "transient" });
        await l.ann.post({ text: "x" });
        await l.t.advance("20s");
      },
      { dueAt: expect.any(Number) },
    ],
    [
      "a send for later",
      (l) => l.client.enqueue("x", { delay: "2d" }),
      { dueAt: expect.any(Number) },
    ],
    ["a turn whose handler threw", (l) => l.ann.say("throw"), { failed: 1 }],
    [
      "the first run after a crash",
      async (l) => {
        l.t.crash.before("turn.settle");
        await l.ann.post({ text: "slow" });
        await l.t.advance("70s");
      },
      { dueAt: expect.any(Number) },
    ],
    [
      "a turn that an alarm finds at work",
      async (l) => {
        await l.ann.post({ text: "slow" });
        await l.t.advance("70s");
      },
      { dueAt: expect.any(Number) },
    ],
  ];

  test.each(cases)("is %s", async (_name, act, wanted) => {
    const l = lab({
      setup: (bot, l) => {
        bot.when("slow", () => l().sleep(300_000));
        bot.when("throw", () => Promise.reject(new Error("as asked")));
        echoing(bot);
      },
    });
    await act(l);
    await l.t.advance("1s");
    const { rows } = await l.t.client.durability.chats();
    expect(rows).toEqual([
      {
        address: "mock/mock/ann",
        dead: 0,
        unknown: 0,
        failed: 0,
        at: expect.any(Number),
        ...wanted,
      },
    ]);
  });

  test("goes away once it is done, without anybody asking", async () => {
    const l = lab({
      setup: (bot, l) => void bot.when("slow", () => l().sleep(90_000)),
    });
    await l.ann.post({ text: "slow" });
    await l.client.enqueue("later", { delay: "5m" });
    await l.t.advance("70s");
    expect(await l.t.client.durability.counts()).toEqual({ unfinished: 1, overdue: 0 });
    await l.t.advance("10m");
    expect(await l.t.client.durability.counts()).toEqual({ unfinished: 0, overdue: 0 });
  });

  test("is nothing of a chat that only talked", async () => {
    const l = lab({ setup: echoing });
    await l.ann.say("hi");
    await l.t.advance("10m");
    expect((await l.t.client.durability.chats()).rows).toEqual([]);
  });
});
