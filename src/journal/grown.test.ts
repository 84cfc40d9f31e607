/** A chat with few records is scanned; one that grew has its indexes, whatever happened on the way. */
import { expect, test } from "vitest";
import { Lab } from "../../test/engine/lab.ts";
import { SCAN_ROWS } from "./schema.ts";

const INDEXES = ["inbox_open", "outbox_due"];

function indexes(lab: Lab): string[] {
  return lab
    .sql<{ name: string }>(
      `SELECT name FROM sqlite_master WHERE name IN ('inbox_open', 'outbox_due') ORDER BY name`,
    )
    .map((row) => row.name);
}

function rows(lab: Lab): number {
  return lab.events().length + lab.sends().length;
}

function echo(): Lab {
  return new Lab({ setup: (bot) => bot.otherwise((ctx) => ctx.reply(`you said: ${ctx.text}`)) });
}

/** Sends messages until so many rows are kept. */
async function talk(lab: Lab, until: number): Promise<void> {
  for (let n = rows(lab); n < until; n += 2) await lab.ann.say(`message ${n}`);
}

test("the indexes are made when a scan begins to cost more, and not before", async () => {
  const lab = echo();
  await talk(lab, SCAN_ROWS);
  expect(rows(lab)).toBe(SCAN_ROWS);
  expect(indexes(lab)).toEqual([]);
  await lab.ann.say("one more");
  expect(indexes(lab)).toEqual(INDEXES);
});

test("growth is counted across lives", async () => {
  const lab = echo();
  for (let n = 0; n < SCAN_ROWS / 8 + 1; n += 1) {
    await talk(lab, (n + 1) * 8);
    lab.t.runtime.kill();
  }
  expect(indexes(lab)).toEqual(INDEXES);
});

test("a commit that fails at the crossing leaves neither rows nor a belief in indexes", async () => {
  const lab = echo();
  await talk(lab, SCAN_ROWS);
  let full = true;
  lab.refuseCommits(() => full);
  const item = lab.message("at-the-crossing", "lost?");
  await expect(lab.receive([item])).rejects.toThrow("disk is full");
  expect(indexes(lab)).toEqual([]);
  full = false;
  await lab.receive([item]);
  await lab.t.idle();
  expect(indexes(lab)).toEqual(INDEXES);
  expect(lab.screen.at(-1)).toBe("you said: lost?");
});

test("a send for later of a small chat is found by its next life", async () => {
  const lab = new Lab({
    setup: (bot) =>
      bot.otherwise(async (ctx) => {
        await ctx.enqueue("reminder", { delay: "1m" });
      }),
  });
  await lab.ann.say("remind me");
  expect(indexes(lab)).toEqual([]);
  lab.t.runtime.kill();
  await lab.t.advance("2m");
  expect(lab.screen).toEqual(["reminder"]);
});
