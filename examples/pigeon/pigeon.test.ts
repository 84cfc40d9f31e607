/** The example channel holds what it declares, and the page shows the file that is tested here. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ChannelSendResult, InboundItem, SendIo } from "../../src/index.ts";
import { Bot } from "../../src/index.ts";
import { Chat } from "../../src/objects/Chat.ts";
import { chatActorName } from "../../src/objects/names.ts";
import { RegistryBook } from "../../src/objects/RegistryBook.ts";
import { type CapabilityProofs, verifyCapabilityProofs } from "../../src/testing/index.ts";
import { NodeRuntime } from "../../src/testing/node/NodeRuntime.ts";
import { type PigeonConfig, pigeon } from "./pigeon.ts";
import { SimPigeon } from "./SimPigeon.ts";

const HOOK = "https://bot.example/webhooks/pigeon";
const channel = pigeon();
const { limit } = channel.capabilities.text;

function setUp() {
  const sim = new SimPigeon();
  const configured = channel.configure({ PIGEON_KEY: sim.key, PIGEON_SECRET: sim.secret });
  if (!configured.ok) throw new Error("not configured");
  const address = pigeon.address("ann");
  const io: SendIo<PigeonConfig> = {
    options: configured.options,
    fetch: (input, init) => sim.fetch(new Request(input, init)),
    signal: new AbortController().signal,
    now: () => sim.now,
    actors: { call: () => Promise.reject(new Error("none")) },
    scope: "t/e/b/pigeon",
    marker: "m",
    address,
  };
  const send = async (text: string, marker = "m") => {
    const parts = channel.outbound.render(
      { format: "plain", text },
      { address, options: undefined },
    );
    const results: ChannelSendResult[] = [];
    for (const [at, { request }] of parts.entries()) {
      results.push(await channel.outbound.send(request, { ...io, marker: `${marker}${at}` }));
    }
    return results;
  };
  const receive = async (request: Request): Promise<InboundItem[]> => {
    const { method, url, headers } = request;
    const raw = { method, url, headers, body: new Uint8Array(await request.arrayBuffer()) };
    expect(await channel.inbound.verify(raw, io.options)).toBe(true);
    return channel.inbound.parse(raw, {
      options: io.options,
      connection: "pigeon",
      now: sim.now,
    });
  };
  return { sim, io, send, receive };
}

const letter = (id: string) => ({ id, loft: "ann", from: "ann", sentAt: 5, text: "hi" });
const ids = (items: InboundItem[]) =>
  items.map((one) => (one.type === "event" ? one.event.id : ""));

const proofs: CapabilityProofs<PigeonConfig> = {
  async text() {
    const { sim, send } = setUp();
    await send("hello");
    expect(sim.ledger).toEqual([{ id: "p1", loft: "ann", text: "hello" }]);
  },
  async textLimit() {
    const { sim, send } = setUp();
    const full = "😀".repeat(limit);
    expect(await send(full, "a")).toMatchObject([{ ok: true }]);
    expect(await send(`${full}!`, "b")).toMatchObject([{ ok: true }, { ok: true }]);
    expect(sim.ledger.map((one) => one.text).join("")).toBe(`${full}${full}!`);
  },
  async keyed() {
    const { sim, send } = setUp();
    sim.failNext({ type: "drop", accepted: true });
    await expect(send("hello")).rejects.toThrow();
    expect(await send("hello")).toMatchObject([{ ok: true, receipt: { id: "p1" } }]);
    expect(sim.ledger).toHaveLength(1);
    await send("hello", "other");
    expect(sim.ledger).toHaveLength(2);
  },
  async markerWindow({ capabilities }) {
    const { sim, send } = setUp();
    const window = capabilities.delivery.markerWindowMs ?? 0;
    await send("hello");
    sim.now += window - 1;
    await send("hello");
    expect(sim.ledger).toHaveLength(1);
    sim.now += 1;
    await send("hello");
    expect(sim.ledger).toHaveLength(2);
  },
  async redelivery() {
    const { sim, receive } = setUp();
    const batch = [letter("l1"), letter("l2")];
    const first = ids(await receive(await sim.webhook(HOOK, batch)));
    expect(first).toEqual(["l1", "l2"]);
    expect(ids(await receive(await sim.webhook(HOOK, batch)))).toEqual(first);
  },
  async dedupe() {
    const { sim, receive } = setUp();
    const [a, b] = ids(await receive(await sim.webhook(HOOK, [letter("l1"), letter("l2")])));
    expect(a).not.toBe(b);
  },
  journalFailure({ capabilities, inbound }) {
    expect(inbound.answer([], { committed: false }).status).toBe(
      capabilities.journalFailure.status,
    );
    expect(inbound.answer([], { committed: true }).status).toBe(204);
  },
};

test("the channel holds what it declares", async () => {
  const table = await verifyCapabilityProofs(channel, proofs);
  expect(table.filter((row) => row.status === "verified").map((row) => row.capability)).toEqual([
    "text",
    "textLimit",
    "keyed",
    "markerWindow",
    "redelivery",
    "journalFailure",
    "dedupe",
  ]);
});

describe("evidence", () => {
  test.each([
    [400, "invalid_payload"],
    [401, "auth"],
    [403, "permission"],
    [404, "not_found"],
    [410, "recipient_unreachable"],
    [413, "payload_too_large"],
  ])("%i proves that nothing was sent", async (status, kind) => {
    const { sim, send } = setUp();
    sim.failNext({ type: "status", status });
    expect(await send("x")).toMatchObject([{ ok: false, kind, evidence: "not_sent" }]);
  });

  test("a rate limit is a refusal with a wait", async () => {
    const { sim, send } = setUp();
    sim.failNext({ type: "status", status: 429, retryAfter: 7 });
    expect(await send("x")).toMatchObject([
      { kind: "rate_limit", evidence: "not_sent", retryAfterMs: 7_000 },
    ]);
  });

  test("server errors and redirects prove nothing, a lost or torn answer throws", async () => {
    for (const status of [302, 500, 502, 504]) {
      const { sim, send } = setUp();
      sim.failNext({ type: "status", status });
      expect(await send("x"), String(status)).toMatchObject([{ evidence: "maybe_sent" }]);
    }
    for (const fault of [{ type: "torn" }, { type: "drop", accepted: false }] as const) {
      const { sim, send } = setUp();
      sim.failNext(fault);
      await expect(send("x")).rejects.toThrow();
    }
  });

  test("the call has begun before the first await", () => {
    const { io } = setUp();
    let calls = 0;
    const fetch = () => {
      calls += 1;
      return new Promise<Response>(() => {});
    };
    void channel.outbound.send({ loft: "ann", text: "x" }, { ...io, fetch });
    expect(calls).toBe(1);
  });
});

describe("what arrives", () => {
  test("is refused without the right signature", async () => {
    const { sim, io } = setUp();
    const request = await sim.webhook(HOOK, [letter("l1")]);
    const body = new Uint8Array(await request.arrayBuffer());
    const check = (headers: Record<string, string>, bytes: Uint8Array = body) =>
      channel.inbound.verify(
        { method: "POST", url: HOOK, headers: new Headers(headers), body: bytes },
        io.options,
      );
    const signature = request.headers.get("x-pigeon-signature") ?? "";
    expect(await check({ "x-pigeon-signature": signature })).toBe(true);
    const other = new TextEncoder().encode(`${new TextDecoder().decode(body)} `);
    expect(await check({ "x-pigeon-signature": signature }, other)).toBe(false);
    for (const wrong of ["", "00", "0".repeat(64), signature.toUpperCase()]) {
      expect(await check({ "x-pigeon-signature": wrong })).toBe(false);
    }
    expect(await check({})).toBe(false);
  });

  test("one bad letter does not hold up its batch", async () => {
    const { sim, receive } = setUp();
    const batch = [null, { id: "l1" }, letter("l2"), 7];
    const items = await receive(await sim.webhook(HOOK, batch));
    expect(items.map((item) => item.type)).toEqual(["bad", "bad", "event", "bad"]);
  });

  test("missing secrets are named", () => {
    expect(channel.configure({ PIGEON_KEY: "k" })).toEqual({
      ok: false,
      missing: ["PIGEON_SECRET"],
    });
  });
});

test("with the whole engine: a lost answer, a rate limit, and the letter arrives once", async () => {
  const sim = new SimPigeon();
  const bot = new Bot({ id: "loft", channels: [pigeon()] });
  bot.otherwise((ctx) => ctx.reply(`coo ${ctx.text}`));
  const runtime = new NodeRuntime({
    env: { PIGEON_KEY: sim.key, PIGEON_SECRET: sim.secret },
    make: (host, kind, name) =>
      kind === "Registry" ? new RegistryBook(host) : new Chat(host, bot, name),
    fetch: (request) => sim.fetch(request),
  });
  sim.failNext({ type: "status", status: 429, retryAfter: 5 }, { type: "drop", accepted: true });
  const chat = { id: "ann", kind: "direct" };
  const event = { ...{ id: "l1", kind: "message", text: "hi", at: 1 }, chat };
  const about = { channel: "pigeon", connection: "pigeon" };
  const items = [{ type: "event", event: { ...event, ...about } }];
  const name = chatActorName(bot.scope, "pigeon", "ann");
  await runtime.call("ChatActor", name, "receive", JSON.stringify({ ...about, chat, items }));
  for (let second = 0; second < 30; second += 1) {
    // The platform answers in real turns of the event loop, not in virtual time.
    await new Promise((resolve) => setImmediate(resolve));
    await runtime.advance(1_000);
  }
  runtime.close();
  expect(sim.ledger.map((one) => one.text)).toEqual(["coo hi"]);
});

test("docs/writing-a-channel.md shows this very channel", () => {
  const read = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
  expect(read("../../docs/writing-a-channel.md")).toContain(read("pigeon.ts"));
});
