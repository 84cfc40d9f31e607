/** How durable one send is, and what cannot be recorded. */
import { describe, expect, test } from "vitest";
import { type Content, PayloadTooLargeError, type SendOptions } from "../../src/index.ts";
import { type Lab, lab, only } from "./lab.ts";

/** Replies with `content` and notes the result or the error. */
function saying(
  content: () => Content,
  options: SendOptions = {},
  more: Partial<Parameters<typeof lab>[0]> = {},
): Lab {
  return lab({
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push(await ctx.reply(content(), options).catch((error: unknown) => error));
        await ctx.reply("next");
      }),
    ...more,
  });
}

const cycle = (): Content => {
  const native: Record<string, unknown> = {};
  native.self = native;
  return { text: "round", native: native as never };
};

describe("content that cannot be recorded", () => {
  const small = { durability: { outbox: { maxPayloadBytes: 200 } } };

  test("for its size goes out without a record, in order, and is counted", async () => {
    const l = saying(() => "x".repeat(300), {}, small);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["x".repeat(300), "next"]);
    expect(only(l.notes)).toMatchObject({
      key: "e1:0",
      status: "sent",
      receipt: { primaryId: "m1" },
    });
    expect(l.sends()).toHaveLength(1);
    expect((await l.metrics()).outboxBypassed).toBe(1);
  });

  test("is measured in bytes", async () => {
    const l = saying(() => "漢".repeat(80), {}, small);
    await l.ann.say("hi");
    expect((await l.metrics()).outboxBypassed).toBe(1);
  });

  test("because it is no JSON goes out without a record, and is counted", async () => {
    const l = saying(cycle);
    await l.ann.say("hi");
    expect(l.screen).toEqual(["round", "next"]);
    expect((await l.metrics()).outboxBypassed).toBe(1);
  });

  test("is refused where the bot requires a record: no record, no call", async () => {
    for (const content of [cycle, () => "x".repeat(300)]) {
      const l = saying(content, { durability: "required" }, small);
      await l.ann.say("hi");
      expect(l.notes).toEqual([expect.any(PayloadTooLargeError)]);
      expect(l.notes[0]).toMatchObject({ key: "e1:0" });
      expect(l.screen).toEqual(["next"]);
      expect((await l.metrics()).outboxBypassed).toBe(0);
    }
  });

  test("and is refused by the platform throws like any other send", async () => {
    const l = saying(() => "x".repeat(300), {}, small);
    l.platform.failNext({ type: "refuse", kind: "recipient_unreachable" });
    await l.ann.say("hi");
    expect(only(l.notes)).toMatchObject({ name: "RecipientUnreachableError" });
  });

  test("and may have been said is answered as unknown", async () => {
    const l = saying(() => "x".repeat(300), {}, small);
    l.platform.failNext({ type: "acceptThenDrop" });
    await l.ann.say("hi");
    expect(only(l.notes)).toMatchObject({ status: "unknown" });
    expect(l.platform.calls).toHaveLength(2);
  });

  test("still passes the hook that could have stopped or changed it", async () => {
    const l = lab({
      ...small,
      setup: (bot) => {
        bot.before("send", (send) => send.cancel("opted out"));
        bot.otherwise(async (ctx) => {
          await ctx.reply("x".repeat(300));
          await ctx.reply("short", { durability: "disabled" });
        });
      },
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual([]);
  });
});

test("no row is larger than production allows: content and request of one send share it", async () => {
  // Within the default maxPayloadBytes; on a platform with long messages (mail, web chat).
  const l = saying(
    () => "x".repeat(1_040_000),
    {},
    { capabilities: { text: { limit: 4_000_000, unit: "codepoints" } } },
  );
  await l.ann.say("hi");
  const sizes = l.sql<{ bytes: number }>(
    "SELECT length(CAST(content AS BLOB)) + length(CAST(request AS BLOB)) AS bytes FROM outbox WHERE content IS NOT NULL",
  );
  for (const { bytes } of sizes) expect(bytes).toBeLessThanOrEqual(1_900_000);
});

describe("durability: disabled", () => {
  test("leaves no record, and says the message in its place", async () => {
    const l = lab({
      setup: (bot) =>
        bot.otherwise(async (ctx) => {
          const said = ["a", "b", "c"].map((text) =>
            ctx.reply(text, text === "b" ? { durability: "disabled" } : {}),
          );
          await Promise.all(said);
        }),
    });
    await l.ann.say("hi");
    expect([...l.screen].sort()).toEqual(["a", "b", "c"]);
    expect(l.sends()).toHaveLength(2);
    expect((await l.metrics()).outboxBypassed).toBe(0);
  });

  test("keeps the ordinals of the others, so that a replay doubles only this one", async () => {
    const l = lab({
      setup: (bot, l) =>
        bot.otherwise(async (ctx) => {
          await ctx.reply("unrecorded", { durability: "disabled" });
          await ctx.reply("recorded");
          if (ctx.attempt === 1) {
            await l().sleep(1);
            l().t.runtime.kill();
            await new Promise(() => {});
          }
        }),
    });
    await l.ann.say("hi");
    expect(l.screen).toEqual(["unrecorded", "recorded", "unrecorded"]);
  });
});

describe("a journal that refuses to record a send", () => {
  const refusing = (options: SendOptions) => {
    const l = saying(() => "hello", options);
    let left = 1;
    l.refuseCommits((label) => {
      if (label !== "outbox.insert") return false;
      left -= 1;
      return left >= 0;
    });
    return l;
  };

  test("fails the send by default: what is not recorded is not said", async () => {
    const l = refusing({});
    await l.ann.say("hi");
    expect(String(only(l.notes))).toMatch(/SQLITE_FULL/);
    expect(l.screen).toEqual(["next"]);
  });

  test("fails a send that requires a record", async () => {
    const l = refusing({ durability: "required" });
    await l.ann.say("hi");
    expect(String(only(l.notes))).toMatch(/SQLITE_FULL/);
    expect(l.screen).toEqual(["next"]);
  });

  test("does not stop one that asked for best effort", async () => {
    const l = refusing({ durability: "best_effort" });
    await l.ann.say("hi");
    expect(only(l.notes)).toMatchObject({ status: "sent" });
    expect(l.screen).toEqual(["hello", "next"]);
  });
});

test("bytes are recorded as base64 and reach the platform after a restart", async () => {
  const l = lab({ setup: () => {} });
  const bytes = Uint8Array.from({ length: 70_000 }, (_u, n) => n % 256);
  await l.client.enqueue(
    { media: { kind: "file", bytes, filename: "a.bin" } },
    { delay: "1h", idempotencyKey: "k" },
  );
  await l.t.restart();
  const content = (await l.client.outbox.get("k"))?.content as {
    media: { base64: string; filename: string }[];
  };
  expect(Buffer.from(content.media[0]?.base64 ?? "", "base64").equals(bytes)).toBe(true);
  expect(content.media[0]).toMatchObject({ filename: "a.bin", kind: "file" });
});

test("content that the channel cannot carry is an error, never something else", async () => {
  const l = saying(() => ({ template: { name: "welcome" } }));
  await l.ann.say("hi");
  expect(only(l.notes)).toMatchObject({ code: "unsupported_content", retryable: false });
  expect(l.screen).toEqual(["next"]);
});

test("nothing to say is an error that says what is allowed", async () => {
  const l = saying(() => ({}));
  await l.ann.say("hi");
  expect(only(l.notes)).toMatchObject({ code: "config" });
});
