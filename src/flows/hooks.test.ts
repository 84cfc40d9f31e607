/** Hooks and events: how others continue a run, and how they may misuse it. */
import { describe, expect, test } from "vitest";
import { type Hook, TEXT } from "../index.ts";
import { made, type Setup } from "./lab.ts";

describe("outside", () => {
  const shop: Setup = (bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid = c.hook<{ sum: number }>("payment");
      notes.push(paid);
      await c.reply("Pay, please.");
      const got = await c.waitFor({ paid, word: TEXT }, { timeout: "1d" });
      await c.reply(got.key === "paid" ? `Thank you for ${got.value.sum}.` : got.value.text);
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  };

  test("a hook that is called five times continues its run once; a forged token does nothing", async () => {
    const { t, notes } = made(shop);
    const ann = t.user("ann");
    await ann.say("/pay");
    const { token, url } = notes[0] as Hook;
    expect(url).toBe(`https://bot.test/hooks/${token}`);
    const answers = [];
    for (let n = 0; n < 5; n += 1) answers.push(await t.client.resume(token, { sum: 7 }));
    await t.idle();
    expect(answers.map((one) => one.accepted)).toEqual([true, false, false, false, false]);
    expect(ann.screen).toEqual(["Pay, please.", "Thank you for 7."]);
    const forged = `${token.slice(0, -4)}AAAA`;
    await expect(t.client.resume(forged, { sum: 0 })).rejects.toMatchObject({
      code: "hook_invalid",
    });
    await expect(t.client.resume("x", {})).rejects.toMatchObject({ code: "hook_invalid" });
    // The same each time the function runs.
    expect(new Set(notes.map((one) => (one as Hook).token)).size).toBe(1);
  });

  test("a hook that is called before it is waited for is not lost; one of a run that is over is gone", async () => {
    const { t, notes } = made((bot, notes) => {
      const pay = bot.flow("pay", async (c) => {
        const paid = c.hook<number>("payment");
        notes.push(paid);
        const name = await c.ask("Name?");
        const { value } = await c.waitFor({ paid });
        await c.reply(`${name} paid ${value}`);
      });
      bot.command("pay", (ctx) => ctx.start(pay));
    });
    const ann = t.user("ann");
    await ann.say("/pay");
    const { token } = notes[0] as Hook;
    await t.client.resume(token, 5);
    await t.restart();
    await ann.say("Ann");
    expect(ann.screen.at(-1)).toBe("Ann paid 5");
    await ann.say("/pay");
    const second = notes.at(-1) as Hook;
    await ann.say("/cancel");
    await expect(t.client.resume(second.token, 5)).rejects.toMatchObject({ code: "hook_gone" });
  });

  test("an external event and an action are alternatives", async () => {
    const { t } = made((bot) => {
      const stop = bot.action("stop", (ctx, data: { why: string }) =>
        ctx.reply(`stop ${data.why}`),
      );
      const wait = bot.flow("wait", async (c) => {
        await c.reply({ text: "Waiting", buttons: [stop.button("Stop", { why: "bored" })] });
        const got = await c.waitFor({ stop, shipped: "event:shipped" });
        await c.reply(`${got.key} ${JSON.stringify(got.value)}`);
      });
      bot.command("wait", (ctx) => ctx.start(wait));
    });
    const ann = t.user("ann");
    await ann.say("/wait");
    await ann.press("Stop");
    expect(ann.screen.at(-1)).toBe('stop {"why":"bored"}');
    await ann.say("/wait");
    await t.client.chat(ann.address).sendEvent({ type: "shipped", id: "1", data: { box: 3 } });
    await t.idle();
    expect(ann.screen.at(-1)).toBe('shipped {"box":3}');
    await ann.press("Stop");
    expect(ann.screen.at(-1)).toBe("stop bored");
  });
});

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
