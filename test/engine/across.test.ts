/** Lists across chats: pages that stay right while chats change, and that no single chat can break. */
import { describe, expect, test } from "vitest";
import { registryOf } from "../../src/objects/Reporter.ts";
import type { TestUser } from "../../src/testing/index.ts";
import { echoing, type Lab, lab, only } from "./lab.ts";

/** Chats that each have dead sends. */
async function graveyard(chats: number, each: number): Promise<{ l: Lab; users: TestUser[] }> {
  const l = lab({ setup: echoing });
  l.platform.fault = () => ({ type: "refuse", kind: "auth" });
  const users = Array.from({ length: chats }, (_none, n) => l.t.user(`u${n}`));
  for (const user of users) for (let n = 0; n < each; n += 1) await user.say(`m${n}`);
  l.platform.fault = () => undefined;
  return { l, users };
}

/** Every page of the dead, with `between` after each. */
async function pages(l: Lab, limit: number, between: (n: number) => Promise<unknown>) {
  const seen: string[] = [];
  const unreachable: string[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < 500; n += 1) {
    const page = await l.t.client.durability.outbox.list({ state: "dead", limit, cursor });
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    seen.push(...page.rows.map((row) => `${row.address} ${row.id}`));
    unreachable.push(...(page.unreachable ?? []));
    cursor = page.cursor;
    if (cursor === undefined) return { seen, unreachable };
    await between(n);
  }
  throw new Error("the list does not end");
}

describe("a list across chats", () => {
  test("skips nothing and repeats nothing where a half-read chat is dealt with between two pages", async () => {
    const { l, users } = await graveyard(6, 3);
    const { seen } = await pages(l, 2, async (n) => {
      // The chat in the middle of which the page ended is mended, and leaves the Registry.
      if (n !== 0) return;
      const half = users.find((user) => seen0(l) === `mock/mock/${user.name}`);
      const { rows } = await l.t.client.chat(half?.address ?? "").outbox.list({ state: "dead" });
      for (const { ref } of rows) await l.t.client.durability.retrySend(ref);
      await l.t.idle();
      await l.t.advance("3m");
    });
    expect(new Set(seen).size).toBe(seen.length);
    // Two of the mended chat were seen before; of every other, all three.
    const counts = users.map((user) => seen.filter((one) => one.includes(`/${user.name} `)).length);
    expect(counts.sort()).toEqual([2, 3, 3, 3, 3, 3]);

    function seen0(of: Lab): string {
      const shards = [...new Set(users.map((user) => registryOf(of.actor(user))))].sort();
      const first = users
        .filter((user) => registryOf(of.actor(user)) === shards[0])
        .map((user) => user.name)
        .sort()[0];
      return `mock/mock/${first}`;
    }
  });

  test("names chats that do not answer, and shows all others", async () => {
    const { l, users } = await graveyard(5, 1);
    const [gone] = users;
    const away = l.actor(gone);
    l.t.runtime.onCall = (_kind, name, method) => {
      if (name === away && method === "listOutbox") throw new Error("the object is overloaded");
    };
    const { seen, unreachable } = await pages(l, 2, async () => {});
    expect(seen).toHaveLength(4);
    expect(unreachable).toEqual(["mock/mock/u0"]);
  });

  test("waits for a chat that hangs, but not for ever", async () => {
    const { l, users } = await graveyard(3, 1);
    const away = l.actor(users[0]);
    const { call } = l.t.runtime;
    l.t.runtime.call = (kind, name, method, payload) =>
      name === away && method === "listOutbox"
        ? new Promise(() => {})
        : call.call(l.t.runtime, kind, name, method, payload);
    const listing = l.t.client.durability.outbox.list({ state: "dead" });
    await l.t.advance("6s");
    const { rows, unreachable } = await listing;
    expect(rows).toHaveLength(2);
    expect(unreachable).toEqual(["mock/mock/u0"]);
  });

  test("shows what the other shards know where one does not answer", async () => {
    const { l, users } = await graveyard(12, 1);
    const away = registryOf(l.actor(users[0]));
    l.t.runtime.onCall = (_kind, name) => {
      if (name === away) throw new Error("away");
    };
    const { rows, unreachable } = await l.t.client.durability.outbox.list({ state: "dead" });
    const others = users.filter((user) => registryOf(l.actor(user)) !== away);
    expect(rows.map((row) => row.address).sort()).toEqual(
      others.map((user) => `mock/mock/${user.name}`).sort(),
    );
    expect(unreachable).toEqual([`registry ${away}`]);
  });

  test("asks only chats that have such records, and a bounded number for each page", async () => {
    const { l, users } = await graveyard(60, 1);
    for (let n = 0; n < 60; n += 1)
      await l.t.client.chat(`mock/mock/later${n}`).enqueue("x", { delay: "2d" });
    await l.t.advance("1s");
    let asked = 0;
    l.t.runtime.onCall = (_kind, _name, method) => {
      if (method === "listOutbox") asked += 1;
    };
    const most: number[] = [];
    const { seen } = await pages(l, 200, async () => {
      most.push(asked);
      asked = 0;
    });
    expect(seen).toHaveLength(users.length);
    expect(Math.max(...most)).toBeLessThanOrEqual(40);
    expect(most[0]).toBeGreaterThan(0);
  });

  test("is not led into another bot's chat by a cursor", async () => {
    const { l } = await graveyard(1, 1);
    const cursor = btoa(JSON.stringify([0, "main/production/other/mock/ann", "99999999999999.0"]));
    const { list } = l.t.client.durability.outbox;
    await expect(list({ state: "dead", cursor })).rejects.toThrow(/belongs to another bot/);
    expect(l.t.runtime.names("ChatActor")).toHaveLength(1);
  });

  test("refuses a page that is none", async () => {
    const { l } = await graveyard(1, 1);
    const { outbox, chats } = l.t.client.durability;
    await expect(outbox.list({ state: "dead", limit: 201 })).rejects.toThrow(
      /limit is 201.*1 to 200/,
    );
    await expect(chats({ cursor: "!" })).rejects.toThrow(/not a cursor/);
  });
});

