import { describe, expect, test } from "vitest";
import { KEEP_ENTRIES } from "./LogTable.ts";
import { RETENTION_MS } from "./RoomStore.ts";
import { DAY_MS, deliver, reopen, replay, room, say, socket, texts, world } from "./roomLab.ts";

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
    reopen();
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
    reopen();
    expect(texts(replay().entries)).toEqual(["two"]);
    expect(world.deleted).toBe(0);
    await world.fire();
    expect(world.deleted).toBe(1);
    expect(world.alarmAt).toBeUndefined();
    // A page that was open all the time goes on: numbers never start over.
    const before = world.now * 1_000;
    reopen();
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
      reopen();
      deliver(`m${i}`, "text");
      world.now += 60_000;
    }
    expect(world.alarmWrites).toBe(1);
  });

  test("a lost alarm is set again by the next message", () => {
    deliver("m1", "one");
    world.alarmAt = undefined;
    world.now += RETENTION_MS + 2 * DAY_MS;
    reopen();
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
