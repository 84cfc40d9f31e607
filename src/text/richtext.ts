/**
 * Rich text without a dialect: a string and spans over it. It sits between the Markdown tree and what
 * a platform wants, because it can be measured and split, which markup cannot.
 *
 * @module
 */
import { type MarkdownNode, type MarkdownTree, parseMarkdown } from "./markdown.ts";
import { tableText } from "./table.ts";

/** What a span does to the text under it. */
export type SpanType = "bold" | "italic" | "strike" | "code" | "pre" | "link" | "quote";

/** A stretch of formatted text; offsets count UTF-16 units, `end` is exclusive. */
export interface Span {
  start: number;
  end: number;
  type: SpanType;
  /** `pre`: the language of the code, where it is known. */
  lang?: string;
  /** `link`: where it leads. */
  url?: string;
}

/** Text and its formatting. Spans are sorted by start, outer before inner, and nest or lie apart. */
export interface RichText {
  text: string;
  spans: Span[];
}

/** What the target can show. */
export interface RichTextOptions {
  /**
   * Whether the target takes this address in a link. Where it does not, the address is written out
   * behind the label, so that it is not lost. Default: http, https, mailto, tel.
   */
  acceptsLink?: (url: string) => boolean;
}

const isUsualLink = (url: string) => /^(?:https?|mailto|tel):/i.test(url);

/** Deeper nodes are written as their source: a call stack has an end, and so has a reader. */
const MAX_DEPTH = 64;

/** Parses Markdown into {@link RichText}. Text that Markdown would make vanish is kept as written. */
export function richText(source: string, options: RichTextOptions = {}): RichText {
  const rich = richTextOf(parseMarkdown(source), source, options);
  // A message of nothing but link definitions or comments must not become an empty message.
  return rich.text === "" ? { text: source.trim(), spans: [] } : rich;
}

/** Flattens a tree of {@link parseMarkdown}. `source` is the text that it was parsed from. */
export function richTextOf(
  tree: MarkdownTree,
  source: string,
  options: RichTextOptions = {},
): RichText {
  const writer = new Writer(source, options.acceptsLink ?? isUsualLink, definitionsOf(tree));
  writer.blocks(tree.children, "\n\n", 0);
  return writer.finish();
}

function definitionsOf(tree: MarkdownTree): Map<string, string> {
  const urls = new Map<string, string>();
  const open: MarkdownNode[] = [...tree.children];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    // The first definition wins in Markdown; the stack visits the last first, so later writes win here.
    if (node.type === "definition") urls.set(node.identifier, node.url);
    if ("children" in node) open.push(...node.children);
  }
  return urls;
}

class Writer {
  readonly #source: string;
  readonly #acceptsLink: (url: string) => boolean;
  readonly #definitions: ReadonlyMap<string, string>;
  readonly #spans: Span[] = [];
  readonly #active = new Set<SpanType>();
  #text = "";
  /** What each new line of the current list item starts with. */
  #indent = "";
  #atLineStart = false;

  constructor(
    source: string,
    acceptsLink: (url: string) => boolean,
    definitions: ReadonlyMap<string, string>,
  ) {
    this.#source = source;
    this.#acceptsLink = acceptsLink;
    this.#definitions = definitions;
  }

  finish(): RichText {
    const text = this.#text.trimEnd();
    // An inner span is closed, hence noted, before its outer one; the sort is stable.
    const spans = this.#spans
      .reverse()
      .map((span) => ({ ...span, end: Math.min(span.end, text.length) }))
      .filter((span) => span.start < span.end)
      .sort((a, b) => a.start - b.start || b.end - a.end);
    return { text, spans };
  }

  blocks(nodes: readonly MarkdownNode[], separator: string, depth: number): void {
    let first = true;
    for (const node of nodes) {
      if (node.type === "definition") continue;
      if (!first) this.#write(separator);
      first = false;
      this.#node(node, depth);
    }
  }

