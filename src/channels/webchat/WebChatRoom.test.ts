import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import type { Host, SqlRow, SqlValue } from "../../host/Host.ts";
import { KEEP_ENTRIES } from "./LogTable.ts";
import type { ClientFrame, Entry, RoomAnswer, ServerFrame } from "./protocol.ts";
import { RETENTION_MS } from "./RoomStore.ts";
import { WebChatRoom } from "./WebChatRoom.ts";

const NAME = "t/e/shop/webchat/s1";
const DAY_MS = 86_400_000;

type Call = { kind: string; name: string; method: string; payload: string };

/** One object's storage and surroundings, over which rooms come and go as incarnations do. */
class World {
  db = new DatabaseSync(":memory:");
  now = 1_800_000_000_000;
  alarmAt: number | undefined;
  alarmWrites = 0;
  deleted = 0;
  calls: Call[] = [];
  /** What the chat's actor answers. */
  receive: (call: Call) => Promise<string> = async () => `{"ok":true,"results":["accepted"]}`;
  failNext: string | undefined;
  log: string[] = [];
  /** Everything that the sockets got. */
  wire: ServerFrame[] = [];
  sockets = 1;

  host(): Host {
    const { log } = this;
    const note = (message: string) => void log.push(message);
    return {
      sql: {
        all: <R extends SqlRow>(query: string, ...params: SqlValue[]) =>
          this.db.prepare(query).all(...params) as R[],
        run: (query, ...params) => Number(this.db.prepare(query).run(...params).changes),
      },
      clock: {
        now: () => this.now,
        setTimer: () => {
          throw new Error("a room must hold no timer");
        },
      },
      actors: {
        call: (kind, name, method, payload) => {
          const call = { kind, name, method, payload };
          this.calls.push(call);
          return this.receive(call);
        },
      },
      log: { debug: note, info: note, warn: note, error: note },
      env: {},
      transaction: (label, fn) => {
        const alarm = this.alarmAt;
        this.db.exec("SAVEPOINT t");
        try {
          const value = fn();
          if (this.failNext === label) {
            this.failNext = undefined;
            throw new Error("database or disk is full: SQLITE_FULL");
          }
          this.db.exec("RELEASE t");
          return value;
        } catch (error) {
          this.db.exec("ROLLBACK TO t; RELEASE t");
          this.alarmAt = alarm;
          throw error;
        }
      },
      setAlarm: (at) => {
        this.alarmAt = at;
        this.alarmWrites += 1;
      },
      deleteAlarm: () => {
        this.alarmAt = undefined;
      },
      deleteAll: async () => {
        this.db = new DatabaseSync(":memory:");
        this.alarmAt = undefined;
        this.deleted += 1;
      },
      random: () => 0.5,
      uuid: () => "u",
      fetch: () => Promise.reject(new Error("a room fetches nothing")),
      keepAlive: () => {},
      rethrowIfHalted: () => {},
      outlive: (work) => work,
      probe: () => {},
    };
  }

  room(name = NAME): WebChatRoom {
    return new WebChatRoom(this.host(), name, {
      send: (text) => void this.wire.push(JSON.parse(text) as ServerFrame),
      count: () => this.sockets,
    });
  }

  /** Fires the alarm as the platform does, on a fresh incarnation. */
  async fire(): Promise<void> {
    if (this.alarmAt === undefined) throw new Error("no alarm is set");
    this.now = Math.max(this.now, this.alarmAt);
    this.alarmAt = undefined;
    await this.room().alarm();
  }

  rows(): number {
    return Number(this.db.prepare("SELECT count(*) AS n FROM log").get()?.n);
  }

  tables(): number {
    return this.db.prepare("SELECT 1 AS x FROM sqlite_master").all().length;
  }
}

let world: World;
let room: WebChatRoom;
beforeEach(() => {
  world = new World();
  room = world.room();
});

/** A socket of a page, and what it alone was sent. */
function socket() {
  const frames: ServerFrame[] = [];
  return {
    frames,
    greeted: false,
    send(text: string) {
      frames.push(JSON.parse(text) as ServerFrame);
    },
    greet() {
      this.greeted = true;
    },
  };
}

