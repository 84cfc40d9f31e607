/** What conversations stumbled over: each test is a way in which one could lose money or its way. */
import { expect, test } from "vitest";
import { testBot } from "../testing/index.ts";
import { botWith, made } from "./lab.ts";

test("ids that steps draw for themselves differ, though a step is answered from its record", async () => {
  const { t, notes } = made((bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      notes.push(await c.step("first payment", () => c.uuid()));
      await c.ask("And the second?");
      notes.push(await c.step("second payment", () => c.uuid()));
      notes.push(c.uuid());
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  });
  const ann = t.user("ann");
  await ann.say("/pay");
  await ann.say("yes");
  const [first, again, second, own] = notes;
  expect(again).toBe(first);
  expect(new Set([first, second, own]).size).toBe(3);
});

test("what a step says and does inside is the step's own", async () => {
  const { t } = made((bot) => {
    const order = bot.flow("order", async (c) => {
      await c.step("outer", async () => {
        await c.reply("inside");
        await c.step("inner", () => 1);
        await c.step("fails", () => Promise.reject(new Error("no"))).catch(() => 0);
      });
      await c.ask("Size?");
      await c.reply("done");
    });
    bot.command("order", (ctx) => ctx.start(order));
  });
  const ann = t.user("ann");
  await ann.say("/order");
  await t.restart();
  await ann.say("small");
  expect(ann.screen).toEqual(["inside", "Size?", "done"]);
});

test("a hook or a wait inside a step is refused, and says so", async () => {
  const { t, notes } = made((bot, notes) => {
    const order = bot.flow("order", async (c) => {
      const tries: (() => unknown)[] = [() => c.hook("x"), () => c.ask("?"), () => c.sleep("1h")];
      for (const inside of tries)
        await c.step("s", inside).catch((error: Error) => notes.push(error.message));
    });
    bot.command("order", (ctx) => ctx.start(order));
  });
  await t.user("ann").say("/order");
  expect(notes).toHaveLength(3);
  for (const note of notes) expect(note).toContain("inside a step");
});

test("an event that is offered to several runs goes to the one that waits for it, and hurts none", async () => {
  const { t } = made((bot) => {
    for (const name of ["a", "b", "c"]) {
      const flow = bot.flow(name, async (c) => {
        await c.reply(`${name} waits`);
        await c.waitFor({ done: `event:${name}` });
        await c.reply(`${name} done`);
      });
      bot.command(name, (ctx) => ctx.start(flow, undefined, { sender: name }));
    }
  });
  const ann = t.user("ann");
  for (const name of ["a", "b", "c"]) await ann.say(`/${name}`);
  for (const name of ["c", "a", "b"]) {
    await t.client.chat(ann.address).sendEvent({ type: name, id: name });
    await t.idle();
  }
  expect(ann.screen).toEqual(["a waits", "b waits", "c waits", "c done", "a done", "b done"]);
});

test("an answer is worth what it was worth, though the choices are reordered", async () => {
  const order = ["small", "large"];
  const { t } = made((bot) => {
    const flow = bot.flow("order", async (c) => {
      const size = await c.ask("Size?", { choices: order });
      await c.ask("Name?");
      await c.reply(size);
    });
    bot.command("order", (ctx) => ctx.start(flow));
  });
  const ann = t.user("ann");
  await ann.say("/order");
  // As a deploy would, between the question and the press, and after it.
  order.reverse();
  await ann.press("small");
  order.reverse();
  order.unshift("tiny");
  await ann.say("Ann");
  expect(ann.screen.at(-1)).toBe("small");
});

test("a hook that was called ends one wait, not every later one", async () => {
  const { t, notes } = made((bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid = c.hook<number>("payment");
      notes.push(paid.token);
      for (;;) {
        const got = await c.waitFor({ paid }, { timeout: "1h" }).catch(() => undefined);
        await c.reply(got === undefined ? "late" : `got ${got.value}`);
        if (got === undefined) break;
      }
    });
    bot.command("pay", (ctx) => ctx.start(pay));
  });
  const ann = t.user("ann");
  await ann.say("/pay");
  await t.client.resume(String(notes[0]), 7);
  await t.idle();
  expect(ann.screen).toEqual(["got 7"]);
  await t.advance("2h");
  expect(ann.screen).toEqual(["got 7", "late"]);
});

