/** How many messages a process admits in a second. @module */
import { flood, type Wire } from "../lib/http.ts";
import { messageTo, Served } from "../lib/Served.ts";
import { type Bench, inTurn, type Line, quiet, type Result, type Section } from "../lib/section.ts";
import { freshChat } from "../lib/updates.ts";
import type { BotKind } from "../worker/env.ts";

const HOOK = "/webhooks/telegram";
const BARE = "/bare/insert";
const CONNECTIONS = 32;

/** Messages of one measurement, and over how many chats. */
interface Load {
  chats: number;
  each: number;
  /** Whether the chats are written to at the same time, or one after the other. */
  together: boolean;
}

/** What one measurement gives. */
interface Rate {
  perSecond: number;
  cpuMsPerMessage: number;
}

async function measure(served: Served, path: string, load: Load): Promise<Rate> {
  const chats = Array.from({ length: load.chats }, freshChat);
  const messages = (chat: number, count: number): Wire[] =>
    Array.from({ length: count }, () => messageTo(path, chat).request);
  // The first message makes a chat's tables; it is counted on neither side.
  const first = chats.flatMap((chat) => messages(chat, 1));
  await flood(served.port, first, CONNECTIONS);
  await quiet(served);
  const perChat = chats.map((chat) => messages(chat, load.each));
  const floods = load.together ? [alternating(perChat)] : perChat;
  const cpuBefore = served.cpuMs();
  let ms = 0;
  for (const requests of floods) ms += await flood(served.port, requests, CONNECTIONS);
  await quiet(served);
  const count = load.chats * load.each;
  return {
    perSecond: (count * 1_000) / ms,
    cpuMsPerMessage: (served.cpuMs() - cpuBefore) / count,
  };
}

/** One of each, then again: so that neighbours belong to different chats. */
function alternating(perChat: readonly Wire[][]): Wire[] {
  const longest = Math.max(...perChat.map((requests) => requests.length));
  return Array.from({ length: longest }, (_unused, at) =>
    perChat.flatMap((requests) => requests[at] ?? []),
  ).flat();
}

async function compare(
  bench: Bench,
  kind: BotKind,
  load: Load,
  what: string,
  budget: NonNullable<Line["budget"]> | undefined,
): Promise<Line[]> {
  const apiBase = bench.platform.url;
  await using holdfast = await Served.start({ worker: "plain", bot: kind, apiBase });
  await using bare = await Served.start({ worker: "plain", bot: kind, apiBase });
  const rates = await inTurn(bench, what, (side) =>
    side === "holdfast" ? measure(holdfast, HOOK, load) : measure(bare, BARE, load),
  );
  const pick = (name: keyof Rate) => ({
    holdfast: rates.holdfast.map((rate) => rate[name]),
    baseline: rates.bare.map((rate) => rate[name]),
  });
  return [
    {
      what,
      unit: "messages/s",
      ...pick("perSecond"),
      ...(budget === undefined ? {} : { budget }),
    },
    { what: "  its processor time", unit: "ms/message", ...pick("cpuMsPerMessage") },
  ];
}

/** The section. */
export const receive: Section = {
  name: "receive",
  async run(bench): Promise<Result> {
    const size = bench.quick ? 20 : 200;
    const many: Load = { chats: size, each: 10, together: true };
    const one: Load = { chats: size / 20, each: 200, together: false };
    const least = { least: 0.8 };
    return {
      title: "Receive throughput",
      how: `${CONNECTIONS} kept connections post Telegram updates of private messages, each as soon as its last was
answered; every chat had one message before, which is not counted. Holdfast: the whole edge (route, body
cap, secret, parse, one call to the chat's object) and its commit. Baseline: a Worker that reads the body,
compares the secret in constant time, parses the JSON and calls an object that inserts the same JSON into
one table with a unique id. "Turns off": the bot's handler never returns, so all that comes after a chat's
first message is admitted and queued, and runs no turn. "Trivial turns": a bot without handlers, so each
message is also claimed, run and settled; for information. Processor time is that of the whole runtime
process, in ticks of 10 ms over all messages of a round.`,
      lines: [
        ...(await compare(bench, "held", many, "receive, turns off, many chats", least)),
        ...(await compare(bench, "held", one, "receive, turns off, one chat at a time", least)),
        ...(await compare(bench, "none", many, "receive, trivial turns, many chats", undefined)),
        ...(await compare(
          bench,
          "none",
          one,
          "receive, trivial turns, one chat at a time",
          undefined,
        )),
      ],
    };
  },
};