async function say(cid: string, text = "hi", at = room) {
  const from = socket();
  await at.message(JSON.stringify({ t: "msg", cid, text } satisfies ClientFrame), from);
  return from.frames;
}

/** What a page gets that has everything up to `lastSeq`. */
function replay(lastSeq = 0, at = room): { entries: Entry[]; frames: ServerFrame[] } {
  const page = socket();
  at.resume(lastSeq, page);
  const entries = page.frames.flatMap((frame) => (frame.t === "log" ? frame.entries : []));
  return { entries, frames: page.frames };
}

function deliver(marker: string, text: string): RoomAnswer {
  return room.deliver({ marker, message: { text } });
}

const acks = () => world.wire.filter((frame) => frame.t === "ack").map((frame) => frame.cid);
const nacks = () => world.wire.filter((frame) => frame.t === "nack");
const texts = (entries: Entry[]) =>
  entries.map((entry) =>
    entry.kind === "user" ? entry.text : "message" in entry ? entry.message.text : entry.kind,
  );

describe("what the user says", () => {
  test("goes to the chat's actor of the same name, as a message under the page's id", async () => {
    await say("cid-00000001", "one soup");
    expect(world.calls).toHaveLength(1);
    expect(world.calls[0]).toMatchObject({ kind: "ChatActor", name: NAME, method: "receive" });
    expect(JSON.parse(world.calls[0]?.payload ?? "")).toEqual({
      connection: "webchat",
      channel: "webchat",
      chat: { id: "s1", kind: "direct" },
      items: [
        {
          type: "event",
          event: {
            id: "cid-00000001",
            kind: "message",
            channel: "webchat",
            connection: "webchat",
            chat: { id: "s1", kind: "direct" },
            sender: { id: "s1" },
            at: world.now,
            text: "one soup",
            messageId: "cid-00000001",
          },
        },
      ],
    });
  });

  test("a press names its message and value", async () => {
    deliver("m1", "soup?");
    const press = { t: "press", cid: "cid-00000001", value: "yes", mid: "m1", label: "Yes" };
    await room.message(JSON.stringify(press), socket());
    const { items } = JSON.parse(world.calls[0]?.payload ?? "") as {
      items: { event: Record<string, unknown> }[];
    };
    expect(items[0]?.event).toMatchObject({
      kind: "action",
      messageId: "m1",
      press: { value: "yes" },
    });
    expect(replay().entries.at(-1)).toMatchObject({ kind: "press", mid: "m1", label: "Yes" });
  });

  test("names are decoded: a session may have any characters", async () => {
    const odd = world.room("t/e/shop/web%2Fchat/a%2Fb%20c");
    await say("cid-00000001", "hi", odd);
    expect(JSON.parse(world.calls[0]?.payload ?? "")).toMatchObject({
      connection: "web/chat",
      chat: { id: "a/b c" },
    });
  });

  test("is acknowledged only after the chat's actor committed", async () => {
    let commit: (answer: string) => void = () => {};
    world.receive = () =>
      new Promise((resolve) => {
        commit = resolve;
      });
    const sending = say("cid-00000001");
    await Promise.resolve();
    // Shown to other tabs, and not acknowledged.
    expect(world.wire.map((frame) => frame.t)).toEqual(["log"]);
    commit(`{"ok":true,"results":["accepted"]}`);
    await sending;
    expect(acks()).toEqual(["cid-00000001"]);
  });

  test("is stored and forwarded once however often the page repeats it", async () => {
    await say("cid-00000001");
    const again = await say("cid-00000001", "something else");
    expect(world.calls).toHaveLength(1);
    expect(again).toEqual([{ t: "ack", cid: "cid-00000001", seq: expect.any(Number) }]);
    expect(texts(replay().entries)).toEqual(["hi"]);
  });

  test("a repeat while the first is under way joins it", async () => {
    let commit: (answer: string) => void = () => {};
    world.receive = () =>
      new Promise((resolve) => {
        commit = resolve;
      });
    const both = [say("cid-00000001"), say("cid-00000001")];
    await Promise.resolve();
    commit(`{"ok":true}`);
    await Promise.all(both);
    expect(world.calls).toHaveLength(1);
    expect(acks()).toEqual(["cid-00000001"]);
  });

  test("stored and not forwarded: the page is told to send again, and that works", async () => {
    world.receive = () => Promise.reject(new Error("reset"));
    await say("cid-00000001");
    expect(acks()).toEqual([]);
    expect(nacks()).toEqual([
      { t: "nack", cid: "cid-00000001", retry: true, afterMs: 2_000, stored: true },
    ]);
    world.receive = async () => `{"ok":true}`;
    await say("cid-00000001");
    expect(acks()).toEqual(["cid-00000001"]);
    expect(texts(replay().entries)).toEqual(["hi"]);
  });

  test("backpressure is a nack with the actor's own wait", async () => {
    world.receive = async () => `{"ok":false,"retryAfterSeconds":30}`;
    await say("cid-00000001");
    expect(nacks()).toMatchObject([{ cid: "cid-00000001", afterMs: 30_000 }]);
    expect(world.alarmAt).toBeGreaterThanOrEqual(world.now + 30_000);
  });

  test("an answer that is none counts as not taken", async () => {
    for (const answer of ["", "null", "{}", `{"ok":"true"}`]) {
      world.receive = async () => answer;
      await say("cid-00000001");
    }
    expect(acks()).toEqual([]);
  });

  test("the process died between storing and forwarding: the next hello hands it over", async () => {
    world.receive = () => new Promise(() => {});
    void say("cid-00000001", "lost?");
    await Promise.resolve();
    world.receive = async () => `{"ok":true}`;
    world.calls = [];
    // The tab is gone; another one opens the session.
    const next = world.room();
    const page = socket();
    await next.message(`{"t":"hello","lastSeq":0}`, page);
    expect(page.greeted).toBe(true);
    expect(world.calls).toHaveLength(1);
    expect(acks()).toEqual(["cid-00000001"]);
  });

  test("what is behind keeps its order: older messages go first, in one call", async () => {
    world.receive = () => Promise.reject(new Error("reset"));
    await say("cid-0000000a", "a");
    await say("cid-0000000b", "b");
    world.receive = async () => `{"ok":true}`;
    world.calls = [];
    await say("cid-0000000c", "c");
    const sent = JSON.parse(world.calls[0]?.payload ?? "") as {
      items: { event: { id: string } }[];
    };
    expect(sent.items.map((item) => item.event.id)).toEqual([
      "cid-0000000a",
      "cid-0000000b",
      "cid-0000000c",
    ]);
    expect(acks()).toEqual(["cid-0000000a", "cid-0000000b", "cid-0000000c"]);
  });

  test("messages that come while a call is under way go in the next one", async () => {
    const commits: ((answer: string) => void)[] = [];
    world.receive = () =>
      new Promise((resolve) => {
        commits.push(resolve);
      });
    const first = say("cid-0000000a");
    const second = say("cid-0000000b");
    await Promise.resolve();
    expect(world.calls).toHaveLength(1);
    commits[0]?.(`{"ok":true}`);
    while (commits.length < 2) await Promise.resolve();
    commits[1]?.(`{"ok":true}`);
    await Promise.all([first, second]);
    expect(acks()).toEqual(["cid-0000000a", "cid-0000000b"]);
  });

  test("nobody comes back: the alarm hands it over, with a growing wait", async () => {
    world.receive = () => Promise.reject(new Error("down"));
    await say("cid-00000001");
    const waits: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      waits.push((world.alarmAt ?? 0) - world.now);
      await world.fire();
    }
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(waits[3]).toBeGreaterThan(2 * (waits[0] ?? 0));
    world.receive = async () => `{"ok":true}`;
    await world.fire();
    expect(acks()).toEqual(["cid-00000001"]);
    // Quiet again: the purge alone.
    expect(world.alarmAt).toBeGreaterThan(world.now + RETENTION_MS - DAY_MS);
  });

  test("storage refuses: the page keeps it, and nothing was forwarded", async () => {
    world.failNext = "webchat.store";
    const answers = await say("cid-00000001");
    expect(answers).toEqual([
      { t: "nack", cid: "cid-00000001", retry: true, afterMs: 2_000, stored: false },
    ]);
    expect(world.calls).toHaveLength(0);
    await say("cid-00000001");
    expect(acks()).toEqual(["cid-00000001"]);
  });

  test("noting the success fails: it is forwarded again under the same id", async () => {
    world.failNext = "webchat.forwarded";
    await say("cid-00000001");
    expect(acks()).toEqual([]);
    await say("cid-00000001");
    expect(acks()).toEqual(["cid-00000001"]);
    expect(world.calls.map((call) => call.payload)).toEqual([
      world.calls[0]?.payload,
      world.calls[0]?.payload,
    ]);
  });

  test("a bot that is away for long fills no storage", async () => {
    world.receive = () => Promise.reject(new Error("down"));
    for (let i = 0; i < 210; i += 1) await say(`cid-${String(i).padStart(8, "0")}`);
    expect(world.rows()).toBe(200);
    expect(await say("cid-overflow")).toMatchObject([{ t: "nack", stored: false }]);
    world.receive = async () => `{"ok":true}`;
    await say("cid-overflow");
    await say("cid-overflow");
    expect(acks()).toHaveLength(201);
  });

  test.each([
    ["no JSON", "{", { t: "error", code: "malformed" }],
    ["no object", "[1]", { t: "error", code: "unsupported" }],
    ["an unknown frame", `{"t":"shout"}`, { t: "error", code: "unsupported" }],
    [
      "an id that is none",
      `{"t":"msg","cid":"cron:x/1","text":"a"}`,
      { t: "error", code: "malformed" },
    ],
    [
      "no text",
      `{"t":"msg","cid":"cid-00000001","text":" \\n"}`,
      { t: "error", code: "empty", cid: "cid-00000001" },
    ],
    [
      "too much text",
      JSON.stringify({ t: "msg", cid: "cid-00000001", text: "x".repeat(16_001) }),
      { t: "error", code: "too_long", cid: "cid-00000001" },
    ],
    [
      "too much data",
      JSON.stringify({ t: "press", cid: "cid-00000001", mid: "m1", value: "é".repeat(501) }),
      { t: "error", code: "too_long", cid: "cid-00000001" },
    ],
  ])("%s is refused for good", async (_name, text, expected) => {
    const from = socket();
    await room.message(text, from);
    expect(from.frames).toEqual([expected]);
    expect(world.calls).toHaveLength(0);
    expect(world.tables()).toBe(0);
  });
});

