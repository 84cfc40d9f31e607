/** Answers that are shown as drafts, and what an edit leaves behind that comes late. */
import { describe, expect, test } from "vitest";
import { ModelStream } from "../../src/testing/index.ts";
import { type Code, lab, only } from "./lab.ts";
import { prose, streaming, words } from "./streamLab.ts";

const drafts = (draft: "direct" | "all"): Partial<Code> => ({
  capabilities: { streaming: { everyMs: 1_000, draft } },
});
const model = { tokensPerSecond: 25 };

describe("a draft", () => {
  test("grows in a chat with a person, and the answer is its only message", async () => {
    const l = streaming(prose(1_000), { ...drafts("direct"), model });
    await l.ann.post({ text: "go" });
    await l.t.advance("5s");
    expect(l.screen).toEqual([]);
    expect(l.platform.drafts.length).toBeGreaterThan(2);
    await l.t.idle();
    expect(l.screen).toEqual([prose(1_000)]);
    expect(l.platform.ledger).toHaveLength(1);
    expect(l.platform.revisions).toEqual([]);
    expect(new Set(l.platform.drafts.map(({ id }) => id)).size).toBe(1);
    for (const { text } of l.platform.drafts) expect(prose(1_000).startsWith(text)).toBe(true);
    // What is only shown costs no record.
    expect(l.sends()).toHaveLength(1);
  });

  test("is for people: a group gets edits, unless the platform shows drafts everywhere", async () => {
    for (const where of ["direct", "all"] as const) {
      const l = streaming(prose(1_000), { ...drafts(where), model });
      await l.t.user("ann", { chat: "g" }).say("go");
      expect(l.platform.drafts.length > 0).toBe(where === "all");
      expect(l.platform.revisions.length > 0).toBe(where === "direct");
    }
  });

  test("that the platform does not take is an edit from then on", async () => {
    const l = streaming(prose(1_000), { ...drafts("direct"), model });
    l.platform.fault = ({ changes }) =>
      changes !== undefined && l.platform.ledger.length === 0
        ? { type: "refuse", kind: "not_found" }
        : undefined;
    await l.ann.say("go");
    expect(l.screen).toEqual([prose(1_000)]);
    expect(l.platform.drafts).toEqual([]);
    const refused = l.platform.calls.length - l.platform.revisions.length - 1;
    expect(refused).toBe(1);
    await l.ann.say("again");
    expect(l.platform.calls.filter(({ changes }) => changes?.length === 16)).toHaveLength(1);
  });

  test("that was refused for the moment is tried again", async () => {
    const l = streaming(prose(1_000), { ...drafts("direct"), model });
    l.platform.failNext({ type: "refuse", kind: "transient" });
    await l.ann.say("go");
    expect(l.platform.drafts.length).toBeGreaterThan(3);
    expect(l.platform.revisions).toEqual([]);
    expect(l.screen).toEqual([prose(1_000)]);
  });

  test("is shown again while its source is silent, since platforms forget it", async () => {
    const l = lab({
      ...drafts("direct"),
      setup: (bot, of) =>
        bot.otherwise((ctx) =>
          ctx.stream(
            (async function* () {
              yield "Let me think";
              await of().sleep(90_000);
              yield ": 42.";
            })(),
          ),
        ),
    });
    await l.ann.say("go");
    await l.t.advance("2m");
    const times = l.platform.drafts.map(({ at }) => at);
    expect(times.length).toBeGreaterThan(3);
    for (const [n, at] of times.entries())
      expect(at - (times[n - 1] ?? at)).toBeLessThanOrEqual(25_000);
    expect(l.screen).toEqual(["Let me think: 42."]);
  });

  test("of a long answer: what is complete is a message, the rest a draft", async () => {
    const text = { limit: 300, unit: "codepoints" as const };
    const { capabilities } = drafts("direct");
    const l = streaming(prose(1_000), { capabilities: { ...capabilities, text }, model });
    await l.ann.post({ text: "go" });
    await l.t.advance("8s");
    expect(l.screen.length).toBeGreaterThanOrEqual(2);
    await l.t.idle();
    expect(words(l.screen.join(" "))).toBe(words(prose(1_000)));
    expect(l.platform.ledger).toHaveLength(4);
  });

  test("whose source fails becomes a message, so that it is not gone in half a minute", async () => {
    const fails = { afterTokens: 200, error: new Error("down") };
    const l = streaming(prose(2_000), { ...drafts("direct"), model: { fails } });
    await l.ann.say("go");
    await l.t.idle();
    expect(words(only(l.screen))).toBe(words(prose(2_000).slice(0, 800)));
  });
});

