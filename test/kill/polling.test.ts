/** Polling on the real runtime, killed between fetching a batch and saving how far it got. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { BotProcess, until } from "./BotProcess.ts";

const TOKEN = "local-admin-token";
const CHATS = [81, 82, 83];
const ROUNDS = 6;

/** What `npm start` does: any contact resumes polling before its alarm would. */
async function startPolling(bot: BotProcess): Promise<void> {
  const response = await fetch(`${bot.workerd.url}/_local/polling/telegram/start`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: AbortSignal.timeout(5_000),
  });
  expect(response.status).toBe(200);
  await response.arrayBuffer();
}

const pollsOf = (bot: BotProcess) => bot.sim.calls.filter((call) => call.method === "getUpdates");

it("killed between fetching a batch and committing it: nothing is lost or doubled", async () => {
  await using bot = new BotProcess({
    leaseMs: 500,
    vars: { HOLDFAST_LOCAL: "1", HOLDFAST_ADMIN_TOKEN: TOKEN },
  });
  await bot.start();
  await startPolling(bot);
  const ids = new Map<number, string[]>(CHATS.map((chat) => [chat, []]));
  let refetched = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    // The poll that confirmed everything waits now: what comes comes as one batch.
    await until(() => pollsOf(bot)[0]);
    const { length: started } = bot.starts;
    for (const chat of CHATS) {
      for (const text of ["first", "second"]) {
        const update = bot.sim.messageUpdate({ chatId: chat, text });
        ids.get(chat)?.push(String(update.update_id));
        bot.sim.enqueue(update);
      }
    }
    // Half of the kills as the batch arrives, half when the first of its chats has committed.
    if (round % 2 === 0) await delay(round * 2);
    else await until(() => bot.starts.length > started || undefined);
    await bot.workerd.kill();
    const before = pollsOf(bot).length;
    await bot.workerd.start();
    await startPolling(bot);
    const next = await until(() => pollsOf(bot)[before]);
    const last = Math.max(...[...ids.values()].flat().map(Number));
    if (Number(next.params.offset ?? 0) <= last) refetched += 1;
    await until(() => bot.sim.pending.length === 0 || undefined);
  }
  for (const chat of CHATS) {
    const { count } = await bot.settles(chat, 10_000);
    expect(count).toBe(2 * ROUNDS);
    const said = bot.said(chat).map((text) => text.split(":")[0]);
    expect(new Set(said).size).toBe(said.length);
    const known = new Set([...said, ...bot.ambiguous.map((one) => one.key.split(":")[0])]);
    expect(ids.get(chat)?.filter((id) => !known.has(id))).toEqual([]);
  }
  expect(bot.sim.confirmed.map(String).sort()).toEqual([...ids.values()].flat().sort());
  expect(bot.dead).toEqual([]);
  // Otherwise no kill hit the moment that this is about.
  expect(refetched).toBeGreaterThan(0);
});
