/** A disk that refuses a write: that passes, and what a run was doing goes on as if it had not been. */
import { describe, expect, test } from "vitest";
import { made, pause, refuseCommits } from "./lab.ts";

describe("a disk that refuses a write beside a wait", () => {
  test("has the turn run again: a step is done once more, and the run goes on", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        const [size, id] = await Promise.all([
          c.ask("Size?"),
          c.step("place", async () => {
            await pause(t, 1_000);
            return 7;
          }),
        ]);
        await c.reply(`${id} ${size}`);
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    let refused = 0;
    refuseCommits(t, (label) => label === "turn.step" && refused++ === 0);
    await ann.say("/order");
    await ann.say("small");
    expect(ann.screen).toEqual(["Size?", "7 small"]);
    expect((await t.client.chat(ann.address).flows.list()).rows).toMatchObject([{ state: "done" }]);
  });

  test("loses no send, though the function caught the error", async () => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await Promise.all([
          c.ask("Size?"),
          c
            .step("wait", () => pause(t, 1_000))
            .then(() => c.reply("one"))
            .catch(() => c.reply("two"))
            .catch(() => c.reply("three")),
        ]);
        await c.reply("done");
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    let inserts = 0;
    // The question is the first.
    refuseCommits(t, (label) => label === "outbox.insert" && ++inserts === 2);
    await ann.say("/order");
    await ann.say("small");
    expect(ann.screen).toEqual(["Size?", "one", "done"]);
  });
});

test("a disk that refuses to keep how a step failed has the turn run again", async () => {
  const { t } = made((bot) => {
    const flow = bot.flow("order", async (c) => {
      await c.step("charge", () => Promise.reject(new Error("no"))).catch(() => 0);
      const id = await c.step("note", () => 7).catch(() => "nothing");
      await c.reply(`Declined, ${id}.`).catch(() => 0);
      await c.ask("Again?").catch(() => 0);
    });
    bot.command("order", (ctx) => ctx.start(flow));
  });
  const ann = t.user("ann");
  let refused = 0;
  refuseCommits(t, (label) => label === "turn.step" && refused++ === 0);
  await ann.say("/order");
  expect(ann.screen).toEqual(["Declined, 7.", "Again?"]);
});

describe("a disk that refuses a part of a batch", () => {
  test.each([
    ["its first", ["one", "two"]],
    ["one behind content that cannot be sent", [{ text: "x", template: { name: "t" } }, "two"]],
  ] as const)("%s: the batch is made again, and none is left out", async (_what, contents) => {
    const { t } = made((bot) => {
      const flow = bot.flow("order", async (c) => {
        await c.sendBatch(contents);
        await c.ask("Go on?");
        await c.reply("done");
      });
      bot.command("order", (ctx) => ctx.start(flow));
    });
    const ann = t.user("ann");
    let refused = 0;
    refuseCommits(t, (label) => label === "outbox.insert" && refused++ === 0);
    await ann.say("/order");
    await t.restart();
    await ann.say("yes");
    const sent = contents.filter((content) => typeof content === "string");
    expect(ann.screen.toSorted()).toEqual([...sent, "Go on?", "done"].toSorted());
  });
});
