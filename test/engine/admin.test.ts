/** The admin API over HTTP, without the Workers runtime: who gets in, what is refused, what is answered. */
import { describe, expect, test } from "vitest";
import { edgeOf } from "../../src/edge/app.ts";
import type { Log, LogFields } from "../../src/host/Host.ts";
import { METRICS } from "../../src/objects/Metrics.ts";
import type { Listing } from "../../src/turns/Client.ts";
import { echoing, type Lab, lab } from "./lab.ts";

const TOKEN = "operator-token-0123456789";

/** What an answer holds, as far as tests look. */
interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown> & {
    error?: { code: string; message: string };
    rows?: Listing<string>["rows"];
    cursor?: string;
  };
}

/** The admin API of a lab's bot. */
function adminOf(l: Lab, more: Record<string, unknown> = {}) {
  const logged: { level: string; message: string; fields: LogFields | undefined }[] = [];
  const say = (level: string) => (message: string, fields?: LogFields) => {
    logged.push({ level, message, fields });
  };
  const log: Log = {
    debug: say("debug"),
    info: say("info"),
    warn: say("warn"),
    error: say("error"),
  };
  const { runtime } = l.t;
  const app = edgeOf({
    bot: l.bot,
    actors: () => runtime,
    log: () => log,
    now: () => runtime.clock.now(),
    clock: runtime.clock,
  });
  const env = { HOLDFAST_ADMIN_TOKEN: TOKEN, ...more };
  const ask = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...init.headers };
    const response = await app.request(`https://bot.test${path}`, { ...init, headers }, env);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : {},
    };
  };
  const post = (path: string, body: unknown) =>
    ask(path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  return { ask, post, logged };
}

/** A lab with a dead send and a failed turn of ann, and one of bob. */
async function troubled() {
  const l = lab({ setup: echoing });
  l.platform.fault = ({ text }) =>
    text === "ok bad" ? { type: "refuse", kind: "auth" } : undefined;
  await l.ann.say("good");
  await l.ann.say("bad");
  await l.t.user("bob").say("bad");
  l.platform.fault = () => undefined;
  return { l, ...adminOf(l) };
}

const ANN = encodeURIComponent("mock/mock/ann");

describe("the door", () => {
  test.each([undefined, "", "  "])("is not there while the token is %j", async (token) => {
    const { ask } = adminOf(lab({ setup: echoing }), { HOLDFAST_ADMIN_TOKEN: token });
    const off = await ask("/admin/chats", { headers: { authorization: "Bearer " } });
    const nowhere = await ask("/no/such/path");
    expect([off.status, off.text]).toEqual([404, nowhere.text]);
  });

  test.each([
    ["nothing", {}],
    ["another token", { authorization: "Bearer operator-token-0123456788" }],
    ["part of it", { authorization: "Bearer operator-token" }],
    ["more than it", { authorization: `Bearer ${TOKEN}x` }],
    ["another scheme", { authorization: `Basic ${TOKEN}` }],
    ["no token", { authorization: "Bearer" }],
  ])("refuses %s, without detail, and asks no actor", async (_name, headers) => {
    const l = lab({ setup: echoing });
    const app = edgeOf({
      bot: l.bot,
      actors: () => l.t.runtime,
      log: () => l.t.runtime.log,
      now: () => 0,
    });
    for (const path of ["/admin/chats", "/admin/no-such-route", "/admin"]) {
      const response = await app.request(path, { headers }, { HOLDFAST_ADMIN_TOKEN: TOKEN });
      expect([path, response.status]).toEqual([path, 401]);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await response.json()).toEqual({
        error: { code: "unauthorized", message: "unauthorized" },
      });
    }
    expect(l.t.runtime.calls).toBe(0);
  });

  test("lets the token in, and has nothing cached", async () => {
    const { ask } = adminOf(lab({ setup: echoing }));
    const { status, headers, json } = await ask("/admin/chats");
    expect([status, json]).toEqual([200, { rows: [] }]);
    expect(headers.get("cache-control")).toBe("no-store");
    expect((await ask("/admin/nowhere")).json.error?.code).toBe("not_found");
    expect((await ask("/admin/replay")).status).toBe(404);
  });
});

