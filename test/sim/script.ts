/**
 * The bot of the simulator: each event carries a script of what its handler does.
 *
 * @module
 */

import type { AnyChannel } from "../../src/channels/channel.ts";
import type { Context, Flow } from "../../src/index.ts";
import { Bot, RetryTurn } from "../../src/index.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";
import type { DurabilityOptions } from "../../src/turns/options.ts";

/** One thing that a handler does. */
export type Op =
  /** Awaits a reply. */
  | { op: "reply"; text: string }
  /** Replies and does not wait. */
  | { op: "loose"; text: string }
  /** Records a send for later. */
  | { op: "enqueue"; text: string; delay: number }
  /** Records a send with the settle. */
  | { op: "settled"; text: string }
  /** Replies under an explicit key. */
  | { op: "keyed"; text: string; key: string }
  /** Writes an answer piece by piece, with so long between two. */
  | { op: "stream"; text: string; everyMs: number }
  /** Several replies at once. */
  | { op: "batch"; texts: string[] }
  /** A recorded step with a reply in it. */
  | { op: "step"; name: string; text: string }
  /** Says something else on every run. */
  | { op: "diverge"; text: string }
  /** Says something in another chat. */
  | { op: "relay"; text: string }
  /** Takes time. */
  | { op: "sleep"; ms: number }
  /** Fails. */
  | { op: "throw" }
  /** Asks to be run again, on the first run only. */
  | { op: "retry"; after?: number }
  /** Refuses the event on the first run, and goes on. */
  | { op: "nack" }
  /** Starts a flow that says, does and sleeps. */
  | { op: "flow"; text: string; rounds: number };

/** What the handler of one event saw. */
export interface Seen {
  starts: number;
  /** Results by text: the last one that a run reported. */
  results: Map<string, { status: string; ids: string[] }>;
  stepRuns: Map<string, number>;
}

/** The simulator's view of the bot at work. */
export interface Watch {
  seen: Map<string, Seen>;
  /** Handlers running now, by chat. */
  running: Map<string, number>;
  overlaps: string[];
  /** Event ids in order of their first start, by chat. */
  order: Map<string, string[]>;
  announced: { kind: string; key: string }[];
  sleep(ms: number): Promise<void>;
}

/** The chat that relays go to. */
export const HUB = "hub";

/** Makes the bot. */
export function scriptBot(
  channel: AnyChannel,
  durability: DurabilityOptions,
  busy: BusyOptions,
  watch: () => Watch,
): Bot {
  const bot = new Bot({ id: "sim", channels: [channel], durability, ...busy });
  bot.on("durability:ambiguous", (event) => {
    watch().announced.push({ kind: "ambiguous", key: event.key });
  });
  bot.on("durability:dead", (event) => {
    watch().announced.push({ kind: "dead", key: event.id });
  });
  const flow = walk(bot);
  bot.otherwise(async (ctx) => {
    const w = watch();
    const chat = ctx.chat.id;
    const id = ctx.ref.id;
    const seen = w.seen.get(id) ?? { starts: 0, results: new Map(), stepRuns: new Map() };
    w.seen.set(id, seen);
    seen.starts += 1;
    if (seen.starts === 1) w.order.set(chat, [...(w.order.get(chat) ?? []), id]);
    for (const { id: member, text } of ctx.burst) {
      ctx.state.update<string[]>("done", (done) => [...(done ?? []), member]);
      for (const op of JSON.parse(text ?? "[]") as Op[]) {
        if (op.op === "flow") {
          // Of nobody, so that no message is an answer to it.
          const options = { id: op.text, sender: `flow ${op.text}` };
          await ctx.start(flow, { text: op.text, rounds: op.rounds }, options);
        } else await run(ctx, op, w, seen);
      }
    }
  });
  return bot;
}

/** A flow that goes on by time alone. */
function walk(bot: Bot): Flow<{ text: string; rounds: number }, string> {
  return bot.flow("walk", async (c, input: { text: string; rounds: number }) => {
    const told: string[] = [];
    for (let round = 0; round < input.rounds; round += 1) {
      const text = await c.step(`step ${round}`, () => {
        c.state.update<number>(`flow:${input.text}`, (n) => (n ?? 0) + 1);
        return `${input.text}.r${round}`;
      });
      await c.reply(text).catch(() => undefined);
      told.push(`${text} ${c.uuid()}`);
      await c.sleep(1_000 + Math.floor(c.random() * 20_000));
    }
    return told.join(", ");
  });
}

async function* written(text: string, pause: () => Promise<void>): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += 8) {
    await pause();
    yield text.slice(at, at + 8);
  }
}

type ScriptOp = Exclude<Op, { op: "flow" }>;

async function run(
  ctx: Context<Cloudflare.Env>,
  op: ScriptOp,
  watch: Watch,
  seen: Seen,
): Promise<void> {
  const note = (
    text: string,
    result: { status: string; receipt?: { platformMessageIds: string[] } },
  ) => {
    seen.results.set(text, {
      status: result.status,
      ids: result.receipt?.platformMessageIds ?? [],
    });
  };
  const failed = (text: string) => (error: unknown) => {
    seen.results.set(text, {
      status: `error:${(error as { code?: string }).code ?? String(error)}`,
      ids: [],
    });
  };
  switch (op.op) {
    case "reply":
      await ctx.reply(op.text).then((result) => note(op.text, result), failed(op.text));
      return;
    case "loose":
      ctx.reply(op.text).then((result) => note(op.text, result), failed(op.text));
      return;
    case "enqueue":
      await ctx.enqueue(op.text, { delay: op.delay });
      return;
    case "settled":
      await ctx.enqueue(op.text, { when: "settled" });
      return;
    case "keyed":
      await ctx
        .reply(op.text, { idempotencyKey: op.key })
        .then((result) => note(op.text, result), failed(op.text));
      return;
    case "stream":
      await ctx
        .stream(written(op.text, () => watch.sleep(op.everyMs)))
        .then((result) => note(op.text, result), failed(op.text));
      return;
    case "batch":
      await ctx.sendBatch(op.texts);
      return;
    case "step":
      // Named by its text, since a burst has the steps of several messages.
      await ctx.step(`${op.name} ${op.text}`, async () => {
        seen.stepRuns.set(op.name, (seen.stepRuns.get(op.name) ?? 0) + 1);
        await ctx.reply(op.text).then((result) => note(op.text, result), failed(op.text));
        ctx.state.set(`step:${ctx.ref.id}`, op.name);
      });
      return;
    case "diverge":
      await ctx.reply(`${op.text} run ${ctx.attempt}`).catch(() => {});
      return;
    case "relay":
      await ctx
        .chatAt({ channel: "mock", chat: HUB })
        .send(op.text)
        .then((result) => note(op.text, result), failed(op.text));
      return;
    case "sleep":
      await watch.sleep(op.ms);
      return;
    case "nack":
      if (ctx.attempt === 1) ctx.nack(new Error("not yet"), { after: "5s" });
      return;
    case "throw":
      throw new Error("the script says so");
    case "retry":
      if (ctx.attempt === 1) throw new RetryTurn(op.after === undefined ? {} : { after: op.after });
  }
}
