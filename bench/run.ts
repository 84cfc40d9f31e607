/** `npm run bench`: measures, writes `bench/results.md`, and fails when a budget is missed. @module */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Platform } from "./lib/Platform.ts";
import { number, reportOf } from "./lib/report.ts";
import { type Bench, keepsBudget, type Result, ratioOf, type Section } from "./lib/section.ts";
import { median } from "./lib/stats.ts";
import { bundle } from "./sections/bundle.ts";
import { history } from "./sections/history.ts";
import { latency } from "./sections/latency.ts";
import { memory } from "./sections/memory.ts";
import { receive } from "./sections/receive.ts";
import { recovery } from "./sections/recovery.ts";
import { spans } from "./sections/spans.ts";

const SECTIONS: readonly Section[] = [receive, latency, history, memory, recovery, spans, bundle];
/** The longest that a run may take, in ms. */
const LIMIT_MS = 480_000;

const HELP = `npm run bench -- [options]

Measures Holdfast against bare Durable Objects on the real runtime, on this machine and its loopback
interface alone, and writes bench/results.md. Exit code 1: a budget is missed.

  --only NAMES   these sections: ${SECTIONS.map(({ name }) => name).join(", ")} (comma between)
  --rounds N     measured rounds (default: 7)
  --quick        smaller, three rounds: shows that it works
  --out FILE     write there (default: bench/results.md; with --only or --quick: nowhere)
  --help         this text
`;

interface Options {
  sections: readonly Section[];
  only: readonly string[];
  rounds: number;
  quick: boolean;
  out: string | undefined;
}

/** @throws {Error} on an option that is none */
function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      rounds: { type: "string" },
      quick: { type: "boolean" },
      out: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return undefined;
  const only = values.only?.split(",") ?? [];
  const unknown = only.find((name) => !SECTIONS.some((section) => section.name === name));
  if (unknown !== undefined) throw new Error(`there is no section "${unknown}"`);
  const quick = values.quick ?? false;
  const rounds = Number(values.rounds ?? (quick ? 3 : 7));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 50) {
    throw new Error(`--rounds is "${values.rounds}", but must be a whole number from 1 to 50`);
  }
  const whole = only.length === 0 && !quick;
  return {
    sections: SECTIONS.filter(({ name }) => only.length === 0 || only.includes(name)),
    only,
    rounds,
    quick,
    out: values.out ?? (whole ? join(import.meta.dirname, "results.md") : undefined),
  };
}

function print(result: Result): void {
  for (const line of result.lines) {
    const kept = keepsBudget(line);
    const verdict = kept === undefined ? "" : kept ? "  kept" : "  MISSED";
    const values = `${number(median(line.holdfast))} / ${number(median(line.baseline))} ${line.unit}`;
    console.log(
      `${line.what.padEnd(40)} ${values.padEnd(32)} ${ratioOf(line).toFixed(2)}${verdict}`,
    );
  }
  for (const table of result.tables ?? []) {
    console.log(table.title);
    for (const row of table.rows) console.log(`  ${row.map((cell) => cell.padEnd(28)).join(" ")}`);
  }
}

async function run(options: Options): Promise<void> {
  const startedAt = new Date();
  const platform = await Platform.open();
  const seconds = () => (Date.now() - startedAt.getTime()) / 1_000;
  const bench: Bench = {
    quick: options.quick,
    rounds: options.rounds,
    platform,
    say: (text) => process.stderr.write(`${seconds().toFixed(0).padStart(4)} s  ${text}\n`),
  };
  const results: Result[] = [];
  try {
    for (const section of options.sections) {
      const result = await section.run(bench);
      results.push(result);
      print(result);
    }
  } finally {
    await platform.close();
  }
  const { out } = options;
  if (out !== undefined) {
    writeFileSync(out, reportOf({ ...options, startedAt, seconds: seconds() }, results));
    bench.say(`written: ${out}`);
  }
  const missed = results
    .flatMap(({ lines }) => lines)
    .filter((line) => keepsBudget(line) === false);
  if (missed.length > 0) process.exitCode = 1;
}

/** Ends the process; its runtimes end with it, in whatever way it ends. */
function end(why: string, code: number): void {
  process.stderr.write(`${why}\n`);
  process.exit(code);
}

let options: Options | undefined;
try {
  options = readOptions();
} catch (error) {
  end(`${(error as Error).message}\n\n${HELP}`, 2);
}
if (options === undefined) process.stdout.write(HELP);
else {
  const limit = setTimeout(() => end(`not done after ${LIMIT_MS / 1_000} s`, 2), LIMIT_MS);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => end(signal, 130));
  try {
    await run(options);
  } finally {
    clearTimeout(limit);
  }
}
