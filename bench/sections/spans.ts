/** Where the time of a turn goes. @module */
import { type Pair, Writer } from "../lib/chat.ts";
import { number } from "../lib/report.ts";
import { Served } from "../lib/Served.ts";
import type { Bench, Result, Section } from "../lib/section.ts";
import { mean } from "../lib/stats.ts";
import { freshChat } from "../lib/updates.ts";
import { type Mark, ORIGIN } from "../worker/marks.ts";

const CHATS = 50;

/** The steps that every pair passes, in order, and what the time up to each is spent on. */
const STEPS: readonly (readonly [step: string, spentOn: string])[] = [
  ["client wrote", ""],
  [ORIGIN, "HTTP in: client, socket, start of the Worker"],
  ["actor in", "edge: route, read, verify, parse, call to the object"],
  ["inbox.receive before", "receive: read the request"],
  ["inbox.receive after", "receive: commit (checks, insert, claim)"],
  ["turn.handler before", "claim: the turn's parts are made"],
  ["outbox.insert before", "handler: routing, the bot's code, rendering"],
  ["outbox.insert after", "outbox: commit of the intent"],
  ["channel.send before", "outbox: to the call"],
  ["platform has it", "call out: output gate, disk, HTTP"],
  ["channel.send after", "call back: answer, parse"],
  ["outbox.markSent before", "outbox: judge the answer"],
  ["outbox.markSent after", "outbox: commit of the receipt"],
  ["turn.handler after", "handler: reply resolves, handler returns"],
  ["turn.settle before", "settle: what is left open"],
  ["turn.settle after", "settle: commit"],
];

const TO_PLATFORM = "platform has it";

/** Mean moments of the steps, in ms after the message came in, in order. */
function momentsOf(marks: Record<string, Mark>, pairs: readonly Pair[]): Map<string, number> {
  const moments = new Map<string, number>();
  for (const [name, { sum, count }] of Object.entries(marks)) {
    // A step that some messages skip has no place in a mean over all.
    if (count === pairs.length) moments.set(name, sum / count);
  }
  const edgeIn = marks.origin?.sum ?? Number.NaN;
  const outside = (of: (pair: Pair) => number) => mean(pairs.map(of)) - edgeIn / pairs.length;
  moments.set(
    "client wrote",
    outside((pair) => pair.wroteAt),
  );
  moments.set(
    TO_PLATFORM,
    outside((pair) => pair.arrivedAt),
  );
  moments.set(
    "client has the answer",
    outside((pair) => pair.answeredAt),
  );
  return moments;
}

async function run(bench: Bench): Promise<Result> {
  const count = bench.quick ? 300 : 3_000;
  const apiBase = bench.platform.url;
  await using served = await Served.start({ worker: "looked", bot: "echo", apiBase });
  const writer = new Writer(served, bench.platform);
  const chats = Array.from({ length: CHATS }, freshChat);
  bench.say("spans: warming up");
  for (const chat of [...chats, ...chats, ...chats]) await writer.pair(chat);
  await served.ask("marks");
  bench.say(`spans: ${count} messages`);
  const pairs: Pair[] = [];
  for (let n = 0; n < count; n += 1) pairs.push(await writer.pair(chats[n % CHATS] ?? 0));
  const marks = (await served.ask("marks")) as Record<string, Mark>;
  writer.close();
  const moments = momentsOf(marks, pairs);
  const missing = STEPS.filter(([step]) => !moments.has(step)).map(([step]) => step);
  if (missing.length > 0) {
    throw new Error(`no time of: ${missing.join(", ")}; seen: ${Object.keys(marks).join(", ")}`);
  }
  const at = (step: string) => moments.get(step) ?? Number.NaN;
  const [first, last] = [at("client wrote"), at("turn.settle after")];
  const spans = STEPS.slice(1).map(([step, spentOn], index) => {
    const ms = at(step) - at(STEPS[index]?.[0] ?? "");
    return { spentOn, ms, share: ms / (last - first), at: at(step) - first };
  });
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
  const largest = [...spans].sort((a, b) => b.ms - a.ms).slice(0, 3);
  return {
    title: "Where the time of a turn goes",
    how: `${count} messages with one reply, one at a time, over ${CHATS} chats that are in memory. Each labelled step of the
runtime is timed inside the process; what comes before and after is timed by the client, which is the platform
as well. The runtime's clock ticks in whole milliseconds, so a span is a difference of means: exact to about
0.02 ms, never of one message. The webhook was answered ${number(at("client has the answer") - first)} ms after it was written, beside the turn.`,
    lines: [],
    tables: [
      {
        title: "Spans",
        head: ["spent on", "ms", "share", "over at"],
        rows: spans.map(({ spentOn, ms, share, at: over }) => [
          spentOn,
          ms.toFixed(3),
          percent(share),
          `${over.toFixed(2)} ms`,
        ]),
      },
      {
        title: "The three largest",
        head: ["spent on", "ms", "share"],
        rows: largest.map(({ spentOn, ms, share }) => [spentOn, ms.toFixed(3), percent(share)]),
      },
    ],
  };
}

/** The section. */
export const spans: Section = { name: "spans", run };