describe("an edit that had no answer", () => {
  test("and lands after the last one is made good", async () => {
    const l = streaming(prose(1_000), { durability: { outbox: { sendTimeoutMs: 5_000 } }, model });
    let late = "";
    l.platform.fault = ({ changes, text }) => {
      if (changes === undefined || late !== "" || text.length < 500) return undefined;
      late = text;
      return { type: "hang" };
    };
    await l.ann.post({ text: "go" });
    await l.t.advance("13s");
    expect(l.screen).toEqual([prose(1_000)]);
    l.platform.edit("m1", late);
    await l.t.advance("30s");
    expect(l.screen).toEqual([prose(1_000)]);
    expect(l.platform.ledger).toHaveLength(1);
  });
});

describe("an answer that can no longer be an edit", () => {
  test("is a message of its own, and the preview goes once that was accepted", async () => {
    const l = streaming(prose(1_000), { model });
    l.platform.fault = ({ changes, text }) =>
      changes !== undefined && text.length === prose(1_000).length
        ? { type: "refuse", kind: "permission" }
        : undefined;
    await l.ann.say("go");
    await l.t.idle();
    expect(l.screen).toEqual([prose(1_000)]);
    expect(l.platform.ledger).toMatchObject([{ deleted: true }, { deleted: false }]);
  });

  test("takes its later parts along, so that none overtakes it", async () => {
    const text = { limit: 300, unit: "codepoints" as const };
    let refuse = false;
    const l = lab({
      capabilities: { text },
      setup: (bot) => {
        bot.before("send", (send) => {
          refuse = !send.preview;
          if (refuse) send.content = `Really: ${prose(1_000)}`;
        });
        bot.otherwise((ctx) => ctx.stream(new ModelStream(prose(1_000), model)));
      },
    });
    l.platform.fault = ({ changes }) =>
      refuse && changes === "m1" ? { type: "refuse", kind: "permission" } : undefined;
    await l.ann.say("go");
    await l.t.idle();
    expect(words(l.screen.join(" "))).toBe(words(`Really: ${prose(1_000)}`));
    expect(l.platform.ledger.filter(({ deleted }) => deleted).length).toBeGreaterThan(2);
  });

  test("nor a message keeps its preview: it says more than nothing", async () => {
    const l = streaming(prose(1_000), { model });
    l.platform.fault = ({ text }) =>
      text.length === prose(1_000).length ? { type: "refuse", kind: "permission" } : undefined;
    await l.ann.say("go");
    await l.t.idle();
    expect(only(l.screen).length).toBeGreaterThan(500);
    expect(l.told("durability:dead")).toHaveLength(1);
  });

  test("shrinks: parts that it no longer has are removed", async () => {
    const text = { limit: 300, unit: "codepoints" as const };
    const l = lab({
      capabilities: { text },
      setup: (bot) => {
        bot.before("send", (send) => {
          if (!send.preview) send.content = "In short: no.";
        });
        bot.otherwise((ctx) => ctx.stream(new ModelStream(prose(1_000), model)));
      },
    });
    await l.ann.say("go");
    await l.t.idle();
    expect(l.screen).toEqual(["In short: no."]);
  });
});
