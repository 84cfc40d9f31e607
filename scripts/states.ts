/**
 * `npm run docs`: writes `docs/states.md` from the transition tables in `src/journal/transitions.ts`, so that
 * the page cannot say something else than the code enforces. `--check` only compares.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isFinal, type OutboxState } from "../src/journal/records.ts";
import {
  INBOX_TRANSITIONS,
  OUTBOX_TRANSITIONS,
  type Transition,
} from "../src/journal/transitions.ts";

/** Where the page is. */
export const STATES_PAGE = join(import.meta.dirname, "../docs/states.md");

/** The page. */
export function statesPage(): string {
  return `<!-- Made by scripts/states.ts from src/journal/transitions.ts: run \`npm run docs\` after a change there. -->

# States

Each record has one state, and these are all the ways in which it may change. One function per table
enforces them (\`enforceInbox\` and \`enforceOutbox\` in \`src/journal/records.ts\`); any other change throws
and rolls its transaction back.

## Inbox: one record per event

${diagram("pending", INBOX_TRANSITIONS)}

${table(INBOX_TRANSITIONS)}

A \`done\` record whose handler threw or timed out carries an error and is listed as \`failed\`.

## Outbox: one record per part of a message

${diagram("pending", OUTBOX_TRANSITIONS)}

${table(OUTBOX_TRANSITIONS)}

${final()} need nothing more by themselves. \`unknown\` means that the message may have been sent and that
nothing proves it either way; such a record is announced, listed, and waits for a proof or for an operator.
`;
}

function diagram<S extends string>(first: S, transitions: readonly Transition<S>[]): string {
  const lines = transitions.map(({ from, to }) => `  ${from} --> ${to}`);
  return ["```mermaid", "stateDiagram-v2", `  [*] --> ${first}`, ...lines, "```"].join("\n");
}

function table<S extends string>(transitions: readonly Transition<S>[]): string {
  const rows = [
    ["from", "to", "when"],
    ...transitions.map(({ from, to, when }) => [`\`${from}\``, `\`${to}\``, when]),
  ];
  // Aligned, as the formatter wants it.
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const lines = rows.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(width(column))).join(" | ")} |`,
  );
  const rule = `| ${[0, 1, 2].map((column) => "-".repeat(width(column))).join(" | ")} |`;
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}

function final(): string {
  const states = new Set<OutboxState>(OUTBOX_TRANSITIONS.flatMap(({ from, to }) => [from, to]));
  const names = [...states].filter(isFinal).map((state) => `\`${state}\``);
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const page = statesPage();
  if (!process.argv.includes("--check")) {
    writeFileSync(STATES_PAGE, page);
  } else if (readFileSync(STATES_PAGE, "utf8") !== page) {
    console.error("docs/states.md is stale: run npm run docs");
    process.exitCode = 1;
  }
}
