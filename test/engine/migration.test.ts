/** A platform renames a chat: the old actor goes on owning it, and nothing is lost on the way. */
import { describe, expect, test } from "vitest";
import type { InboundItem } from "../../src/channels/channel.ts";
import { RetryTurn } from "../../src/channels/errors.ts";
import { chatActorName } from "../../src/objects/names.ts";
import { type Code, type Lab, lab } from "./lab.ts";

const OLD = "ann";
const NEW = "-100";

/** A bot that counts in its state and answers slowly. */
function group(more: Partial<Code> = {}): Lab {
  const l = lab({
    setup: (bot, l) => {
      bot.otherwise(async (ctx) => {
        const n = ctx.state.update<number>("n", (n) => (n ?? 0) + 1);
        if (ctx.text === "slow") await l().sleep(5_000);
        await ctx.reply(`${ctx.text} ${n}`);
      });
    },
    ...more,
  });
  // Like the platform: the old id refuses and names the new one, once the group has moved.
  const moved = { yet: false };
  l.platform.fault = (call) =>
    moved.yet && call.chat === OLD ? { type: "moved", to: NEW } : undefined;
  return Object.assign(l, { move: () => (moved.yet = true) });
}

const move = (l: Lab) => (l as Lab & { move(): void }).move();
const nameOf = (l: Lab, chat: string) => chatActorName(l.bot.scope, "mock", chat);
const said = (l: Lab, chat: string) =>
  l.platform.ledger.filter((entry) => entry.chat === chat).map((entry) => entry.text);

/** Delivers under a chat's platform id, as the edge does. */
async function deliver(l: Lab, chat: string, item: InboundItem) {
  if (item.type !== "event") throw new Error("an event, please");
  const info = { id: chat, kind: "group" as const };
  const request = {
    connection: "mock",
    channel: "mock",
    chat: info,
    items: [{ type: "event", event: { ...item.event, chat: info } }],
  };
  const answer = await l.t.runtime.call(
    "ChatActor",
    nameOf(l, chat),
    "receive",
    JSON.stringify(request),
  );
  return JSON.parse(answer);
}

const toEvent = (l: Lab) => l.message("to", "", { kind: "mock:moved", migration: { to: NEW } });
const fromEvent = (l: Lab) =>
  l.message("from", "", { kind: "mock:moved", migration: { from: OLD } });

