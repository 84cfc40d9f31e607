/** Notices of a move cross each other and late messages: the chat answers under both names afterwards. */
import { describe, expect, test } from "vitest";
import { TelegramLab } from "./telegramLab.ts";

const OLD = -11;
const NEW = -1_002;

function group(): TelegramLab {
  return new TelegramLab((bot) => bot.otherwise((ctx) => ctx.reply(`ok ${ctx.text}`)));
}

type Update = Parameters<TelegramLab["post"]>[0];

const updates = (lab: TelegramLab) => ({
  to: lab.sim.messageUpdate({
    chatId: OLD,
    text: "",
    fields: { text: undefined, migrate_to_chat_id: NEW },
  }),
  from: lab.sim.messageUpdate({
    chatId: NEW,
    text: "",
    fields: { text: undefined, migrate_from_chat_id: OLD },
  }),
  late: lab.sim.messageUpdate({ chatId: OLD, text: "late" }),
  early: lab.sim.messageUpdate({ chatId: NEW, text: "early" }),
});

const orders: (keyof ReturnType<typeof updates>)[][] = [
  ["to", "late"],
  ["late", "to"],
  ["to", "late", "from"],
  ["from", "to", "late", "early"],
  ["early", "from", "late", "to"],
  ["from", "late"],
];

/** Posts as the platform does: what is refused comes again. */
async function post(lab: TelegramLab, update: Update): Promise<void> {
  for (let tries = 0; (await lab.post(update)) !== 200; tries += 1) {
    if (tries === 60) throw new Error("refused for a minute");
    await lab.runtime.advance(1_000);
  }
}

describe.each(["neither name", "the old name", "the new name", "both names"])(
  "%s known",
  (known) => {
    test.each(orders.map((order) => [order.join(", "), order] as const))(
      "%s at once",
      async (_name, order) => {
        const lab = group();
        if (known !== "neither name" && known !== "the new name")
          await post(lab, lab.sim.messageUpdate({ chatId: OLD, text: "before" }));
        if (known === "the new name" || known === "both names")
          await post(lab, lab.sim.messageUpdate({ chatId: NEW, text: "before" }));
        await lab.idle();
        const all = updates(lab);
        await Promise.all(order.map((one) => post(lab, all[one])));
        await lab.idle();
        await post(lab, lab.sim.messageUpdate({ chatId: NEW, text: "to the new" }));
        await post(lab, lab.sim.messageUpdate({ chatId: OLD, text: "to the old" }));
        await lab.idle();
        const said = lab.sim.sent.map((message) => message.text);
        for (const text of ["to the new", "to the old"])
          expect(said.filter((one) => one === `ok ${text}`)).toHaveLength(1);
        expect(lab.logs.join("\n")).not.toContain("pointed at each other");
      },
    );
  },
);

test("a turn that runs again after its chat has moved says nothing twice", async () => {
  let runs = 0;
  const lab = new TelegramLab(
    (bot, l) =>
      bot.otherwise(async (ctx) => {
        runs += 1;
        await ctx.reply("one");
        if (runs === 1) l.sim.migrate(OLD, NEW);
        await ctx.reply("two");
        if (runs > 1) return;
        l.runtime.kill();
        await new Promise(() => {});
      }),
    { durability: { inbox: { minAgeMs: 0 } } },
  );
  await post(lab, lab.sim.messageUpdate({ chatId: OLD, text: "go" }));
  await lab.idle();
  expect(runs).toBe(2);
  expect(lab.sim.sent.map(({ chatId, text }) => [chatId, text])).toEqual([
    [String(OLD), "one"],
    [String(NEW), "two"],
  ]);
});