describe("what the bot says", () => {
  test("is recorded once per marker, whatever the repeat holds", () => {
    const first = deliver("m1", "hello");
    const again = deliver("m1", "hello, changed");
    expect(again).toEqual(first);
    expect(texts(replay().entries)).toEqual(["hello"]);
    expect(world.wire.map((frame) => frame.t)).toEqual(["log", "repeat"]);
  });

  test("is kept for a page that is away", () => {
    world.sockets = 0;
    expect(deliver("m1", "hello")).toMatchObject({ ok: true, id: "m1" });
    expect(texts(replay().entries)).toEqual(["hello"]);
  });

  test("a page's id cannot take a marker's place", async () => {
    await say("marker-0001");
    deliver("marker-0001", "hello");
    expect(texts(replay().entries)).toEqual(["hi", "hello"]);
  });

  test("is edited in place", () => {
    deliver("m1", "thinking");
    const seen = replay().entries.at(-1)?.seq ?? 0;
    deliver("m2", "other");
    expect(room.edit({ id: "m1", message: { text: "thought" } })).toMatchObject({ ok: true });
    // A page that had it learns of the edit, a new one sees the result where the message stood.
    expect(replay(seen).entries).toMatchObject([
      { kind: "bot", mid: "m2" },
      { kind: "edit", mid: "m1", message: { text: "thought" } },
    ]);
    expect(texts(replay().entries)).toEqual(["thought", "other", "thought"]);
  });

  test("edits of a stream leave one note, and repeats none", () => {
    deliver("m1", "0");
    for (let i = 1; i <= 50; i += 1) room.edit({ id: "m1", message: { text: String(i) } });
    const rows = world.rows();
    const before = world.wire.length;
    expect(rows).toBe(2);
    room.edit({ id: "m1", message: { text: "50" } });
    expect(world.wire).toHaveLength(before);
  });

  test("is removed, and a late repeat does not bring it back", () => {
    deliver("m1", "soon gone");
    const seen = replay().entries.at(-1)?.seq ?? 0;
    expect(room.remove({ id: "m1" })).toMatchObject({ ok: true });
    expect(room.remove({ id: "m1" })).toMatchObject({ ok: true });
    deliver("m1", "soon gone");
    expect(replay().entries).toMatchObject([{ kind: "remove", mid: "m1" }]);
    expect(replay(seen).entries).toMatchObject([{ kind: "remove", mid: "m1" }]);
    expect(room.edit({ id: "m1", message: { text: "x" } })).toMatchObject({ kind: "not_found" });
  });

  test("what is not there cannot be changed, and the look leaves no storage", () => {
    expect(room.edit({ id: "m9", message: { text: "x" } })).toMatchObject({
      ok: false,
      kind: "not_found",
    });
    expect(room.remove({ id: "m9" })).toMatchObject({ ok: false, kind: "not_found" });
    expect(world.tables()).toBe(0);
  });

  test("typing is shown and not recorded", async () => {
    await room.call("typing", "{}");
    expect(world.wire).toEqual([{ t: "typing", ms: expect.any(Number) }]);
    expect(world.tables()).toBe(0);
  });

  test("a message that no row should hold is refused, with proof that nothing was done", async () => {
    const payload = JSON.stringify({ marker: "m1", message: { text: "x".repeat(200_000) } });
    expect(JSON.parse(await room.call("deliver", payload))).toMatchObject({
      ok: false,
      kind: "payload_too_large",
    });
    expect(JSON.parse(await room.call("deliver", "{}"))).toMatchObject({
      ok: false,
      kind: "invalid_payload",
    });
    expect(world.tables()).toBe(0);
  });

  test("storage refuses: the call throws, so the outbox repeats it under the same marker", async () => {
    world.failNext = "webchat.deliver";
    const payload = JSON.stringify({ marker: "m1", message: { text: "hello" } });
    await expect(room.call("deliver", payload)).rejects.toThrow("SQLITE_FULL");
    expect(JSON.parse(await room.call("deliver", payload))).toMatchObject({ ok: true });
    expect(texts(replay().entries)).toEqual(["hello"]);
  });

  test("an unknown method is an error", async () => {
    await expect(room.call("receive", "{}")).rejects.toThrow('no method "receive"');
  });
});

