/**
 * Scenarios of the crash matrix about streamed answers.
 *
 * @module
 */
import { ModelStream } from "../../src/testing/ModelStream.ts";
import { botOf, type Scenario } from "./scenarioKit.ts";

/** Two messages' worth, no word twice. */
const ANSWER = "one two three four five six seven eight nine ten eleven twelve";

const streaming: Scenario = {
  name: "an answer that is streamed, and one that is interrupted",
  bot(column) {
    const bot = botOf(column, { busy: { concurrency: "interrupt" } });
    bot.otherwise(async (ctx) => {
      const text = ANSWER.replaceAll(/\w+/g, (word) => `${ctx.text}-${word}`);
      await ctx.stream(new ModelStream(text, { tokensPerSecond: 4 }));
      await ctx.reply(`done ${ctx.text}`);
    });
    return bot;
  },
  async run(t) {
    const ann = t.user("ann");
    await ann.say("a");
    await ann.post({ text: "b" });
    await t.advance("2500ms");
    await ann.say("c");
    await t.advance("5m");
  },
};

/** The scenarios. */
export const STREAM_SCENARIOS: readonly Scenario[] = [streaming];
