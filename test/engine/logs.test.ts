/** Log lines at the default level: JSON that names records, and neither what people wrote nor a secret. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { edgeOf } from "../../src/edge/app.ts";
import { consoleLog } from "../../src/objects/DurableHost.ts";
import { type Code, type Lab, lab } from "./lab.ts";

const SECRET = "4200:very-secret-token/with+signs";
const WORDS = "the pin of my card is 9251";
const LEVELS = ["debug", "info", "warn", "error"] as const;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Every line that was written, by level. */
function captured(): { level: string; text: string }[] {
  const lines: { level: string; text: string }[] = [];
  for (const level of LEVELS) {
    vi.spyOn(console, level).mockImplementation((...parts: unknown[]) => {
      lines.push({ level, text: parts.map(String).join(" ") });
    });
  }
  return lines;
}

const env = { MOCK_TOKEN: SECRET, HOLDFAST_ADMIN_TOKEN: "an-operator-token" };

/** A bot whose platform answers errors that quote the secret, as a URL in an exception does. */
function chatty(code: Omit<Code, "setup" | "log"> = {}): Lab {
  return lab({
    ...code,
    log: consoleLog({ bot: "lab" }, env),
    setup: (bot) => {
      bot.when(/^throw/, () => {
        throw new Error(`GET https://api.test/bot${SECRET}/file failed`);
      });
      bot.on("durability:dead", () => Promise.reject(new Error(`cannot mail ${SECRET}`)));
      bot.otherwise((ctx) => ctx.reply(`you said: ${ctx.text}`).catch(() => {}));
    },
  });
}

const trouble: [string, Omit<Code, "setup" | "log">, (l: Lab) => Promise<unknown>][] = [
  ["a message that is answered", {}, (l) => l.ann.say(WORDS)],
  ["a handler that throws", {}, (l) => l.ann.say(`throw ${WORDS}`)],
  [
    "a send that dies",
    {},
    (l) => {
      l.platform.failNext({ type: "refuse", kind: "permission" });
      return l.ann.say(WORDS);
    },
  ],
  [
    "a send that nobody knows about",
    {},
    (l) => {
      l.t.crash.after("channel.send");
      return l.ann.say(WORDS);
    },
  ],
  [
    "a send that is refused again and again",
    { durability: { outbox: { retries: 2 } } },
    (l) => {
      l.platform.fault = () => ({ type: "refuse", kind: "transient" });
      return l.ann.say(WORDS);
    },
  ],
  [
    "an event that is given up",
    { durability: { inbox: { maxAttempts: 2, minAgeMs: 0 } } },
    async (l) => {
      l.t.runtime.onProbe = ({ label, side }) => label === "turn.settle" && side === "before";
      await l.ann.post({ text: WORDS });
      await l.t.advance("1h");
    },
  ],
  [
    "a malformed item",
    {},
    (l) =>
      l.receive([{ type: "bad", id: "b1", chat: l.ann.chat, error: "no text", sample: WORDS }]),
  ],
  [
    "a payload that bypasses the journal",
    { durability: { outbox: { maxPayloadBytes: 20 } } },
    (l) => l.ann.say(WORDS),
  ],
  [
    "a journal that refuses",
    {},
    async (l) => {
      let left = 3;
      l.refuseCommits((label) => {
        if (label !== "turn.settle" || left === 0) return false;
        left -= 1;
        return true;
      });
      await l.ann.post({ text: WORDS });
      await l.t.advance("10m");
    },
  ],
];

describe("what is logged of", () => {
  test.each(trouble)("%s", async (_name, code, act) => {
    const lines = captured();
    const l = chatty(code);
    await act(l);
    await l.t.advance("5m");
    const all = lines.map((line) => line.text).join("\n");
    expect(all).not.toContain(WORDS);
    expect(all).not.toContain("9251");
    expect(all).not.toContain(SECRET);
    expect(all).not.toContain(encodeURIComponent(SECRET));
    for (const { level, text } of lines) {
      expect(JSON.parse(text)).toMatchObject({
        level,
        message: expect.stringMatching(/\S/),
        bot: "lab",
        actor: expect.stringMatching(/^main\/production\/lab\//),
      });
    }
  });

  test("trouble names its record", async () => {
    const lines = captured();
    const l = chatty();
    await l.ann.say(`throw ${WORDS}`);
    l.platform.failNext({ type: "refuse", kind: "permission" });
    await l.ann.say(WORDS);
    const parsed = lines.map(({ text }) => JSON.parse(text) as Record<string, unknown>);
    const thrown = parsed.find((line) => line.message === "a handler threw");
    expect(thrown).toMatchObject({ id: l.events()[0]?.id, actor: l.actor() });
    expect(thrown?.error).toContain("[redacted]");
    expect(parsed.find((line) => line.message === "a durability listener failed")).toBeDefined();
  });

  test("nothing at all is what a message that is answered leaves at the default level", async () => {
    const lines = captured();
    await chatty().ann.say("hello");
    expect(lines).toEqual([]);
  });

  test("a wrong bearer and a request that fails", async () => {
    const lines = captured();
    const l = chatty();
    const app = edgeOf({
      bot: l.bot,
      actors: () => l.t.runtime,
      log: (own) => consoleLog({ bot: "lab" }, own),
      now: () => l.now,
    });
    await app.request("/admin/chats", { headers: { authorization: `Bearer ${SECRET}` } }, env);
    l.t.runtime.onCall = () => {
      throw new Error(`broken: ${SECRET} ${env.HOLDFAST_ADMIN_TOKEN}`);
    };
    const headers = { authorization: `Bearer ${env.HOLDFAST_ADMIN_TOKEN}` };
    expect((await app.request("/admin/metrics", { headers }, env)).status).toBe(500);
    expect(lines).toHaveLength(1);
    const [line] = lines;
    expect(line?.text).not.toContain(SECRET);
    expect(line?.text).not.toContain(env.HOLDFAST_ADMIN_TOKEN);
    expect(JSON.parse(line?.text ?? "")).toMatchObject({ level: "error", path: "/admin/metrics" });
  });
});
