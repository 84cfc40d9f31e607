/** How long a reply is under way: from the webhook's arrival to the platform's. @module */
import { postOf, Wired } from "../lib/http.ts";
import type { Platform } from "../lib/Platform.ts";
import { messageTo, Served, type Side } from "../lib/Served.ts";
import { inTurn, type Result, type Section } from "../lib/section.ts";
import { median, percentile } from "../lib/stats.ts";
import { freshChat } from "../lib/updates.ts";

const PATHS: Record<Side, string> = { holdfast: "/webhooks/telegram", bare: "/bare/answer" };

/**
 * Between two messages, in ms: what is left to do after a reply is at the platform belongs to no other
 * message's time.
 */
const REST_MS = 4;
/** A request that is refused without an object. */
const KNOCK = postOf("/bare/insert", {}, "{}");

/** Rests with the process kept awake: a machine that has to wake up first would add the same to both sides. */
async function rest(wire: Wired): Promise<void> {
  const until = performance.now() + REST_MS;
  while (performance.now() < until) await wire.send(KNOCK);
}

/** Ms from the request's first byte to the platform having all of the reply. */
async function answered(
  wire: Wired,
  platform: Platform,
  path: string,
  chat: number,
): Promise<number> {
  const { request, reply } = messageTo(path, chat);
  const arrival = platform.arrival(reply);
  const began = performance.now();
  const status = await wire.send(request);
  if (status !== 200) throw new Error(`the webhook answered ${status}`);
  return (await arrival).at - began;
}

/** The section. */
export const latency: Section = {
  name: "latency",
  async run(bench): Promise<Result> {
    const { platform } = bench;
    const chats = bench.quick ? 15 : 100;
    const options = { worker: "plain", bot: "echo", apiBase: platform.url } as const;
    await using holdfast = await Served.start(options);
    await using bare = await Served.start(options);
    const served = { holdfast, bare };
    const rounds = await inTurn(bench, "latency", async (side) => {
      const wire = await Wired.open(served[side].port);
      const fresh = Array.from({ length: chats }, freshChat);
      const first: number[] = [];
      const next: number[] = [];
      const atOnce: number[] = [];
      for (const [times, rests] of [
        [first, true],
        [next, true],
        [atOnce, false],
      ] as const) {
        for (const chat of fresh) {
          times.push(await answered(wire, platform, PATHS[side], chat));
          if (rests) await rest(wire);
        }
      }
      wire.close();
      return { first, next, atOnce };
    });
    type Times = (typeof rounds)["bare"][number];
    const each = (of: (times: Times) => number) => ({
      holdfast: rounds.holdfast.map(of),
      baseline: rounds.bare.map(of),
    });
    return {
      title: "Webhook arrival to platform arrival",
      how: `One message at a time, at least ${REST_MS} ms apart (with requests that are refused at
the door, so that nothing falls asleep), over ${chats} chats in each round. The client writes the webhook and is the platform,
so both moments are read from one clock: the request's first byte written, the whole of \`sendMessage\`
received. Holdfast: admission, a turn whose handler replies, the reply's record, the call. Baseline: an
object that inserts the update and calls the same server, held by the same output gate. The budget is on a
chat that is known and in memory. Without the rest, the end of one turn (its receipt, its settling) falls into
the time of the next message; that line, and the first message of a chat, which makes tables on both sides, are for
information.`,
      lines: [
        {
          what: "webhook to platform, median",
          unit: "ms",
          ...each((times) => median(times.next)),
          budget: { most: 1.5 },
        },
        {
          what: "webhook to platform, 95th percentile",
          unit: "ms",
          ...each((times) => percentile(times.next, 0.95)),
        },
        {
          what: "no rest between two messages, median",
          unit: "ms",
          ...each((times) => median(times.atOnce)),
        },
        {
          what: "first message of a chat, median",
          unit: "ms",
          ...each((times) => median(times.first)),
        },
      ],
    };
  },
};
