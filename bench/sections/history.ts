/** Whether a chat's past makes its present slower. @module */
import { Writer } from "../lib/chat.ts";
import { Served, varsOf } from "../lib/Served.ts";
import type { Bench, Line, Result, Section } from "../lib/section.ts";
import { median } from "../lib/stats.ts";
import { freshChat } from "../lib/updates.ts";
import type { Mark } from "../worker/marks.ts";

/** One measurement of one chat. */
interface Look {
  /** Webhook to platform, median, in ms. */
  replyMs: number;
  /** Edge to the end of the turn, mean, in ms. */
  turnMs: number;
}

async function look(served: Served, writer: Writer, chat: number, pairs: number): Promise<Look> {
  await served.ask("marks");
  const times: number[] = [];
  for (let n = 0; n < pairs; n += 1) times.push((await writer.pair(chat)).ms);
  const marks = (await served.ask("marks")) as Record<string, Mark>;
  const settled = marks["turn.settle after"];
  if (settled?.count !== pairs) throw new Error(`${settled?.count} of ${pairs} turns were seen`);
  return { replyMs: median(times), turnMs: settled.sum / pairs };
}

/** Rows that one pair reads: in a process that has just started, and after that. */
async function rows(
  served: Served,
  writer: Writer,
  chat: number,
): Promise<{ cold: number; warm: number[] }> {
  const read = async () => {
    await writer.pair(chat);
    return (await served.ask("rows", { name: Writer.nameOf(chat) })) as number;
  };
  const cold = await read();
  const warm: number[] = [];
  for (let n = 0; n < 10; n += 1) warm.push(await read());
  return { cold, warm };
}

async function run(bench: Bench): Promise<Result> {
  const old = bench.quick ? 10_000 : 100_000;
  const pairs = bench.quick ? 30 : 150;
  const options = { worker: "looked", bot: "echo", apiBase: bench.platform.url } as const;
  await using served = await Served.start(options);
  const writer = new Writer(served, bench.platform);
  const [full, empty] = [freshChat(), freshChat()];
  await writer.pair(full);
  bench.say(`history: writing ${old} old records`);
  await served.ask("age", { name: Writer.nameOf(full), count: old });
  const looks: Record<"full" | "empty", Look[]> = { full: [], empty: [] };
  for (let round = 0; round <= bench.rounds; round += 1) {
    bench.say(`history: round ${round} of ${bench.rounds}`);
    const now = {
      full: await look(served, writer, full, pairs),
      empty: await look(served, writer, empty, pairs),
    };
    if (round === 0) continue;
    looks.full.push(now.full);
    looks.empty.push(now.empty);
  }
  writer.restarted();
  await served.workerd.restart({ vars: { ...varsOf(options), BENCH_METER: "1" } });
  const read = {
    full: await rows(served, writer, full),
    empty: await rows(served, writer, empty),
  };
  writer.close();
  const budget: NonNullable<Line["budget"]> = { most: 1.1 };
  const times = (of: (one: Look) => number) => ({
    holdfast: looks.full.map(of),
    baseline: looks.empty.map(of),
  });
  const count = old.toLocaleString("en");
  return {
    title: `A chat with ${count} old records`,
    how: `Holdfast against itself: the column "Holdfast" is a chat with ${count} finished turns and ${count} sent
replies of the last day, the column "baseline" one that began empty; both are in one process and take turns,
${pairs} pairs each, one at a time. Rows are those that the runtime's cursors report for one message and its
reply, in a process that has just started ("cold") and after that.`,
    lines: [
      {
        what: `${count} old: webhook to platform, median`,
        unit: "ms",
        ...times((one) => one.replyMs),
        budget,
      },
      {
        what: `${count} old: edge to the turn's end, mean`,
        unit: "ms",
        ...times((one) => one.turnMs),
        budget,
      },
      {
        what: `${count} old: rows read, warm`,
        unit: "rows",
        holdfast: read.full.warm,
        baseline: read.empty.warm,
        budget,
      },
      {
        what: `${count} old: rows read, cold`,
        unit: "rows",
        holdfast: [read.full.cold],
        baseline: [read.empty.cold],
        budget,
      },
    ],
  };
}

/** The section. */
export const history: Section = { name: "history", run };
