/** Corners that no other file has: bad dates, hung hooks, lost connections, secrets, logs. */
import { describe, expect, test } from "vitest";
import { Bot } from "../../src/index.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { mockProvider } from "../../src/testing/index.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

describe("a date that is none", () => {
  const bad = new Date("next tuesday");

  test("is refused, instead of a reminder that never comes", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          l().notes.push(
            await ctx.enqueue("reminder", { at: bad }).catch((error: unknown) => error),
          );
          l().notes.push(
            await ctx.enqueue("code", { notAfter: bad }).catch((error: unknown) => error),
          );
        }),
    });
    await l.ann.say("hi");
    await l.t.advance("1h");
    expect(l.notes).toMatchObject([{ code: "config" }, { code: "config" }]);
    expect(l.sends()).toEqual([]);
  });

  test("is refused from a client, too, instead of a reminder that comes at once", async () => {
    const l = lab({ setup: echoing });
    await expect(l.client.enqueue("reminder", { at: bad })).rejects.toMatchObject({
      code: "config",
    });
    await l.t.idle();
    expect(l.screen).toEqual([]);
  });
});

test('a before("send") hook that hangs costs its own turn, not every later message of the chat', async () => {
  const l = lab({
    durability: { inbox: { turnTimeoutMs: 20_000 } },
    setup: (bot) => {
      bot.before("send", (send) => (send.content === "ok one" ? new Promise(() => {}) : undefined));
      echoing(bot);
    },
  });
  await l.ann.say("one");
  await l.ann.say("two");
  expect(l.screen).toEqual(["ok two"]);
});

describe("a bot that no longer has the connection of a chat", () => {
  const orphaned = async (): Promise<Lab> => {
    const l = lab({ setup: echoing });
    await l.client.enqueue("reminder", { delay: "1h", idempotencyKey: "r" });
    const other = mockProvider({ platform: l.platform, connection: "other" });
    const bot = new Bot({ id: "lab", channels: [other] });
    const make = l.t.runtime.make;
    l.t.runtime.make = (host, kind, name) =>
      kind === "ChatActor" ? new Chat(host, bot, name) : make(host, kind, name);
    l.t.runtime.kill();
    return l;
  };

  test("gives its sends up, where an operator finds them", async () => {
    const l = await orphaned();
    await l.t.advance("3h");
    expect(l.states).toEqual(["dead"]);
  });

  test("does not wake the chat every second for ever", async () => {
    const l = await orphaned();
    await l.t.advance("2h");
    const alarms = l.t.runtime.alarmRuns;
    await l.t.advance("1h");
    expect(l.t.runtime.alarmRuns - alarms).toBeLessThan(60);
  });
});

test("a platform that is down for an hour does not cost a write per second and chat", async () => {
  const l = lab({ setup: echoing });
  l.platform.fault = () => ({ type: "drop" });
  l.platform.healthy = () => false;
  await l.ann.post({ text: "hi" });
  await l.t.advance("1m");
  const alarms = l.t.runtime.alarmRuns;
  await l.t.advance("1h");
  expect(l.t.runtime.alarmRuns - alarms).toBeLessThan(120);
});

test("a secret in a transport error reaches neither the journal nor an announcement", async () => {
  const l = lab({ durability: { outbox: { onAmbiguous: "skip" } }, setup: echoing });
  l.t.runtime.env.TELEGRAM_BOT_TOKEN = "4711:AAH-secret_value";
  l.t.channel("mock").outbound.send = () =>
    Promise.reject(
      new TypeError("fetch failed: https://api.telegram.org/bot4711:AAH-secret_value/sendMessage"),
    );
  await l.ann.say("hi");
  const row = only(l.sends());
  expect(row.state).toBe("unknown");
  expect(JSON.stringify(row)).not.toContain("AAH-secret_value");
});

test("replaying a record that never was a readable event does not pass it off as handled", async () => {
  const l = lab({ setup: echoing });
  await l.receive([{ type: "bad", id: "bad", chat: l.ann.chat, error: "no sender", sample: "{" }]);
  await l.t.idle();
  await l.client.inbox.replay("bad");
  await l.t.idle();
  expect(await l.client.inbox.get("bad")).toMatchObject({ state: "dead" });
});

describe("the log of a chat", () => {
  const long = () =>
    lab({
      capabilities: { text: { limit: 10, unit: "codepoints" } },
      setup: (bot) => bot.otherwise((ctx) => ctx.reply("the first\n\nthe second")),
    });

  test("read page by page holds everything once, in order, each event before its sends", async () => {
    const l = long();
    await l.ann.say("one");
    await l.client.enqueue("x", { idempotencyKey: "k" });
    await l.ann.say("two");
    const seen: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await l.client.log({ after, limit: 2 });
      if (page.length === 0) break;
      seen.push(...page.map((entry) => `${entry.type} ${entry.id}`));
      after = page.at(-1)?.cursor;
    }
    expect(seen).toEqual([
      "event e1",
      "send e1:0",
      "send e1:0#2",
      "send k",
      "event e2",
      "send e2:0",
      "send e2:0#2",
    ]);
  });

  test("names the parts of a send as every other list does", async () => {
    const l = long();
    await l.client.enqueue("the first\n\nthe second", { idempotencyKey: "k" });
    await l.t.idle();
    expect((await l.client.log()).map((entry) => entry.id)).toEqual(["k", "k#2"]);
  });
});

test("the kit kills at every step that a test named, also where two are named at once", async () => {
  const l = lab({ class: "keyed", setup: echoing });
  l.t.crash.after("channel.send", 1);
  l.t.crash.after("channel.send", 2);
  await l.ann.say("hi");
  expect(l.platform.calls).toHaveLength(3);
  expect(l.screen).toEqual(["ok hi"]);
});
