/** A bot that downloads what its users send can be tested, restarts included. */
import { afterEach, describe, expect, test } from "vitest";
import { Bot, type Channel, loadMediaOf, telegram, webchat } from "../index.ts";
import { MockProvider, type TestBot, testBot } from "./index.ts";

const open: TestBot[] = [];
afterEach(() => {
  for (const t of open.splice(0)) t.close();
});

/** A bot that says how many bytes came, or why none did. */
// biome-ignore lint/suspicious/noExplicitAny: any channel will do
function setUp(channel: Channel<any>) {
  const bot = new Bot({ id: "files", channels: [channel] });
  bot.otherwise(async (ctx) => {
    try {
      const file = await loadMediaOf(ctx, { maxBytes: 10, throwOnError: true });
      await ctx.reply(`${file?.bytes.byteLength} bytes`);
    } catch (error) {
      const { code, reason = code } = error as { code: string; reason?: string };
      await ctx.reply(`none: ${reason}`);
    }
  });
  const t = testBot(bot);
  open.push(t);
  return { t, ann: t.user("ann") };
}

describe("a file that a user sends", () => {
  test("to the stand-in of a channel with media is downloaded, also after a crash", async () => {
    const { t, ann } = setUp(telegram());
    const media = [{ kind: "image" as const, ref: t.platform().addFile(new Uint8Array(7)) }];
    await ann.send({ text: "look", media });
    t.crash.before("turn.handler");
    await ann.send({ text: "again", media });
    expect(ann.screen).toEqual(["7 bytes", "7 bytes"]);
  });

  test("that is too large, or unknown, is none", async () => {
    const { t, ann } = setUp(new MockProvider({ media: true }));
    await ann.send({ media: [{ kind: "file", ref: t.platform().addFile(new Uint8Array(11)) }] });
    await ann.send({ media: [{ kind: "file", ref: { fileId: "other" } }] });
    expect(ann.screen).toEqual(["none: payload_too_large", "none: rehydrate-failed"]);
  });

  test("to a channel without media is none, with the reason", async () => {
    const { ann } = setUp(webchat());
    await ann.send({ media: [{ kind: "file", ref: { fileId: "x" } }] });
    expect(ann.screen).toEqual(["none: not-durable"]);
  });
});

test("references of another channel, and what is none, are refused with their reason", () => {
  const { media } = new MockProvider({ media: true, name: "pager" });
  const ref = { kind: "file" as const, ref: {} };
  const stored = { v: 1, provider: "pager", data: { fileId: "f" } };
  expect(media?.rehydrateMediaRef(stored, ref)).toEqual({ kind: "file", ref: { fileId: "f" } });
  const reasonOf = (bad: object) => {
    try {
      media?.rehydrateMediaRef({ ...stored, ...bad }, ref);
    } catch (error) {
      return (error as { reason?: string }).reason;
    }
    return undefined;
  };
  expect(reasonOf({ provider: "slack" })).toBe("provider-mismatch");
  expect(reasonOf({ v: 2 })).toBe("rehydrate-failed");
  expect(reasonOf({ data: {} })).toBe("rehydrate-failed");
  expect(media?.serializeMediaRef(ref)).toBeUndefined();
});