describe("the list of unfinished chats", () => {
  test("pages through all of them once, of one connection where asked", async () => {
    const { l, users } = await graveyard(9, 2);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await l.t.client.durability.chats({ limit: 2, cursor, connection: "mock" });
      for (const row of page.rows) {
        expect(row).toMatchObject({ dead: 2, unknown: 0 });
        found.push(row.address);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(found.sort()).toEqual(users.map((user) => `mock/mock/${user.name}`).sort());
    expect((await l.t.client.durability.chats({ connection: "moc" })).rows).toEqual([]);
    expect(await l.t.client.durability.counts()).toEqual({ unfinished: 9, overdue: 0 });
  });
});

describe("sending dead records again in bulk", () => {
  /** Slices until the end. */
  async function all(l: Lab, kinds?: ["permission"]) {
    const sum = { retried: 0, skipped: 0, failed: 0 };
    let cursor: string | undefined;
    do {
      const done = await l.t.client.durability.retryDead({
        connection: "mock",
        limit: 3,
        cursor,
        kinds,
      });
      sum.retried += done.retried;
      sum.skipped += done.skipped;
      sum.failed += done.failed.length;
      cursor = done.cursor;
      await l.t.idle();
    } while (cursor !== undefined);
    return sum;
  }

  test("revives what died of a wrong token, once, and nothing else", async () => {
    const { l, users } = await graveyard(5, 2);
    l.platform.failNext({ type: "refuse", kind: "recipient_unreachable" });
    await l.ann.say("blocked");
    const before = l.platform.calls.length;
    expect(await all(l)).toEqual({ retried: 10, skipped: 1, failed: 0 });
    expect(l.platform.calls.length - before).toBe(10);
    for (const user of users) expect(user.screen.sort()).toEqual(["ok m0", "ok m1"]);
    expect(l.screen).toEqual([]);
    expect(await all(l)).toMatchObject({ retried: 0 });
    expect(l.platform.calls.length - before).toBe(10);
  });

  test("takes only the kinds that are asked for, and refuses what is no kind", async () => {
    const { l } = await graveyard(2, 1);
    expect(await all(l, ["permission"])).toMatchObject({ retried: 0, skipped: 2 });
    const { retryDead } = l.t.client.durability;
    await expect(retryDead({ connection: "mock", kinds: ["cancelled"] })).rejects.toThrow(
      /kinds is/,
    );
    await expect(retryDead({ connection: "mock", kinds: [] })).rejects.toThrow(/kinds is/);
  });

  test("says what it could not reach, and doubles nothing when it is asked again", async () => {
    const { l, users } = await graveyard(3, 1);
    const away = l.actor(users[1]);
    l.t.runtime.onCall = (_kind, name, method) => {
      if (name === away && method === "retry") throw new Error("away");
    };
    const first = await l.t.client.durability.retryDead({ connection: "mock" });
    expect(first).toMatchObject({ retried: 2, failed: [{ error: "away" }] });
    await l.t.idle();
    l.t.runtime.onCall = () => {};
    expect(await l.t.client.durability.retryDead({ connection: "mock" })).toMatchObject({
      retried: 1,
    });
    await l.t.idle();
    for (const user of users) expect(user.screen).toEqual(["ok m0"]);
  });

  test("leaves alone what an operator discarded", async () => {
    const { l } = await graveyard(1, 1);
    const row = only((await l.t.client.durability.outbox.list({ state: "dead" })).rows);
    await l.t.client.durability.discard(row.ref);
    expect(await all(l)).toEqual({ retried: 0, skipped: 0, failed: 0 });
  });
});

describe("a record by its reference", () => {
  test("is what its chat says of it, and nothing once it is purged", async () => {
    const { l } = await graveyard(1, 1);
    const { record, inbox, outbox } = l.t.client.durability;
    const send = only((await outbox.list({ state: "dead" })).rows);
    const event = only((await inbox.list({ state: "failed" })).rows);
    expect(await record(send.ref)).toMatchObject({ state: "dead", kind: "auth", id: send.id });
    expect(await record(event.ref)).toMatchObject({ state: "failed", runs: 1 });
    await l.t.advance("60d");
    expect(await record(send.ref)).toBeUndefined();
    expect(await record(event.ref)).toBeUndefined();
  });
});