describe("a group that moves", () => {
  test("in the middle of a turn: the reply arrives in the new group once; state and order are kept", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    await deliver(l, OLD, l.message("b", "slow"));
    await l.t.advance(1_000);
    move(l);
    await deliver(l, OLD, toEvent(l));
    await deliver(l, NEW, fromEvent(l));
    await deliver(l, NEW, l.message("c", "three"));
    await l.t.idle();
    expect(said(l, OLD)).toEqual(["one 1"]);
    expect(said(l, NEW)).toEqual(["slow 2", "three 3"]);
    expect(await l.t.client.chat({ channel: "mock", chat: NEW }).state.get("n")).toBe(3);
    expect(await l.t.client.chat({ channel: "mock", chat: OLD }).state.get("n")).toBe(3);
  });

  test("learned from a refusal alone: later messages under the new name reach the old actor", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    move(l);
    await deliver(l, OLD, l.message("b", "two"));
    await l.t.idle();
    await deliver(l, NEW, l.message("c", "three"));
    await l.t.idle();
    expect(said(l, NEW)).toEqual(["two 2", "three 3"]);
    const rows = l.sends();
    expect(rows.map((row) => row.attempts)).toEqual([0, 0, 0]);
  });

  test("learned from the first event of the new name alone", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    move(l);
    await deliver(l, NEW, fromEvent(l));
    await deliver(l, NEW, l.message("c", "two"));
    await l.t.idle();
    expect(said(l, NEW)).toEqual(["two 2"]);
  });

  test("a bot that never spoke in the old group owns the new one under its new name", async () => {
    const l = group();
    await deliver(l, NEW, fromEvent(l));
    await deliver(l, NEW, l.message("c", "hello"));
    await l.t.idle();
    expect(said(l, NEW)).toEqual(["hello 1"]);
    expect(l.t.runtime.names("ChatActor")).toContain(nameOf(l, NEW));
  });

  test("while the new name ends what it had, the platform is asked to come back", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    move(l);
    await deliver(l, NEW, l.message("x", "slow"));
    await l.t.advance(100);
    const later = { ok: false, retryAfterSeconds: 1, reason: "moving" };
    expect(await deliver(l, NEW, fromEvent(l))).toEqual(later);
    expect(await deliver(l, NEW, l.message("y", "next"))).toEqual(later);
    await l.t.idle();
    await deliver(l, NEW, l.message("y", "next"));
    await l.t.idle();
    // Its own count: the old actor's state is the chat's.
    expect(said(l, NEW)).toEqual(["slow 1", "next 2"]);
  });

  test("work of the new name that does not end holds the chat up for half a minute", async () => {
    const l = lab({
      setup: (bot, l) => {
        bot.otherwise(async (ctx) => {
          if (ctx.text === "stuck") await l().sleep(600_000);
          await ctx.reply(ctx.text);
        });
      },
    });
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    await deliver(l, NEW, l.message("x", "stuck"));
    await l.t.advance(100);
    await deliver(l, NEW, fromEvent(l));
    for (let second = 0; second < 35; second += 1) {
      await deliver(l, NEW, l.message("y", "next"));
      await l.t.advance(1_000);
    }
    expect(said(l, NEW)).toEqual(["next"]);
  });

  test("a turn that rests for days does not keep the chat's new messages from its owner", async () => {
    const l = lab({
      setup: (bot) => {
        bot.otherwise((ctx) => {
          if (ctx.text === "in a week") throw new RetryTurn({ after: "7d" });
          return ctx.reply(ctx.text);
        });
      },
    });
    await deliver(l, OLD, l.message("a", "one"));
    await deliver(l, NEW, l.message("x", "in a week"));
    await l.t.idle();
    await deliver(l, NEW, fromEvent(l));
    expect(await deliver(l, NEW, l.message("y", "next"))).toMatchObject({ ok: true });
    await l.t.idle();
    const owner = l.t.runtime.storage("ChatActor", nameOf(l, OLD));
    expect(owner.all("SELECT id FROM inbox WHERE id = 'y'", [])).toHaveLength(1);
  });

  test("a key that the new name has used is not sent twice, and can be cancelled there", async () => {
    const l = group();
    const at = (chat: string) => l.t.client.chat({ channel: "mock", chat });
    await deliver(l, OLD, l.message("a", "one"));
    await at(NEW).send("once", { idempotencyKey: "k" });
    await at(NEW).enqueue("never", { idempotencyKey: "later", delay: "1h" });
    await deliver(l, NEW, fromEvent(l));
    await l.t.idle();
    await at(NEW).send("once", { idempotencyKey: "k" });
    expect(await at(NEW).cancel("later")).toBe(true);
    await l.t.advance("2h");
    expect(l.platform.ledger.map((entry) => entry.text)).toEqual(["one 1", "once"]);
  });

  test("what the new name has on record is not handled again by the old actor", async () => {
    const l = group();
    await deliver(l, NEW, l.message("x", "hello"));
    await l.t.idle();
    await deliver(l, OLD, l.message("a", "one"));
    await deliver(l, OLD, toEvent(l));
    await l.t.idle();
    expect(await deliver(l, NEW, l.message("x", "hello"))).toEqual({
      ok: true,
      results: ["duplicate"],
    });
  });

  test("a move whose commit is refused happens with its redelivery, whole", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    move(l);
    // The disk fails in the middle of the commit, once the move is known in memory.
    l.damage("CREATE TRIGGER full BEFORE INSERT ON meta BEGIN SELECT RAISE(ABORT, 'full'); END");
    await expect(deliver(l, OLD, toEvent(l))).rejects.toThrow("full");
    l.damage("DROP TRIGGER full");
    await deliver(l, OLD, toEvent(l));
    await l.t.idle();
    await deliver(l, NEW, l.message("c", "two"));
    await l.t.idle();
    expect(said(l, NEW)).toEqual(["two 2"]);
  });

  test("renamed once more while its first new name is told: the second is told as well", async () => {
    const NEWER = "-200";
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    let second: Promise<unknown> | undefined;
    l.t.runtime.onCall = (_kind, name, method) => {
      if (method !== "forward" || name !== nameOf(l, NEW) || second !== undefined) return;
      const again = l.message("to-2", "", { kind: "mock:moved", migration: { to: NEWER } });
      second = deliver(l, OLD, again);
    };
    await deliver(l, OLD, toEvent(l));
    await l.t.advance("1m");
    expect(await second).toMatchObject({ ok: true });
    await deliver(l, NEWER, l.message("c", "two"));
    await l.t.idle();
    expect(said(l, NEWER)).toEqual(["two 2"]);
  });

  test("actors that were made to point at each other: one of them takes over, and nothing is lost", async () => {
    const l = group();
    for (const chat of [OLD, NEW]) {
      await deliver(l, chat, l.message(`hi-${chat}`, "hi"));
      await l.t.idle();
    }
    for (const [chat, to] of [
      [OLD, NEW],
      [NEW, OLD],
    ] as const) {
      const payload = JSON.stringify({ to: nameOf(l, to) });
      await l.t.runtime.call("ChatActor", nameOf(l, chat), "forward", payload);
    }
    const sent = await l.t.client.chat({ channel: "mock", chat: OLD }).enqueue("hello");
    expect(sent.status).toBe("deferred");
    expect(await deliver(l, NEW, l.message("x", "x"))).toMatchObject({ ok: true });
    expect(await deliver(l, OLD, l.message("y", "y"))).toMatchObject({ ok: true });
    await l.t.idle();
    expect(l.platform.ledger.map((entry) => entry.text)).toEqual([
      "hi 1",
      "hi 1",
      "hello",
      "x 2",
      "y 3",
    ]);
  });

  test("a client that knows either name reaches one chat", async () => {
    const l = group();
    await deliver(l, OLD, l.message("a", "one"));
    await l.t.idle();
    move(l);
    await deliver(l, OLD, toEvent(l));
    await l.t.idle();
    for (const chat of [OLD, NEW]) {
      await l.t.client.chat({ channel: "mock", chat }).enqueue(`hi ${chat}`);
    }
    await l.t.idle();
    expect(said(l, NEW)).toEqual([`hi ${OLD}`, `hi ${NEW}`]);
    const { rows } = await l.t.client.chat({ channel: "mock", chat: NEW }).inbox.list();
    expect(rows.map((row) => row.id)).toEqual(["to", "a"]);
  });

  const labels = ["inbox.receive", "migration.installed", "migration.forward", "outbox.markSent"];
  for (const label of labels) {
    for (const side of ["before", "after"] as const) {
      test(`killed ${side} ${label}, every message is answered once in one state`, async () => {
        const l = group({ class: "keyed" });
        await deliver(l, OLD, l.message("a", "one"));
        await l.t.idle();
        move(l);
        l.t.crash[side](label);
        const insist = async (chat: string, item: InboundItem) => {
          for (let tries = 0; tries < 4; tries += 1) {
            try {
              return await deliver(l, chat, item);
            } catch {
              await l.t.advance(1_000);
            }
          }
          throw new Error("never admitted");
        };
        await insist(OLD, toEvent(l));
        await insist(NEW, fromEvent(l));
        await insist(NEW, l.message("c", "two"));
        await l.t.idle();
        await l.t.advance("1h");
        await insist(NEW, l.message("d", "three"));
        await l.t.idle();
        await l.t.advance("1h");
        expect(said(l, NEW)).toEqual(["two 2", "three 3"]);
      });
    }
  }
});