test("a call of a hook that was accepted, and whose run ended before it was taken, is listed", async () => {
  const { t, notes } = made((bot, notes) => {
    const pay = bot.flow("pay", async (c) => {
      const paid = c.hook<number>("payment");
      notes.push(paid.token);
      await c.waitFor({ paid });
    });
    bot.command("pay", (ctx) => ctx.start(pay, undefined, { id: "p1" }));
    bot.otherwise(() => new Promise((done) => t.runtime.clock.setTimer(5_000, () => done(1))));
  });
  const ann = t.user("ann");
  await ann.say("/pay");
  const { flows, inbox } = t.client.chat(ann.address);
  // Something else runs while the call comes, and the run ends meanwhile.
  await t.user("bob", { chat: ann.chat.id }).post({ text: "wait" });
  await t.advance("1s");
  expect(await t.client.resume(String(notes[0]), 7)).toEqual({ accepted: true });
  expect(await flows.cancel("p1")).toBe(true);
  await t.idle();
  expect(await inbox.list({ state: "failed" })).toMatchObject({
    rows: [{ kind: "timer", error: expect.stringContaining("a hook was called") }],
  });
});

test("a send under a key of its own is said once, though its turn is long gone", async () => {
  const { t } = made((bot) => {
    const flow = bot.flow("trial", async (c) => {
      await c.reply("Welcome", { idempotencyKey: "welcome" });
      await c.sleep("20d");
      await c.reply("Over");
    });
    bot.command("trial", (ctx) => ctx.start(flow));
  });
  const ann = t.user("ann");
  await ann.say("/trial");
  for (let day = 0; day < 21; day += 1) await t.advance("1d");
  expect(ann.screen).toEqual(["Welcome", "Over"]);
});

test("a send that was told deferred is told so again, though it arrived since", async () => {
  const bot = botWith(() => {}, { durability: { outbox: { inlineMaxMs: 500 } } });
  const flow = bot.flow("order", async (c) => {
    const sent = await c.reply("hello");
    if (sent.status === "sent") await c.step("glad", () => 1);
    await c.ask("Size?");
    await c.reply("done");
  });
  bot.command("order", (ctx) => ctx.start(flow));
  const t = testBot(bot);
  const ann = t.user("ann");
  t.platform().failNext({ type: "refuse", kind: "transient" });
  await ann.say("/order");
  await t.advance("10m");
  await ann.say("small");
  expect([...ann.screen].sort()).toEqual(["Size?", "done", "hello"]);
});

test("a run that is cancelled while it is executed stays cancelled", async () => {
  const { t } = made((bot) => {
    const flow = bot.flow("order", async (c) => {
      await c.step(
        "slow",
        () => new Promise((done) => t.runtime.clock.setTimer(5_000, () => done(1))),
      );
    });
    bot.command("order", (ctx) => ctx.start(flow, undefined, { id: "o1" }));
  });
  const ann = t.user("ann");
  await ann.post({ text: "/order" });
  await t.advance("1s");
  const { flows } = t.client.chat(ann.address);
  expect(await flows.cancel("o1")).toBe(true);
  await t.advance("1m");
  expect(await flows.get("o1")).toMatchObject({ state: "cancelled" });
});

test("in a group a cancel word may name its bot, and both own and common runs hear a message", async () => {
  const { t } = made((bot) => {
    const own = bot.flow("own", async (c) => void (await c.waitFor({ stop: /^stop$/ })));
    const common = bot.flow("common", async (c) => {
      await c.waitFor({ go: /^go$/ });
      await c.reply("gone");
    });
    bot.command("own", (ctx) => ctx.start(own));
    bot.command("common", (ctx) => ctx.start(common, undefined, { sender: "" }));
  });
  const ann = t.user("ann");
  await ann.say("/common");
  await ann.say("/own");
  await ann.say("go");
  expect(ann.screen).toEqual(["gone"]);
  await ann.say("/cancel@traps_bot");
  expect(ann.screen).toEqual(["gone", "Cancelled."]);
});

test("secrets of an error that was caught are not kept", async () => {
  const bot = botWith(() => {});
  const flow = bot.flow("pay", async (c) => {
    await c
      .step("charge", () => Promise.reject(new Error("bad key sk-very-secret-value")))
      .catch(() => 0);
    await c.ask("Again?");
  });
  bot.command("pay", (ctx) => ctx.start(flow));
  const t = testBot(bot, { env: { SHOP_API_KEY: "sk-very-secret-value" } });
  await t.user("ann").say("/pay");
  const rows = t.runtime.names("ChatActor").flatMap((name) => {
    const storage = t.runtime.storage("ChatActor", name);
    return ["SELECT * FROM flows", "SELECT * FROM steps"].map((query) => storage.all(query, []));
  });
  expect(JSON.stringify(rows)).toContain("bad key");
  expect(JSON.stringify(rows)).not.toContain("sk-very-secret-value");
});
