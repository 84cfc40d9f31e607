/** The report: what was found, as Markdown. @module */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { cpus, release, totalmem, type } from "node:os";
import { keepsBudget, type Line, type Result, ratioOf, ratiosOf, type Table } from "./section.ts";
import { median } from "./stats.ts";

/** How a run was made. */
export interface RunInfo {
  startedAt: Date;
  seconds: number;
  rounds: number;
  quick: boolean;
  /** Sections that were asked for; empty for all. */
  only: readonly string[];
}

/** Writes the whole report. */
export function reportOf(info: RunInfo, results: readonly Result[]): string {
  const limits = info.quick ? " **A quick run: the figures show that it works, no more.**" : "";
  return `# Results of the benchmark

Written by \`npm run bench\`; what is measured and how to run it: [README](README.md).${limits}

${markdownTable(["", ""], machine(info))}

A ratio is the median, over ${info.rounds} rounds, of Holdfast's value to the baseline's of the same round; both sides
take turns (A B A B …) in one run, after one round that warms up and is dropped. The values shown are
medians, and the range is that of the rounds' ratios.

## Budgets

${markdownTable(LINE_HEAD, results.flatMap(({ lines }) => lines.filter((line) => line.budget)).map(rowOf))}

${results.map(sectionOf).join("\n\n")}
`;
}

const LINE_HEAD = ["", "Holdfast", "baseline", "unit", "ratio", "range", "budget", "verdict"];

function sectionOf({ title, how, lines, tables = [] }: Result): string {
  const parts = [`## ${title}`, how];
  if (lines.length > 0) parts.push(markdownTable(LINE_HEAD, lines.map(rowOf)));
  if (lines.length > 0) parts.push(markdownTable(RAW_HEAD, lines.map(rawOf)));
  for (const table of tables) parts.push(tableOf(table));
  return parts.join("\n\n");
}

function rowOf(line: Line): string[] {
  const ratios = ratiosOf(line);
  const { budget } = line;
  const limit =
    budget === undefined ? "" : "most" in budget ? `≤ ${budget.most}` : `≥ ${budget.least}`;
  const kept = keepsBudget(line);
  return [
    line.what.trimStart(),
    number(median(line.holdfast)),
    number(median(line.baseline)),
    line.unit,
    ratioOf(line).toFixed(2),
    `${Math.min(...ratios).toFixed(2)} – ${Math.max(...ratios).toFixed(2)}`,
    limit,
    kept === undefined ? "" : kept ? "kept" : "**missed**",
  ];
}

const RAW_HEAD = ["every round", "Holdfast", "baseline"];

function rawOf(line: Line): string[] {
  const list = (values: readonly number[]) => values.map(number).join(" ");
  return [`${line.what.trimStart()}, ${line.unit}`, list(line.holdfast), list(line.baseline)];
}

function tableOf(table: Table): string {
  return `### ${table.title}\n\n${markdownTable(table.head, table.rows)}`;
}

/** Three figures that count. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function machine(info: RunInfo): string[][] {
  const [cpu] = cpus();
  return [
    ["date", info.startedAt.toISOString().slice(0, 16).replace("T", " ")],
    ["machine", `${cpus().length} × ${cpu?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB`],
    ["system", `${type()} ${release()}`],
    ["versions", `Node ${process.versions.node}, workerd ${versionOf("workerd")}`],
    ["commit", commit()],
    ["run", `${Math.round(info.seconds)} s, ${info.only.join(", ") || "all sections"}`],
  ];
}

function versionOf(name: string): string {
  const fromWrangler = createRequire(createRequire(import.meta.url).resolve("wrangler"));
  return (fromWrangler(`${name}/package.json`) as { version: string }).version;
}

function commit(): string {
  const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();
  try {
    const changed =
      git("status", "--porcelain", "--", "src", "bench") === "" ? "" : ", with changes";
    return `${git("rev-parse", "--short", "HEAD")}${changed}`;
  } catch {
    return "unknown";
  }
}
