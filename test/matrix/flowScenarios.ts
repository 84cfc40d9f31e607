/**
 * Scenarios of the crash matrix about flows.
 *
 * @module
 */
import type { Hook } from "../../src/index.ts";
import { botOf, insist, type Scenario } from "./scenarioKit.ts";

/** Tokens of hooks that the function has shown. */
const hooks: string[] = [];

const ordering: Scenario = {
  name: "a flow that asks, waits for a third party and sleeps",
  bot(column) {
    const bot = botOf(column);
    const order = bot.flow("order", async (c) => {
      const size = await c.ask("Size?");
      const paid: Hook<number> = c.hook("payment");
      hooks.push(paid.token);
      await c.step("place", () => size);
      const { value } = await c.waitFor({ paid });
      c.state.set("paid", value);
      await c.reply(`${value} for ${size}`);
      await c.sleep("1m");
      await c.reply("enjoy");
    });
    bot.command("order", (ctx) => ctx.start(order, undefined, { id: "order" }));
    bot.command("other", (ctx) => ctx.start(order, undefined, { id: "other" }));
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    await ann.say("/order");
    await t.advance("1m");
    await ann.say("large");
    await t.advance("1m");
    await insist(t, () => t.client.resume(hooks.at(-1) ?? "", 7));
    await t.advance("3m");
    await ann.say("/other");
    await insist(t, () => t.client.chat(ann.address).flows.cancel("other"));
    await t.idle();
    await t.advance("1m");
  },
};

/** The scenarios. */
export const FLOW_SCENARIOS: readonly Scenario[] = [ordering];
