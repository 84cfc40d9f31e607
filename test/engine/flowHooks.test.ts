/** `/hooks/…`: how third parties continue runs of flows. */
import { describe, expect, test } from "vitest";
import { edgeOf } from "../../src/edge/app.ts";
import { Bot, type Hook } from "../../src/index.ts";
import { MockPlatform, mockProvider, type TestBot, testBot } from "../../src/testing/index.ts";

const hooks: Hook[] = [];

function shop(env: Record<string, unknown> = {}) {
  const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "blind");
  const bot = new Bot({ id: "shop", channels: [mockProvider({ platform })] });
  const pay = bot.flow("pay", async (c) => {
    const paid = c.hook("payment");
    hooks.push(paid);
    await c.reply("Pay, please.");
    const { value } = await c.waitFor({ paid });
    await c.reply(`got ${JSON.stringify(value)}`);
  });
  bot.command("pay", (ctx) => ctx.start(pay));
  const t = testBot(bot, { env });
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const edge = edgeOf({ bot, actors: () => t.runtime, log: () => silent, now: () => t.now });
  const post = async (path: string, init: RequestInit = {}): Promise<[number, unknown]> => {
    const request = new Request(`https://bot.test${path}`, { method: "POST", ...init });
    const response = await edge.fetch(request, t.runtime.env);
    const text = await response.text();
    await t.idle();
    return [response.status, text.startsWith("{") ? JSON.parse(text) : text];
  };
  return { t, post };
}

async function hookOf(t: TestBot): Promise<string> {
  await t.user("ann").say("/pay");
  return `/hooks/${hooks.at(-1)?.token}`;
}

const json = (body: unknown) => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

describe("a hook", () => {
  test("that is posted five times continues its run once, and each is told success", async () => {
    const { t, post } = shop();
    const path = await hookOf(t);
    const answers = [];
    for (let n = 0; n < 5; n += 1) answers.push(await post(path, json({ sum: 7 })));
    expect(answers[0]).toEqual([200, { ok: true, accepted: true }]);
    for (const one of answers.slice(1)) expect(one).toEqual([200, { ok: true, accepted: false }]);
    expect(t.user("ann").screen).toEqual(["Pay, please.", 'got {"sum":7}']);
  });

  test("is answered with success only once it is committed", async () => {
    const { t, post } = shop();
    const path = await hookOf(t);
    t.crash.before("flow.hook");
    expect((await post(path, json(1)))[0]).toBe(500);
    expect(await post(path, json(1))).toEqual([200, { ok: true, accepted: true }]);
    t.crash.after("flow.hook");
    expect(t.user("ann").screen).toEqual(["Pay, please.", "got 1"]);
  });

  test("that is forged, foreign or cut is refused, and tells nothing", async () => {
    const { t, post } = shop();
    const path = await hookOf(t);
    const other = shop({ HOLDFAST_SEAL_KEY: "another-seal-key-of-theirs" });
    for (const bad of [
      `${path.slice(0, -4)}AAAA`,
      path.slice(0, 40),
      "/hooks/x",
      await hookOf(other.t),
      `/hooks/${"A".repeat(9_000)}`,
    ])
      expect(await post(bad, json(1))).toEqual([403, { error: "forbidden" }]);
    expect(t.user("ann").screen).toEqual(["Pay, please."]);
  });

  test("of a run that is over is gone", async () => {
    const { t, post } = shop();
    const path = await hookOf(t);
    await t.user("ann").say("/cancel");
    expect(await post(path, json(1))).toEqual([410, { error: "gone" }]);
  });

  test("takes JSON, forms and text, nothing larger than 256 KiB, and only POST", async () => {
    for (const [init, got] of [
      [{ body: new URLSearchParams({ a: "1" }) }, 'got {"a":"1"}'],
      [{ body: "plain" }, 'got "plain"'],
      [{}, "got null"],
    ] as const) {
      const { t, post } = shop();
      expect((await post(await hookOf(t), init))[0]).toBe(200);
      expect(t.user("ann").screen.at(-1)).toBe(got);
    }
    const { t, post } = shop();
    const path = await hookOf(t);
    expect((await post(path, { body: "x".repeat(262_145) }))[0]).toBe(413);
    expect((await post(path, { method: "GET" }))[0]).toBe(405);
    expect(t.user("ann").screen).toEqual(["Pay, please."]);
  });

  test("shows neither actor nor run in its token, and needs the key", async () => {
    const { t } = shop();
    const path = await hookOf(t);
    const bytes = Buffer.from(path.slice("/hooks/".length), "base64url").toString("latin1");
    expect(bytes).not.toMatch(/shop|ann|pay/);
    const keyless = shop({ HOLDFAST_SEAL_KEY: undefined });
    await keyless.t.user("ann").say("/pay");
    const { rows } = await keyless.t.client.chat(keyless.t.user("ann").address).flows.list();
    expect(rows[0]).toMatchObject({
      state: "failed",
      error: expect.stringContaining("HOLDFAST_SEAL_KEY"),
    });
  });
});
