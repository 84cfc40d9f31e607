/** Lists, references and quiet: what an operator sees, and that a chat at rest costs nothing. */
import { describe, expect, test } from "vitest";
import type { Fault } from "../../src/testing/index.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

describe("lists", () => {
  const trouble = async () => {
    const l = lab({ setup: echoing });
    l.platform.fault = ({ text }) =>
      text.endsWith("bad") ? { type: "refuse", kind: "permission" } : undefined;
    for (const name of ["ann", "bob", "cem"]) {
      const user = l.t.user(name);
      for (let n = 0; n < 4; n += 1) await user.say(n % 2 === 0 ? "bad" : "good");
    }
    return l;
  };

  test("page through every dead send of every chat exactly once", async () => {
    const l = await trouble();
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await l.t.client.durability.outbox.list({ state: "dead", cursor, limit: 2 });
      expect(page.rows.length).toBeLessThanOrEqual(2);
      seen.push(...page.rows.map((row) => `${row.address} ${row.id}`));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toHaveLength(6);
    expect(new Set(seen).size).toBe(6);
  });

  test("of one chat are newest first, by page, and hold what is needed to act", async () => {
    const l = await trouble();
    const first = await l.client.outbox.list({ state: "dead", limit: 1 });
    const second = await l.client.outbox.list({ state: "dead", limit: 1, cursor: first.cursor });
    const [a, b] = [only(first.rows), only(second.rows)];
    expect(a.at).toBeGreaterThanOrEqual(b.at);
    expect(a).toMatchObject({
      state: "dead",
      kind: "permission",
      error: "refused: permission",
      address: "mock/mock/ann",
    });
    expect(
      await l.t.client.durability.inbox.list({ state: "failed", chat: l.ann.address }),
    ).toMatchObject({
      rows: [{ state: "failed" }, { state: "failed" }],
    });
  });

  test("are empty once an operator dealt with everything", async () => {
    const l = await trouble();
    l.platform.fault = () => undefined;
    const { rows } = await l.t.client.durability.outbox.list({ state: "dead", limit: 200 });
    for (const [n, { ref }] of rows.entries()) {
      const { retrySend, discard } = l.t.client.durability;
      expect(await (n % 2 === 0 ? retrySend(ref) : discard(ref))).toBe(true);
    }
    await l.t.idle();
    const left = await l.t.client.durability.outbox.list({ state: "dead", limit: 200 });
    // Chats that still have a failed turn are listed with all that they keep.
    expect(left.rows.every((row) => row.error === "discarded by an operator")).toBe(true);
  });

  test("refuse what is no reference, and a reference of the wrong kind", async () => {
    const l = await trouble();
    const { replayInbound, retrySend, discard } = l.t.client.durability;
    await expect(discard("nonsense")).rejects.toMatchObject({ code: "config" });
    const send = (await l.client.outbox.list({ state: "dead", limit: 1 })).rows[0]?.ref ?? "";
    const event = (await l.client.inbox.list({ state: "failed", limit: 1 })).rows[0]?.ref ?? "";
    await expect(replayInbound(send)).rejects.toThrow(/retrySend/);
    await expect(retrySend(event)).rejects.toThrow(/replayInbound/);
    await expect(l.client.outbox.list({ limit: 0 })).rejects.toThrow(/limit is 0.*1 to 200/);
    await expect(l.client.outbox.list({ cursor: "x" })).rejects.toMatchObject({ code: "config" });
  });

  test("of what was sent show no error of a try before", async () => {
    const l = lab({ setup: echoing });
    l.platform.failNext({ type: "refuse", kind: "transient" });
    await l.ann.say("hi");
    const row = only((await l.client.outbox.list({ state: "sent" })).rows);
    expect([row.error, row.kind]).toEqual([undefined, ""]);
  });
});

describe("an announcement", () => {
  const dying = (l: () => Lab, listener: () => unknown) =>
    ({
      setup: (bot) => {
        bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`).catch(() => {}));
        bot.on("durability:dead", () => {
          l().notes.push("told");
          return listener();
        });
      },
    }) satisfies Parameters<typeof lab>[0];

  test.each(["listener", "outbox.announced"])(
    "is made at least once when the process dies before %s",
    async (label) => {
      const l: Lab = lab(
        dying(
          () => l,
          () => {},
        ),
      );
      l.platform.failNext({ type: "refuse", kind: "permission" });
      l.t.crash.before(label);
      await l.ann.say("hi");
      await l.t.idle();
      expect(l.notes.length).toBeGreaterThanOrEqual(1);
      expect(only(l.sends()).owed).toBe(0);
    },
  );

  test("is repeated while its listener throws, until it does not, and holds no send", async () => {
    let broken = true;
    const l: Lab = lab(
      dying(
        () => l,
        () => (broken ? Promise.reject(new Error("down")) : undefined),
      ),
    );
    l.platform.failNext({ type: "refuse", kind: "permission" });
    await l.ann.post({ text: "one" });
    await l.ann.post({ text: "two" });
    await l.t.advance("4s");
    expect(l.screen).toEqual(["ok two"]);
    expect(l.notes.length).toBeGreaterThan(1);
    broken = false;
    await l.t.idle();
    const calls = l.notes.length;
    await l.t.advance("1d");
    expect(l.notes).toHaveLength(calls);
  });

  test("whose listener never returns holds no send", async () => {
    const l: Lab = lab(
      dying(
        () => l,
        () => new Promise(() => {}),
      ),
    );
    l.platform.failNext({ type: "refuse", kind: "permission" });
    await l.ann.post({ text: "one" });
    await l.t.advance("1s");
    await l.ann.post({ text: "two" });
    await l.t.advance("1s");
    expect(l.screen).toEqual(["ok two"]);
  });
});

describe("a chat at rest", () => {
  const failing = (fault: Fault) => (l: Lab) => {
    l.platform.failNext(fault);
    return l.ann.say("hi");
  };
  const scenarios: [string, (l: Lab) => Promise<unknown>][] = [
    ["a message", (l) => l.ann.say("hi")],
    ["a refusal", failing({ type: "refuse", kind: "transient" })],
    ["a death", failing({ type: "refuse", kind: "permission" })],
    ["a doubt", failing({ type: "drop" })],
    [
      "a crash",
      (l) => {
        l.t.crash.after("channel.send");
        return l.ann.say("hi");
      },
    ],
    [
      "a bad item",
      (l) => l.receive([{ type: "bad", id: "b", chat: l.ann.chat, error: "x", sample: "" }]),
    ],
    ["a client's send", (l) => l.client.enqueue("x")],
    [
      "a cancelled reminder",
      async (l) => l.client.cancel((await l.client.enqueue("x", { delay: "1h" })).key),
    ],
  ];

  test.each(scenarios.flatMap((one) => [[...one, true] as const, [...one, false] as const]))(
    "after %s sets no alarm but the purge (%#)",
    async (_name, act, heard) => {
      const l = lab({ setup: echoing });
      // Without listeners: what nobody hears must not be owed for ever.
      if (!heard) l.deploy({ setup: echoing });
      await act(l);
      await l.t.idle();
      await l.t.advance("2h");
      const alarm = l.t.runtime.storage("ChatActor", l.actor()).alarm ?? 0;
      expect(alarm - l.now).toBeGreaterThan(86_400_000);
      const runs = l.t.runtime.alarmRuns;
      await l.t.advance("24h");
      expect(l.t.runtime.alarmRuns).toBe(runs);
      expect(l.sends().every((row) => row.due_at === null && row.owed === 0)).toBe(true);
      expect(l.events().every((row) => row.open === 0)).toBe(true);
    },
  );
});
