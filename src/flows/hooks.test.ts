/** Hooks, as third parties may misuse them. */
import { expect, test } from "vitest";
import type { Hook } from "../index.ts";
import { made } from "./lab.ts";

test("a call that is repeated when its record is long purged is still a repeat", async () => {
  const { t, notes } = made((bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid = c.hook<number>("payment");
      notes.push(paid.token);
      for (;;) {
        const { value } = await c.waitFor({ paid });
        c.state.update<number[]>("got", (got) => [...(got ?? []), value]);
      }
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  });
  const ann = t.user("ann");
  await ann.say("/pay");
  const token = String(notes[0]);
  expect(await t.client.resume(token, 1)).toEqual({ accepted: true });
  for (let day = 0; day < 20; day += 1) await t.advance("1d");
  const { inbox, state } = t.client.chat(ann.address);
  const { rows } = await inbox.list();
  expect(rows.filter((row) => row.id.includes("hook"))).toEqual([]);
  expect(await t.client.resume(token, 2)).toEqual({ accepted: false });
  await t.idle();
  expect(await state.get("got")).toEqual([1]);
});

test("a payload that no row can hold is refused, and the hook can still be called", async () => {
  const { t, notes } = made((bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid: Hook<string> = c.hook("payment");
      notes.push(paid.token);
      const { value } = await c.waitFor({ paid });
      await c.reply(`got ${value}`);
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  });
  const ann = t.user("ann");
  await ann.say("/pay");
  const token = String(notes[0]);
  await expect(t.client.resume(token, "x".repeat(1_900_001))).rejects.toMatchObject({
    name: "PayloadTooLargeError",
    code: "payload_too_large",
  });
  expect(await t.client.resume(token, "it")).toEqual({ accepted: true });
  await t.idle();
  expect(ann.screen).toEqual(["got it"]);
});

test("a list of runs reads none of what they carry", async () => {
  const { t } = made((bot) => {
    const flow = bot.flow("order", async (c, input: string) => {
      await c.ask("Size?", { timeout: "1h" });
      return input;
    });
    bot.command("order", (ctx) => ctx.start(flow, "x".repeat(100_000), { id: "o1" }));
  });
  const ann = t.user("ann");
  await ann.say("/order");
  const [name = ""] = t.runtime.names("ChatActor");
  const storage = t.runtime.storage("ChatActor", name);
  const read: string[] = [];
  const { all } = storage;
  storage.all = <R>(query: string, params: readonly (string | number | null)[]) => {
    const rows = all.call(storage, query, params) as R[];
    read.push(JSON.stringify(rows));
    return rows;
  };
  const { flows } = t.client.chat(ann.address);
  const [row] = (await flows.list()).rows;
  expect(row).toMatchObject({ id: "o1", state: "active", waitsFor: "ask text" });
  expect(row?.dueAt).toBeGreaterThan(t.now);
  expect(read.join()).toContain("o1");
  expect(read.join().length).toBeLessThan(2_000);
});
