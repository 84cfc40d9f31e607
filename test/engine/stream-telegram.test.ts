/** Streamed answers on Telegram as it is: drafts for people, edits in groups, its limits kept. */
import { describe, expect, test } from "vitest";
import type { StreamOptions } from "../../src/index.ts";
import { ModelStream } from "../../src/testing/index.ts";
import { prose, words } from "./streamLab.ts";
import { TelegramLab } from "./telegramLab.ts";

const answering = (text: string, tokensPerSecond = 50, options: StreamOptions = {}): TelegramLab =>
  new TelegramLab((bot, l) => {
    bot.otherwise((ctx) =>
      ctx.stream(new ModelStream(text, { tokensPerSecond, clock: l.runtime.clock }), options),
    );
  });

const said = (l: TelegramLab, chat: number) =>
  l.sim.screen(chat).flatMap(({ from, text }) => (from === "bot" ? [text] : []));

/** The most calls in any time of this length. */
function most(l: TelegramLab, ms: number, method: RegExp): number {
  const times = l.sim.calls.filter((call) => method.test(call.method)).map(({ at }) => at);
  return Math.max(0, ...times.map((t) => times.filter((u) => u >= t && u < t + ms).length));
}

describe("a stream of 12,000 characters at 50 tokens a second", () => {
  test("to a person is drafts, then three messages, over 429 and a lost answer", async () => {
    const l = answering(prose(12_000));
    l.sim.fault({
      type: "rateLimit",
      retryAfter: 5,
      when: ({ method }) => method === "sendMessageDraft",
    });
    l.sim.fault({ type: "rateLimit", retryAfter: 7, method: "sendMessage" });
    l.sim.fault({ type: "acceptThenDrop", method: "sendMessageDraft", times: 2 });
    await l.deliver(l.sim.messageUpdate({ chatId: 501, text: "go" }));
    await l.runtime.advance(10_000);
    expect(l.sim.draft(501)?.length).toBeGreaterThan(500);
    expect(said(l, 501)).toEqual([]);
    await l.runtime.advance(120_000);
    expect(words(said(l, 501).join(" "))).toBe(words(prose(12_000)));
    expect(said(l, 501)).toHaveLength(3);
    expect(l.sim.draft(501)).toBeUndefined();
    expect(most(l, 60_000, /./)).toBeLessThanOrEqual(65);
  });

  test("to a group is edits within 20 calls a minute, over 429 and a lost answer", async () => {
    const l = answering(prose(12_000));
    l.sim.fault({ type: "rateLimit", retryAfter: 9, method: "editMessageText" });
    l.sim.fault({
      type: "acceptThenDrop",
      when: ({ method, params }) =>
        method === "editMessageText" && String(params.text).length > 3_000,
    });
    await l.deliver(l.sim.messageUpdate({ chatId: -501, from: { id: 7 }, text: "@sim_bot go" }));
    await l.runtime.advance(180_000);
    expect(words(said(l, -501).join(" "))).toBe(words(prose(12_000)));
    expect(said(l, -501)).toHaveLength(3);
    expect(l.sim.sent).toHaveLength(3);
    expect(most(l, 60_000, /^editMessageText$/)).toBeGreaterThan(8);
    expect(most(l, 60_000, /./)).toBeLessThanOrEqual(20);
  });
});

test("markdown that is cut short is shown as far as it goes, and whole in the end", async () => {
  const text = "**Bold** and `code`:\n\n```js\nconst a = 1;\n```\n\n- one\n- [two](https://x.org)";
  const l = answering(text, 5, { format: "markdown" });
  await l.deliver(l.sim.messageUpdate({ chatId: 501, text: "go" }));
  await l.runtime.advance(60_000);
  expect(said(l, 501)).toEqual(["Bold and code:\n\nconst a = 1;\n\n• one\n• two"]);
  expect(l.sim.calls.filter(({ method }) => method === "sendMessageDraft").length).toBeGreaterThan(
    2,
  );
});
