import { describe, expect, test } from "vitest";
import type { ServerFrame } from "./protocol.ts";
import { RETENTION_MS } from "./RoomStore.ts";
import {
  acks,
  DAY_MS,
  deliver,
  NAME,
  nacks,
  reopen,
  replay,
  room,
  say,
  socket,
  texts,
  world,
} from "./roomLab.ts";

describe("what the bot is writing", () => {
  const drafts = (frames: ServerFrame[]) => frames.filter((frame) => frame.t === "draft");

  test("is shown to pages as what is new of it, and never recorded", () => {
    room.draft({ id: "d", message: { text: "one" } });
    room.draft({ id: "d", message: { text: "one two" } });
    room.draft({ id: "e", message: { text: "one" } });
    expect(world.wire).toEqual([
      { t: "draft", id: "d", keep: 0, text: "one" },
      { t: "draft", id: "d", keep: 3, text: " two" },
      { t: "draft", id: "e", keep: 0, text: "one" },
    ]);
    expect(world.tables()).toBe(0);
  });

  test("is told as a whole to a page that comes later, and by a room that lost its memory", () => {
    room.draft({ id: "d", message: { text: "one" } });
    room.draft({ id: "d", message: { text: "one two" } });
    expect(drafts(replay().frames)).toEqual([{ t: "draft", id: "d", keep: 0, text: "one two" }]);
    reopen();
    room.draft({ id: "d", message: { text: "one two three" } });
    expect(drafts(world.wire).at(-1)).toMatchObject({ keep: 0, text: "one two three" });
  });

  test("is over with the message, and after half a minute of silence", () => {
    room.draft({ id: "d", message: { text: "one" } });
    deliver("m1", "one two");
    expect(drafts(replay().frames)).toEqual([]);
    room.draft({ id: "f", message: { text: "x" } });
    world.now += 30_000;
    expect(drafts(replay().frames)).toEqual([]);
  });
});

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