describe("a page that comes back", () => {
  test("gets what is after its last number, in order, then ready", async () => {
    await say("cid-00000001", "one");
    deliver("m1", "two");
    const { entries } = replay();
    const [one] = entries;
    const page = replay(one?.seq);
    expect(texts(page.entries)).toEqual(["two"]);
    expect(page.frames.map((frame) => frame.t)).toEqual(["log", "ready"]);
    expect(page.frames.at(-1)).toEqual({ t: "ready", seq: entries.at(-1)?.seq });
    expect(replay(entries.at(-1)?.seq).frames.map((frame) => frame.t)).toEqual(["ready"]);
  });

  test("numbers go on over incarnations", () => {
    deliver("m1", "one");
    room = world.room();
    deliver("m2", "two");
    const [one, two] = replay().entries;
    expect(two?.seq).toBe((one?.seq ?? 0) + 1);
  });

  test("an unused session has no storage", async () => {
    const page = socket();
    await room.message(`{"t":"hello","lastSeq":0}`, page);
    expect(page.frames).toEqual([{ t: "ready", seq: 0 }]);
    expect(world.tables()).toBe(0);
  });

  test("a page that is ahead starts anew", () => {
    deliver("m1", "one");
    const { frames } = replay(Number.MAX_SAFE_INTEGER);
    expect(frames[0]).toEqual({ t: "log", entries: [], replay: true, reset: true });
    expect(frames[1]).toMatchObject({ t: "log", entries: [{ mid: "m1" }] });
  });

  test("a long history comes in frames that memory can hold", () => {
    for (let i = 0; i < 60; i += 1) deliver(`m${i}`, "x".repeat(100_000));
    const { entries, frames } = replay();
    const sizes = frames.map((frame) => JSON.stringify(frame).length);
    expect(Math.max(...sizes)).toBeLessThan(300_000);
    // The newest two million characters; the rest is further back than a page is for.
    expect(entries.length).toBe(20);
    expect(entries.at(-1)).toMatchObject({ mid: "m59" });
  });

  test("a hello without a number is one from the start", async () => {
    deliver("m1", "one");
    const page = socket();
    await room.message(`{"t":"hello","lastSeq":-3}`, page);
    expect(page.frames.map((frame) => frame.t)).toEqual(["log", "ready"]);
  });
});

