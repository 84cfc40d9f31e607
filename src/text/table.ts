/**
 * Tables as preformatted text: chat platforms have no tables, but all have a fixed-width font.
 *
 * @module
 */
import type { MarkdownNode } from "./markdown.ts";

type Table = Extract<MarkdownNode, { type: "table" }>;
type Cell = Table["children"][number]["children"][number];

// Characters two columns wide in a fixed-width font: the usual East Asian blocks, and pictographs.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const NO_WIDTH = /\p{M}|\u200d/u;

/** Lays a table out in columns, with a rule under its header. `read` gives a cell's text. */
export function tableText(table: Table, read: (cell: Cell) => string): string {
  const rows = table.children.map((row) =>
    row.children.map((cell) => read(cell).replaceAll("\n", " ")),
  );
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
    });
  }
  const lines = rows.map((row) =>
    widths
      .map((width, column) => pad(row[column] ?? "", width, table.align?.[column] ?? "left"))
      .join(" | ")
      .trimEnd(),
  );
  const rule = widths.map((width) => "-".repeat(width)).join("-+-");
  return [...lines.slice(0, 1), rule, ...lines.slice(1)].join("\n");
}

function pad(text: string, width: number, align: "left" | "right" | "center"): string {
  const space = width - widthOf(text);
  const before = align === "right" ? space : align === "center" ? Math.floor(space / 2) : 0;
  return " ".repeat(before) + text + " ".repeat(space - before);
}

function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    width += NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  }
  return width;
}
