/**
 * Markdown, parsed once. Every channel renders its own dialect from this tree, so that no channel
 * needs to escape text or to guess what another dialect meant.
 *
 * @module
 */
import {
  type CompileContext,
  type Extension,
  fromMarkdown,
  type Token,
} from "mdast-util-from-markdown";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";

/** An mdast tree. */
export type MarkdownTree = ReturnType<typeof fromMarkdown>;

/** Any node that a {@link MarkdownTree} may hold. */
export type MarkdownNode = MarkdownTree["children"][number];

// A lone tilde is "about" far more often than it is a strike, so only `~~` strikes. Footnotes stay as they
// are written: no chat platform has them, and their parser is 2 kB of every bundle.
const SYNTAX = [gfmAutolinkLiteral(), gfmStrikethrough({ singleTilde: false }), gfmTable()];
// An address in the text, as a link. The library's own also searches the finished tree for what its tokens
// missed, which takes 2 kB of every bundle and finds addresses with a mark right before them.
const addressAs = (prefix: string) =>
  function (this: CompileContext, token: Token): undefined {
    const value = this.sliceSerialize(token);
    this.enter({ type: "link", url: prefix + value, children: [{ type: "text", value }] }, token);
    this.exit(token);
  };
const LITERAL_AUTOLINKS: Extension = {
  exit: {
    literalAutolinkHttp: addressAs(""),
    literalAutolinkWww: addressAs("http://"),
    literalAutolinkEmail: addressAs("mailto:"),
  },
};
const STRIKES: Extension = {
  enter: {
    strikethrough(token) {
      this.enter({ type: "delete", children: [] }, token);
    },
  },
  exit: {
    strikethrough(token) {
      this.exit(token);
    },
  },
};
const MDAST = [LITERAL_AUTOLINKS, STRIKES, gfmTableFromMarkdown()];

/**
 * The most emphasis and bracket marks in one block. The parser pairs them in quadratic time: 40,000
 * in one paragraph take 14 s, 2,500 at worst half a second (measured). More than this is no prose.
 */
const MAX_MARKS_PER_BLOCK = 2_500;

/** The deepest nesting of quotes and lists on one line; the parser's time is quadratic in it too. */
const MAX_CONTAINERS = 50;

const CONTAINERS = new RegExp(`^(?:[ \\t]*(?:>|[-*+]|\\d{1,9}[.)])){${MAX_CONTAINERS}}`);
const FENCE = /^[ \t>]*(`{3,}|~{3,})/;
/** Lines that end the paragraph before them: bullets and headings. */
const NEW_BLOCK = /^ {0,3}(?:[-*+]|#{1,6})[ \t]/;

/**
 * Parses GitHub flavoured Markdown. Never throws: input that is built to hurt the parser becomes one
 * paragraph of its own text.
 */
export function parseMarkdown(source: string): MarkdownTree {
  if (isHostile(source)) return plainTree(source);
  return fromMarkdown(source, { extensions: SYNTAX, mdastExtensions: MDAST });
}

/** Whether parsing would take more than a moment. One pass over the lines. */
function isHostile(source: string): boolean {
  let marks = 0;
  let fence: string | undefined;
  for (const line of source.split("\n")) {
    const opening = FENCE.exec(line)?.[1];
    if (fence !== undefined) {
      // Code has no inline marks, whatever its characters; only its closing fence counts.
      if (opening?.startsWith(fence)) fence = undefined;
      continue;
    }
    if (opening !== undefined) {
      fence = opening;
      marks = 0;
      continue;
    }
    if (CONTAINERS.test(line)) return true;
    if (line.trim() === "" || NEW_BLOCK.test(line)) marks = 0;
    marks += countMarks(line);
    if (marks > MAX_MARKS_PER_BLOCK) return true;
  }
  return false;
}

function countMarks(line: string): number {
  let marks = 0;
  for (let i = 0; i < line.length; i += 1) {
    const code = line.charCodeAt(i);
    // * _ ~ [ !
    if (code === 42 || code === 95 || code === 126 || code === 91 || code === 33) marks += 1;
  }
  return marks;
}

function plainTree(source: string): MarkdownTree {
  return {
    type: "root",
    children: [{ type: "paragraph", children: [{ type: "text", value: source }] }],
  };
}