  #inline(nodes: readonly MarkdownNode[], depth: number): void {
    for (const node of nodes) this.#node(node, depth);
  }

  #node(node: MarkdownNode, depth: number): void {
    if (depth > MAX_DEPTH) {
      const { position } = node;
      this.#write(this.#source.slice(position?.start.offset ?? 0, position?.end.offset ?? 0));
      return;
    }
    const below = depth + 1;
    switch (node.type) {
      case "text":
        this.#write(node.value);
        break;
      case "paragraph":
        this.#inline(node.children, below);
        break;
      case "heading":
      case "strong":
        this.#span({ type: "bold" }, () => this.#inline(node.children, below));
        break;
      case "emphasis":
        this.#span({ type: "italic" }, () => this.#inline(node.children, below));
        break;
      case "delete":
        this.#span({ type: "strike" }, () => this.#inline(node.children, below));
        break;
      case "inlineCode":
        this.#span({ type: "code" }, () => this.#write(node.value));
        break;
      case "code":
        this.#pre(node.value, node.lang ?? undefined);
        break;
      case "blockquote":
        this.#span({ type: "quote" }, () => this.blocks(node.children, "\n\n", below));
        break;
      case "list":
        this.#list(node, below);
        break;
      case "table":
        this.#pre(
          tableText(node, (cell) => this.#plain(cell.children, below)),
          undefined,
        );
        break;
      case "link":
        this.#link(node.url, () => this.#inline(node.children, below));
        break;
      case "linkReference":
        this.#link(this.#definitions.get(node.identifier), () =>
          this.#inline(node.children, below),
        );
        break;
      case "image":
        this.#link(node.url, () => this.#write(node.alt ?? ""));
        break;
      case "imageReference":
        this.#link(this.#definitions.get(node.identifier), () => this.#write(node.alt ?? ""));
        break;
      case "break":
        this.#write("\n");
        break;
      case "thematicBreak":
        this.#write("———");
        break;
      case "html":
        this.#write(/^<br\s*\/?>$/i.test(node.value) ? "\n" : node.value);
        break;
      default:
        // Items, rows and cells are written by their parents; a node of a later mdast keeps its text.
        if ("children" in node) this.blocks(node.children, "\n", below);
        else if ("value" in node) this.#write(String(node.value));
    }
  }

  #list(list: Extract<MarkdownNode, { type: "list" }>, depth: number): void {
    const separator = list.spread ? "\n\n" : "\n";
    let number = list.start ?? 1;
    let first = true;
    for (const item of list.children) {
      if (!first) this.#write(separator);
      first = false;
      const bullet = list.ordered ? `${number}. ` : "• ";
      readTask(item);
      const box = item.checked === true ? "☑ " : item.checked === false ? "☐ " : "";
      number += 1;
      this.#write(bullet + box);
      const outer = this.#indent;
      this.#indent = outer + " ".repeat(bullet.length);
      this.blocks(item.children, item.spread ? "\n\n" : "\n", depth + 1);
      this.#indent = outer;
    }
  }

  #link(url: string | undefined, label: () => void): void {
    if (url === undefined || url === "") {
      label();
      return;
    }
    const start = this.#position();
    if (this.#acceptsLink(url)) {
      this.#span({ type: "link", url }, () => {
        label();
        if (this.#text.length === start) this.#write(url);
      });
      return;
    }
    label();
    const shown = this.#text.slice(start);
    if (shown === "") this.#write(url);
    else if (url !== shown && url !== `mailto:${shown}`) this.#write(` (${url})`);
  }

  #pre(value: string, lang: string | undefined): void {
    // Behind a bullet the code starts on its own line, and none of its lines is indented: whoever
    // copies it wants the code, not the list.
    if (this.#indent !== "" && !this.#atLineStart) this.#write("\n");
    const indent = this.#indent;
    this.#indent = "";
    this.#span(lang === undefined ? { type: "pre" } : { type: "pre", lang }, () =>
      this.#write(value),
    );
    this.#indent = indent;
  }

  /** What some inline nodes read like without formatting, addresses included. */
  #plain(nodes: readonly MarkdownNode[], depth: number): string {
    const writer = new Writer(this.#source, () => false, this.#definitions);
    writer.#inline(nodes, depth);
    return writer.finish().text;
  }

  #span(span: Omit<Span, "start" | "end">, body: () => void): void {
    // Bold in bold says nothing, and Telegram forbids quotes in quotes.
    if (this.#active.has(span.type)) {
      body();
      return;
    }
    this.#active.add(span.type);
    const start = this.#position();
    body();
    this.#active.delete(span.type);
    if (this.#text.length > start) this.#spans.push({ start, end: this.#text.length, ...span });
  }

  /** Where the next character goes, with the line's indent written: it belongs to no span. */
  #position(): number {
    if (this.#atLineStart) {
      this.#text += this.#indent;
      this.#atLineStart = false;
    }
    return this.#text.length;
  }

  #write(text: string): void {
    if (text === "") return;
    if (this.#indent === "") {
      this.#text += text;
      this.#atLineStart = text.endsWith("\n");
      return;
    }
    // Indents are written only before a character, so that blank lines stay blank.
    for (const piece of text.split(/(\n)/)) {
      if (piece === "") continue;
      if (piece !== "\n") this.#position();
      this.#text += piece;
      this.#atLineStart = piece === "\n";
    }
  }
}

/** Takes the box off a task's text, `[ ]` or `[x]`. GitHub's own syntax for it is 1.5 kB of a bundle. */
function readTask(item: Extract<MarkdownNode, { type: "list" }>["children"][number]): void {
  const [block] = item.children;
  const text = block?.type === "paragraph" ? block.children[0] : undefined;
  const box = text?.type === "text" ? /^\[([ x])\]\s+(?=\S)/i.exec(text.value) : null;
  if (text?.type !== "text" || box === null) return;
  item.checked = box[1] !== " ";
  text.value = text.value.slice(box[0].length);
}