describe("what is kept", () => {
  test("the newest entries are; markers outlive them", () => {
    for (let i = 0; i < KEEP_ENTRIES + 450; i += 1) deliver(`m${i}`, "text");
    const { entries } = replay();
    expect(entries.length).toBeGreaterThanOrEqual(KEEP_ENTRIES);
    expect(entries.length).toBeLessThanOrEqual(KEEP_ENTRIES + 250);
    expect(entries.at(-1)).toMatchObject({ mid: `m${KEEP_ENTRIES + 449}` });
    // The first one is long gone from the page, and still known.
    deliver("m0", "text");
    expect(world.wire.at(-1)).toEqual({ t: "repeat", mid: "m0" });
  });

  test("users' old messages go altogether, but not what the bot has not got", async () => {
    await say("cid-00000001", "taken");
    world.receive = () => Promise.reject(new Error("down"));
    await say("cid-00000002", "waiting");
    for (let i = 0; i < KEEP_ENTRIES + 250; i += 1) deliver(`m${i}`, "text");
    const kept = world.db.prepare("SELECT key FROM log WHERE kind = 'user'").all();
    expect(kept).toEqual([{ key: "u/cid-00000002" }]);
  });

  test("a streamed answer does not push the conversation out", () => {
    deliver("m1", "the first");
    deliver("m2", "");
    for (let i = 0; i < 3 * KEEP_ENTRIES; i += 1) {
      room.edit({ id: "m2", message: { text: String(i) } });
    }
    expect(texts(replay().entries)[0]).toBe("the first");
  });

  test("old entries are purged by the alarm, and an empty session leaves nothing", async () => {
    deliver("m1", "one");
    expect(world.alarmAt).toBe(world.now + RETENTION_MS + DAY_MS);
    world.now += 20 * DAY_MS;
    deliver("m2", "two");
    await world.fire();
    room = world.room();
    expect(texts(replay().entries)).toEqual(["two"]);
    expect(world.deleted).toBe(0);
    await world.fire();
    expect(world.deleted).toBe(1);
    expect(world.alarmAt).toBeUndefined();
    // A page that was open all the time goes on: numbers never start over.
    const before = world.now * 1_000;
    room = world.room();
    deliver("m3", "three");
    expect(replay().entries[0]?.seq).toBeGreaterThanOrEqual(before);
  });

  test("a purge of many takes slices", async () => {
    for (let i = 0; i < 1_200; i += 1) deliver(`m${i}`, "text");
    await world.fire();
    expect(world.rows()).toBe(700);
    let wakes = 0;
    while (world.alarmAt !== undefined) {
      await world.fire();
      wakes += 1;
    }
    expect(world.deleted).toBe(1);
    expect(wakes).toBeLessThanOrEqual(3);
  });

  test("one alarm is written for many messages, also by incarnations that remember nothing", () => {
    for (let i = 0; i < 10; i += 1) {
      room = world.room();
      deliver(`m${i}`, "text");
      world.now += 60_000;
    }
    expect(world.alarmWrites).toBe(1);
  });

  test("a lost alarm is set again by the next message", () => {
    deliver("m1", "one");
    world.alarmAt = undefined;
    world.now += RETENTION_MS + 2 * DAY_MS;
    room = world.room();
    deliver("m2", "two");
    expect(world.alarmAt).toBeGreaterThan(world.now);
    expect(world.alarmAt).toBeLessThan(world.now + 1_000);
  });

  test("an alarm that comes too early sets the next", async () => {
    deliver("m1", "one");
    world.alarmAt = undefined;
    await world.room().alarm();
    expect(world.alarmAt).toBe(world.now + RETENTION_MS + DAY_MS);
  });

  test("an alarm of a session without storage makes none", async () => {
    await room.alarm();
    expect(world.tables()).toBe(0);
    expect(world.alarmAt).toBeUndefined();
  });
});
