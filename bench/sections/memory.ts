/** What a live chat costs in memory. @module */
import { setTimeout as delay } from "node:timers/promises";
import { flood } from "../lib/http.ts";
import { messageTo, Served, type Side } from "../lib/Served.ts";
import { type Bench, inTurn, quiet, type Result, type Section } from "../lib/section.ts";
import { freshChat } from "../lib/updates.ts";

const PATHS: Record<Side, string> = { holdfast: "/webhooks/telegram", bare: "/bare/answer" };
const CONNECTIONS = 16;
/** Chats that come before, so that what is loaded once does not count. */
const WARM = 50;

/** One pair in each of so many fresh chats. */
async function pairs(bench: Bench, served: Served, side: Side, chats: number): Promise<void> {
  const messages = Array.from({ length: chats }, () => messageTo(PATHS[side], freshChat()));
  const arrivals = messages.map(({ reply }) => bench.platform.arrival(reply));
  await flood(
    served.port,
    messages.map(({ request }) => request),
    CONNECTIONS,
  );
  await Promise.all(arrivals);
  await quiet(served);
}

/** Bytes of resident memory for each chat, in a process of its own. */
async function measure(bench: Bench, side: Side, chats: number): Promise<number> {
  const apiBase = bench.platform.url;
  await using served = await Served.start({ worker: "plain", bot: "echo", apiBase });
  await pairs(bench, served, side, WARM);
  const before = served.rss();
  await pairs(bench, served, side, chats);
  const after = served.rss();
  const live = served.liveObjects();
  // An object that was idle for ten seconds is gone, and measures nothing.
  if (live < chats) throw new Error(`only ${live} of ${chats} ${side} objects are in memory`);
  // The ports of the process that ends are free for the next.
  await delay(0);
  return (after - before) / chats;
}

/** The section. */
export const memory: Section = {
  name: "memory",
  async run(bench): Promise<Result> {
    const chats = bench.quick ? 200 : 1_000;
    const bytes = await inTurn(bench, "memory", (side) => measure(bench, side, chats));
    const kib = (values: readonly number[]) => values.map((value) => value / 1_024);
    return {
      title: "Memory of the runtime's process per live chat",
      how: `Each value is from a fresh process: ${WARM} chats first, then resident memory before and after ${chats.toLocaleString("en")} more chats had
one message and one reply each, divided by their number; the sides take turns. That all objects are in
memory is checked by their open databases (Linux). Garbage that the runtime has not yet collected counts on both
sides, and so does SQLite's page cache. Baseline: an object that inserts the update and calls the platform.`,
      lines: [
        {
          what: `${chats.toLocaleString("en")} live chats: memory of each`,
          unit: "KiB/chat",
          holdfast: kib(bytes.holdfast),
          baseline: kib(bytes.bare),
          budget: { most: 1.3 },
        },
      ],
    };
  },
};
