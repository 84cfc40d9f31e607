/** Flows under kills and deploys: nothing is asked, done or said twice, and nothing stops for ever. */
import { describe, expect, test } from "vitest";
import type { Bot } from "../index.ts";
import { type CrashPoint, crashEverywhere, type TestBot, testBot } from "../testing/index.ts";
import { seededRandom } from "../testing/random.ts";
import { botWith, deploy } from "./lab.ts";

/** What the flow does to the world, and its hook. */
interface World {
  placed: string[];
  coupons: number;
  hook?: string;
}

function newWorld(): World {
  return { placed: [], coupons: 0 };
}

/** An order: three questions, a step, one that fails, a payment from outside, a pause. Counts what it does to the world. */
function orderBot(world: World): Bot {
  return botWith((bot) => {
    const order = bot.flow("order", async (c) => {
      const size = await c.ask("Size?", { choices: ["small", "large"] });
      const name = await c.ask("Name?", { timeout: "1h" });
      c.state.update<number>("orders", (n) => (n ?? 0) + 1);
      const off = await c
        .step("coupon", async () => {
          c.state.set("coupon", true);
          world.coupons += 1;
          throw new Error("unknown");
        })
        .catch((error: Error) => error.message);
      if (off !== "unknown") await c.reply("another end");
      const id = await c.step("place", () => {
        const made = `${size} for ${name}`;
        world.placed.push(made);
        return made;
      });
      const paid = c.hook<number>("payment");
      world.hook = paid.token;
      await c.reply("Pay, please.");
      const { value } = await c.waitFor({ paid }, { timeout: "1d" });
      await Promise.all([c.reply(`${id}, ${value} paid`), c.step("ship", () => true)]);
      await c.sleep("2m");
      await c.reply("Enjoy!");
    });
    bot.command("order", (ctx) => ctx.start(order, undefined, { id: "o1" }));
    bot.otherwise((ctx) => ctx.reply(`? ${ctx.text}`));
  });
}

async function orders(t: TestBot, world: World, between = async () => {}): Promise<void> {
  const ann = t.user("ann");
  // A person answers what is asked.
  const asked = async (text: string) => {
    for (let tries = 0; ann.screen.at(-1) !== text && tries < 20; tries += 1) await t.advance("1m");
  };
  await ann.say("/order");
  await between();
  await asked("Size?");
  await ann.press("large");
  await between();
  await asked("Name?");
  await ann.say("Ann");
  await between();
  await asked("Pay, please.");
  // The third party repeats until it is told that it was taken.
  for (let tries = 0; ; tries += 1) {
    try {
      await t.client.resume(world.hook ?? "", 7);
      break;
    } catch (error) {
      if (tries === 5) throw error;
      await t.advance("1m");
    }
  }
  await t.idle();
  await between();
  await t.advance("10m");
  await t.idle();
}

const SAID = ["Size?", "Name?", "Pay, please.", "large for Ann, 7 paid", "Enjoy!"];

async function checked(
  t: TestBot,
  world: World,
  point?: CrashPoint,
  seeded = false,
): Promise<void> {
  const ann = t.user("ann");
  // Killed again and again a reply goes to the background, where a later one may pass it.
  if (point === undefined && seeded) expect([...ann.screen].sort()).toEqual([...SAID].sort());
  else expect(ann.screen).toEqual(SAID);
  // A process that dies between what a step does and its record does it again: nobody can know.
  const at = point?.label === "turn.step" && point.side === "before" ? point.nth : 0;
  expect(world.coupons).toBe(at === 1 ? 2 : 1);
  expect(world.placed).toHaveLength(at === 2 ? 2 : 1);
  const { state } = t.client.chat(ann.address);
  expect([await state.get("orders"), await state.get("coupon")]).toEqual([1, undefined]);
  const { rows } = await t.client.chat(ann.address).flows.list();
  expect(rows.map((row) => row.state)).toEqual(["done"]);
}

test("an answer that gets a step further each time its process dies is not given up", async () => {
  const t = testBot(
    botWith((bot) => {
      const flow = bot.flow("long", async (c) => {
        await c.ask("Go?");
        for (let n = 1; n <= 10; n += 1) await c.step("part", () => n);
        await c.reply("done");
      });
      bot.command("long", (ctx) => ctx.start(flow));
    }),
  );
  const ann = t.user("ann");
  await ann.say("/long");
  t.runtime.onProbe = ({ label, side }) => label === "turn.step" && side === "after";
  await ann.post({ text: "yes" });
  await t.advance("1h");
  expect(ann.screen).toEqual(["Go?", "done"]);
  t.close();
});

describe("an order flow", () => {
  test("killed at every label: each question is asked once, the order placed once", async () => {
    let world: World = newWorld();
    const { points } = await crashEverywhere(
      {
        bot: () => {
          world = newWorld();
          return orderBot(world);
        },
        run: (t) => orders(t, world),
      },
      (t, point) => checked(t, world, point),
    );
    const labels = new Set(points.map((point) => point.label));
    for (const label of ["flow.start", "flow.hook", "flow.timers", "turn.step", "turn.settle"])
      expect(labels).toContain(label);
  });

  test("killed at 200 seeded moments", async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const world: World = newWorld();
      const t = testBot(orderBot(world), { seed });
      const random = seededRandom(seed);
      let steps = 0;
      t.runtime.onProbe = ({ kind, label, side }) => {
        // What a step did before its record is nobody's to know: not killed there.
        if (kind !== "ChatActor" || (label === "turn.step" && side === "before")) return false;
        steps += 1;
        return steps < 400 && random() < 0.04;
      };
      await orders(t, world);
      try {
        await checked(t, world, undefined, true);
      } catch (error) {
        if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
        throw error;
      } finally {
        t.close();
      }
    }
  });

  test("with a deploy of unrelated code after every message", async () => {
    const world: World = newWorld();
    const t = testBot(orderBot(world));
    await orders(t, world, async () => {
      const bot = orderBot(world);
      bot.command("new", (ctx) => ctx.reply("new"));
      await deploy(t, bot);
    });
    await checked(t, world);
    t.close();
  });
});
