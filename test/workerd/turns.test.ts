import { describe, expect, it } from "vitest";
import { gate, sim, startsOf, TestChat, until } from "./harness.ts";

describe("an update that the platform delivers more than once", () => {
  it("is one turn and one reply, though it came five times at once", async () => {
    const chat = new TestChat();
    const update = chat.update("/count");
    const answers = await Promise.all(Array.from({ length: 5 }, () => chat.deliver(update)));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200, 200]);
    await chat.receives(["count 1"]);
    await chat.settles();
    expect(chat.replies).toEqual(["count 1"]);
    expect(startsOf(String(update.update_id))).toBe(1);
    expect(await chat.client("getState", { key: "count" })).toBe(1);
  });

  it("is one turn, though it comes again while its handler runs and after it ended", async () => {
    const chat = new TestChat();
    const slow = gate();
    const update = chat.update(`/slow ${slow.name}`);
    await chat.deliver(update);
    await slow.reached();
    expect((await chat.deliver(update)).status).toBe(200);
    slow.open();
    await chat.receives(["slow 1"]);
    await chat.settles();
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.say("over");
    await chat.receives(["slow 1", "you said: over"]);
    expect(startsOf(String(update.update_id))).toBe(1);
  });

  it("is known after the object was gone", async () => {
    const chat = new TestChat();
    const update = chat.update("/count");
    await chat.deliver(update);
    await chat.receives(["count 1"]);
    await chat.settles();
    await chat.dies();
    expect((await chat.deliver(update)).status).toBe(200);
    await chat.say("/count");
    await chat.receives(["count 1", "count 2"]);
  });
});

describe("many messages in one chat", () => {
  it("are answered in the order in which they came: thirty of them, faster than they can be answered", async () => {
    const chat = new TestChat();
    const expected: string[] = [];
    for (let n = 1; n <= 30; n += 1) {
      await chat.say(`message ${n}`);
      expected.push(`you said: message ${n}`);
    }
    await chat.receives(expected);
    await chat.settles();
    expect(chat.replies).toEqual(expected);
  });

  it("stay in order when the platform says `later` to one in the middle, and it is not asked too early", async () => {
    const chat = new TestChat();
    sim.fault({
      type: "rateLimit",
      retryAfter: 1,
      method: "sendMessage",
      when: ({ params }) => params.text === "you said: message 5",
    });
    const expected: string[] = [];
    for (let n = 1; n <= 10; n += 1) {
      await chat.say(`message ${n}`);
      expected.push(`you said: message ${n}`);
    }
    await chat.receives(expected);
    const calls = sim.calls.filter(
      ({ params }) => params.chat_id === chat.id && params.text === "you said: message 5",
    );
    expect(calls).toHaveLength(2);
    expect((calls[1]?.at ?? 0) - (calls[0]?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
    const record = await chat.client<{ attempts: number }>("outbox.get", {
      key: await keyOf(chat, "you said: message 5"),
    });
    expect(record.attempts).toBe(0);
  });

  it("run one at a time: no turn starts before the one before it has ended", async () => {
    const chat = new TestChat();
    const [first, second] = [gate(), gate()];
    await chat.say(`/slow ${first.name}`);
    const after = await chat.say(`/slow ${second.name}`);
    await first.reached();
    expect(startsOf(after)).toBe(0);
    first.open();
    await second.reached();
    expect(chat.replies).toEqual(["slow 1"]);
    second.open();
    await chat.receives(["slow 1", "slow 2"]);
  });
});

describe("many chats", () => {
  it("run at the same time: ten slow handlers, all of them in the middle at once", async () => {
    const chats = Array.from({ length: 10 }, () => new TestChat());
    const slow = gate();
    await Promise.all(chats.map((chat) => chat.say(`/slow ${slow.name}`)));
    await slow.reached(10);
    slow.open();
    await Promise.all(chats.map((chat) => chat.receives(["slow 1"])));
  });

  it("do not wait for the slow handler of another", async () => {
    const stuck = new TestChat();
    const others = Array.from({ length: 9 }, () => new TestChat());
    const slow = gate();
    await stuck.say(`/slow ${slow.name}`);
    await slow.reached();
    await Promise.all(others.map((chat) => chat.say("hello")));
    await Promise.all(others.map((chat) => chat.receives(["you said: hello"])));
    expect(stuck.sent).toEqual([]);
    slow.open();
    await stuck.receives(["slow 1"]);
  });

  it("do not wait for a platform that does not answer another", async () => {
    const stuck = new TestChat();
    const other = new TestChat();
    const mine = ({ params }: { params: Record<string, unknown> }) =>
      String(params.chat_id) === String(stuck.id);
    sim.fault({ type: "hang", accepted: true, method: "sendMessage", when: mine });
    await stuck.say("hello");
    await until(() => stuck.sent.length === 1 || undefined);
    await other.say("hello");
    await other.receives(["you said: hello"]);
  });
});

describe("a handler", () => {
  it("that throws loses neither what it said nor the messages behind it, and leaves no state", async () => {
    const chat = new TestChat();
    const id = await chat.say("/throw");
    await chat.say("/count");
    await chat.receives(["before the throw", "count 1"]);
    const { rows } = await chat.client<{ rows: object[] }>("inbox.list", { state: "failed" });
    expect(rows).toMatchObject([
      { id, state: "failed", error: expect.stringContaining("as the test asked") },
    ]);
  });

  it("gets the data of a pressed button, also where it is longer than the platform allows", async () => {
    const chat = new TestChat();
    await chat.say("/menu");
    await until(() => chat.sent[0]);
    const buttons =
      sim
        .screen(chat.id)
        .find((message) => message.buttons)
        ?.buttons?.flat() ?? [];
    expect(buttons.map((button) => button.text)).toEqual(["Soup", "Feast"]);
    for (const { data = "" } of buttons) {
      const messageId = chat.sent[0]?.messageId ?? "";
      const press = sim.callbackUpdate({ chatId: chat.id, messageId, data });
      expect((await chat.deliver(press)).status).toBe(200);
    }
    const feast = `${"feast ".repeat(30)}it is`;
    await chat.receives(["what will it be?", "you picked soup", `you picked ${feast}`]);
    await chat.settles();
    expect(await chat.client("getState", { key: "pressed" })).toBe(feast);
    const answers = sim.pressAnswers.map((answer) => answer.text?.slice(0, 5));
    expect(answers).toEqual(["soup ", "feast"]);
  });

  it("says two things in their order, a 9,000-character text whole and in its order", async () => {
    const chat = new TestChat();
    await chat.say("/twice");
    await chat.receives(["one", "two"]);
    const long = Array.from({ length: 1_500 }, (_unused, n) => `${n}`.padStart(5, "0")).join(" ");
    await chat.client("send", { content: long });
    const parts = chat.replies.slice(2);
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.join(" ").replace(/\s+/g, " ")).toBe(long);
  });
});

/** The key of the send with this text. */
async function keyOf(chat: TestChat, text: string): Promise<string> {
  const { rows } = await chat.client<{ rows: { key: string }[] }>("outbox.list", { limit: 200 });
  for (const { key } of rows) {
    const { content } = await chat.client<{ content?: { text?: string } }>("outbox.get", { key });
    if (content?.text === text) return key;
  }
  throw new Error(`no send says ${text}`);
}