describe("lists", () => {
  test("show records across chats and of one, page by page", async () => {
    const { ask } = await troubled();
    const first = await ask("/admin/outbox?state=dead&limit=1");
    const second = await ask(
      `/admin/outbox?state=dead&limit=1&cursor=${encodeURIComponent(first.json.cursor ?? "")}`,
    );
    const addresses = [first, second].flatMap(({ json }) => json.rows?.map((row) => row.address));
    expect(addresses.sort()).toEqual(["mock/mock/ann", "mock/mock/bob"]);
    const ofAnn = await ask(`/admin/inbox?chat=${ANN}`);
    expect(ofAnn.json.rows?.map((row) => row.state)).toEqual(["failed", "done"]);
    const failed = await ask("/admin/inbox?state=failed");
    expect(failed.json.rows).toHaveLength(2);
  });

  test("show chats with something unfinished, how one stands and what was said in it", async () => {
    const { ask } = await troubled();
    const chats = await ask("/admin/chats?connection=mock");
    expect(chats.json.rows).toMatchObject([
      { dead: 1, failed: 1 },
      { dead: 1, failed: 1 },
    ]);
    expect((await ask(`/admin/chats/${ANN}`)).json).toMatchObject({
      address: "mock/mock/ann",
      inbox: { pending: 0, failed: 1, dead: 0 },
      outbox: { dead: 1, unknown: 0 },
    });
    const log = await ask(`/admin/chats/${ANN}/log?limit=3`);
    const texts = (page: Answer) => (page.json.entries as { text: string }[]).map((e) => e.text);
    expect(texts(log)).toEqual(["good", "ok good", "bad"]);
    expect(texts(await ask(`/admin/chats/${ANN}/log?after=${log.json.cursor}`))).toEqual([
      "ok bad",
    ]);
  });

  test("find chats whose ids are full of what URLs are made of", async () => {
    const l = lab({ setup: echoing });
    const { ask } = adminOf(l);
    const odd = l.t.user("o", { chat: "a/b c%2F?d#e" });
    await odd.say("hi");
    const { address } = (
      await ask(`/admin/inbox?chat=${encodeURIComponent("mock/mock/a%2Fb%20c%252F%3Fd%23e")}`)
    ).json.rows?.[0] ?? { address: "" };
    const summary = await ask(`/admin/chats/${encodeURIComponent(address)}/log`);
    expect(summary.json.entries).toHaveLength(2);
  });

  test.each([
    ["/admin/outbox", /needs state/],
    ["/admin/outbox?state=lost", /state is "lost".*pending, sending/],
    ["/admin/inbox?state=sent", /state is "sent"/],
    ["/admin/outbox?state=dead&limit=0", /limit is 0/],
    ["/admin/outbox?state=dead&limit=x", /limit is NaN/],
    ["/admin/outbox?state=dead&cursor=x", /not a cursor/],
    [`/admin/outbox?state=dead&chat=${ANN}&cursor=x`, /not a cursor/],
    ["/admin/inbox?chat=nonsense", /not an address/],
    ["/admin/inbox?chat=slack%2Fslack%2F1", /no connection "slack"/],
    ["/admin/record", /name the record/],
    ["/admin/record?ref=nonsense", /not a record's `ref`/],
    ["/admin/record?id=1", /chat is missing/],
    [`/admin/record?chat=${ANN}&id=1&key=2`, /name the record/],
    [`/admin/chats/${ANN}/log?limit=501`, /limit must be/],
    [`/admin/chats/${ANN}/log?after=x`, /after must be/],
    ["/admin/metrics?format=xml", /format is "xml"/],
  ])("refuse %s and say why", async (path, why) => {
    const { ask } = await troubled();
    const { status, json } = await ask(path);
    expect([status, json.error?.code]).toEqual([400, "bad_request"]);
    expect(json.error?.message).toMatch(why);
  });
});

describe("one record", () => {
  test("is shown by its ref, or by chat and id or key", async () => {
    const { ask, l } = await troubled();
    const send = (await ask(`/admin/outbox?state=dead&chat=${ANN}`)).json.rows?.[0];
    const byRef = await ask(`/admin/record?ref=${send?.ref}`);
    const byKey = await ask(`/admin/record?chat=${ANN}&key=${encodeURIComponent(send?.id ?? "")}`);
    expect(byRef.json).toMatchObject({ id: send?.id, state: "dead", content: { text: "ok bad" } });
    expect(byKey.json).toEqual(byRef.json);
    const event = l.events()[0]?.id ?? "";
    expect((await ask(`/admin/record?chat=${ANN}&id=${event}`)).json).toMatchObject({
      state: "done",
      event: { text: "good" },
    });
    expect((await ask(`/admin/record?chat=${ANN}&id=never`)).status).toBe(404);
  });
});

describe("actions", () => {
  test("send again what died, once, however often they are asked", async () => {
    const { post, ask, l } = await troubled();
    const ref = (await ask(`/admin/outbox?state=dead&chat=${ANN}`)).json.rows?.[0]?.ref;
    expect((await post("/admin/retry", { ref })).json).toMatchObject({
      done: true,
      ref,
      address: "mock/mock/ann",
    });
    await l.t.idle();
    const again = await post("/admin/retry", { ref });
    expect([again.status, again.json.error?.code]).toEqual([409, "not_applicable"]);
    expect(again.json.error?.message).toMatch(/the record is sent: only/);
    await l.t.idle();
    expect(l.screen).toEqual(["ok good", "ok bad"]);
  });

  test("run a failed turn again, and give a send up, by chat and name", async () => {
    const { post, l } = await troubled();
    const [, failed] = l.events();
    const chat = "mock/mock/ann";
    expect((await post("/admin/replay", { chat, id: failed?.id })).status).toBe(200);
    await l.t.idle();
    expect(l.events()[1]?.runs).toBe(2);
    const key = `${failed?.id}:0`;
    expect((await post("/admin/discard", { chat, key })).status).toBe(200);
    expect(await l.client.outbox.get(key)).toMatchObject({ error: "discarded by an operator" });
    // A turn that failed is over; given up, nobody has to look at it any more.
    expect((await post("/admin/discard", { chat, id: failed?.id })).status).toBe(200);
    expect(l.events()[1]?.error).toMatch(/^discarded by an operator; it was: /);
    expect((await post("/admin/discard", { chat, id: failed?.id })).status).toBe(409);
  });

  test("what was given up leaves the counts and the lists across chats", async () => {
    const { post, ask, l } = await troubled();
    for (const list of ["outbox?state=dead", "inbox?state=failed"]) {
      for (const { ref } of (await ask(`/admin/${list}`)).json.rows ?? [])
        expect((await post("/admin/discard", { ref })).status).toBe(200);
    }
    await l.t.advance("2m");
    expect((await ask("/admin/chats")).json.rows).toEqual([]);
    expect((await ask("/admin/outbox?state=dead")).json.rows).toEqual([]);
    // The chat itself forgets nothing.
    const { rows } = await l.client.outbox.list({ state: "dead" });
    expect(rows.length).toBeGreaterThan(0);
  });

  test("refuse a record of the wrong kind, one that is not there, and what is no request", async () => {
    const { post, ask, l } = await troubled();
    const send = (await ask("/admin/outbox?state=dead")).json.rows?.[0]?.ref;
    expect((await post("/admin/replay", { ref: send })).json.error?.message).toMatch(
      /admin\/retry/,
    );
    const event = (await ask("/admin/inbox?state=failed")).json.rows?.[0]?.ref;
    expect((await post("/admin/retry", { ref: event })).json.error?.message).toMatch(/replay/);
    const missing = await post("/admin/retry", { chat: "mock/mock/ann", key: "none" });
    expect([missing.status, missing.json.error?.code]).toEqual([404, "not_found"]);
    expect((await post("/admin/retry", "{")).json.error?.message).toMatch(/no JSON/);
    expect((await post("/admin/retry", "[1]")).json.error?.message).toMatch(/JSON object/);
    expect((await post("/admin/retry", { ref: 7 })).json.error?.message).toMatch(/ref must be/);
    const large = await post("/admin/retry", JSON.stringify({ ref: "x".repeat(20_000) }));
    expect([large.status, large.json.error?.code]).toEqual([413, "too_large"]);
    expect(l.screen).toEqual(["ok good"]);
  });

  test("send dead records of a connection again in bulk", async () => {
    const { post, l } = await troubled();
    const done = await post("/admin/retry-dead", { connection: "mock", kinds: ["auth"] });
    expect(done.json).toEqual({ retried: 2, skipped: 0, failed: [] });
    await l.t.idle();
    expect(l.t.user("bob").screen).toEqual(["ok bad"]);
    const wrong = await post("/admin/retry-dead", { connection: "other" });
    expect([wrong.status, wrong.json.error?.message]).toEqual([
      404,
      "connection must be one of: mock",
    ]);
    expect((await post("/admin/retry-dead", { kinds: "auth" })).status).toBe(400);
  });

  test("leave a line in the log that names the record and no text", async () => {
    const { post, ask, logged } = await troubled();
    const row = (await ask("/admin/outbox?state=dead")).json.rows?.[0];
    await post("/admin/retry", { ref: row?.ref });
    expect(logged).toEqual([
      {
        level: "info",
        message: "an operator acted on a record",
        fields: { action: "retry", chat: row?.address, id: row?.id },
      },
    ]);
  });
});

describe("an actor that is away", () => {
  test("is a 503 that says so, and an error of ours is a 500 that says nothing", async () => {
    const { ask, logged, l } = await troubled();
    l.t.runtime.onCall = () => {
      throw Object.assign(new Error("secret inside"), { overloaded: true });
    };
    const away = await ask(`/admin/inbox?chat=${ANN}`);
    expect([away.status, away.json.error?.code]).toEqual([503, "unreachable"]);
    l.t.runtime.onCall = () => {
      throw new Error(`broken ${TOKEN}`);
    };
    const broken = await ask(`/admin/inbox?chat=${ANN}`);
    expect([broken.status, broken.json.error?.code]).toEqual([500, "internal"]);
    expect(away.text + broken.text).not.toMatch(/secret inside|operator-token/);
    expect(logged.map(({ level }) => level)).toEqual(["error", "error"]);
    expect(JSON.stringify(logged)).not.toContain(TOKEN);
  });

  test("that hangs is a 503 after a while", async () => {
    const { ask, l } = await troubled();
    l.t.runtime.call = () => new Promise(() => {});
    const asked = ask(`/admin/inbox?chat=${ANN}`);
    await l.t.advance("30s");
    expect((await asked).status).toBe(503);
  });
});

describe("metrics", () => {
  test("are JSON and Prometheus text, with every counter", async () => {
    const { ask, l } = await troubled();
    await l.t.advance("2m");
    const { json } = await ask("/admin/metrics");
    expect(json).toMatchObject({
      bot: "lab",
      metrics: { inboundJournaled: 3, outboxDead: 2 },
      chats: { unfinished: 2, overdue: 0 },
    });
    const prom = await ask("/admin/metrics.prom");
    expect(prom.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect((await ask("/admin/metrics?format=prometheus")).text).toBe(prom.text);
    const lines = prom.text.trimEnd().split("\n");
    expect(prom.text).toContain(
      [
        "# HELP holdfast_inbound_journaled_total Events recorded.",
        "# TYPE holdfast_inbound_journaled_total counter",
        'holdfast_inbound_journaled_total{bot="lab"} 3',
      ].join("\n"),
    );
    expect(lines).toContain('holdfast_outbox_dead_total{bot="lab"} 2');
    expect(lines).toContain('holdfast_chats_unfinished{bot="lab"} 2');
    expect(lines).toHaveLength((METRICS.length + 2) * 3);
  });
});

describe("health", () => {
  test("is detailed for operators, plain for everybody, and never shows a value", async () => {
    const { ask, l } = await troubled();
    const detailed = await ask("/admin/health");
    expect(detailed.json).toMatchObject({
      ok: true,
      bot: "lab",
      connections: [
        {
          connection: "mock",
          ready: true,
          delivery: "blind",
          webhook: "/webhooks/mock",
          polling: { supported: false, on: false },
          quarantined: false,
        },
      ],
      chats: { unfinished: 2, overdue: 0 },
    });
    const plain = await ask("/health", { headers: { authorization: "" } });
    expect(plain.json).toEqual({
      ok: true,
      bot: "lab",
      connections: [{ connection: "mock", channel: "mock", ready: true }],
    });
    l.t.runtime.onCall = (kind) => {
      if (kind === "Connection") throw new Error("away");
    };
    expect((await ask("/admin/health")).json).toMatchObject({
      connections: [{ connection: "mock", unreachable: true }],
    });
  });
});

describe("the quarantine", () => {
  test("is listed, replayed and discarded through its connection", async () => {
    const l = lab({ setup: echoing });
    const { ask, post } = adminOf(l);
    expect((await ask("/admin/quarantine")).json).toEqual({ rows: [] });
    const asked: [string, string, unknown][] = [];
    l.t.runtime.call = async (kind, name, method, payload) => {
      asked.push([`${kind} ${name}`, method, JSON.parse(payload)]);
      return `{"answer":"${method}"}`;
    };
    const who = "Connection main/production/lab/mock";
    expect((await ask("/admin/quarantine?limit=5&cursor=q1&chat=c")).json).toEqual({
      answer: "quarantine.list",
    });
    await post("/admin/quarantine/replay", { connection: "mock" });
    await post("/admin/quarantine/replay", { ref: "q1" });
    await post("/admin/quarantine/discard", { ref: "q2" });
    expect(asked).toEqual([
      [who, "quarantine.list", { limit: 5, cursor: "q1", chat: "c" }],
      [who, "quarantine.replay", {}],
      [who, "quarantine.replay", { ref: "q1" }],
      [who, "quarantine.discard", { ref: "q2" }],
    ]);
    expect((await post("/admin/quarantine/discard", {})).json.error?.message).toBe(
      "ref is missing",
    );
  });
});
