/** Formatting survives splitting: random documents, and what must hold of every part of each. */
import { describe, expect, test } from "vitest";
import { checkText } from "../../testing/platforms/telegram-checks.ts";
import { seededRandom } from "../../testing/random.ts";
import { lengthIn } from "../../text/measure.ts";
import { richText } from "../../text/richtext.ts";
import { telegramAddress } from "./address.ts";
import { entitiesOf, render, TEXT_LIMIT } from "./render.ts";

type Entity = { type: string; offset: number; length: number; url?: string; language?: string };
type Part = { text: string; entities: Entity[] };

const address = telegramAddress(501);
const acceptsLink = (url: string) => /^(?:https?:\/\/[^\s/]+\.[^\s]+|tg:\/\/\S+)$/i.test(url);

function partsOf(markdown: string): Part[] {
  return render({ format: "markdown", text: markdown }, { address }).map(({ request }) => {
    const { text, entities = [] } = request.body as unknown as {
      text: string;
      entities?: Entity[];
    };
    return { text, entities };
  });
}

/** A writer of Markdown with everything in it that has ever been cut wrongly. */
class Author {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  document(): string {
    const blocks = Array.from({ length: 1 + this.#below(6) }, () => this.#block(0));
    return blocks.join("\n\n");
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.#below(list.length)] ?? list[0];
  }

  #block(depth: number): string {
    switch (this.#below(depth > 2 ? 3 : 7)) {
      case 0:
        return `## ${this.#words(1 + this.#below(8))}`;
      case 1:
      case 2:
        return this.#inline(1 + this.#below(this.#below(4) === 0 ? 400 : 40));
      case 3: {
        const lines = Array.from({ length: 1 + this.#below(150) }, () =>
          this.#words(this.#below(9)),
        );
        return `\`\`\`${this.#pick(["", "ts", "python"])}\n${lines.join("\n")}\n\`\`\``;
      }
      case 4:
        return this.#block(depth + 1).replace(/^/gm, "> ");
      case 5: {
        const items = Array.from({ length: 1 + this.#below(30) }, (_, at) => {
          const nested = this.#below(4) === 0 ? `\n${this.#block(depth + 1)}` : "";
          const bullet = this.#pick(["- ", `${at + 1}. `, "- [x] "]);
          const body = `${this.#inline(1 + this.#below(12))}${nested}`;
          return bullet + body.replaceAll("\n", `\n${" ".repeat(bullet.length)}`);
        });
        return items.join("\n");
      }
      default: {
        const columns = 1 + this.#below(4);
        const row = () =>
          `| ${Array.from({ length: columns }, () => this.#words(this.#below(4))).join(" | ")} |`;
        const rows = Array.from({ length: 1 + this.#below(60) }, row);
        return [row(), `|${" - |".repeat(columns)}`, ...rows].join("\n");
      }
    }
  }

  #inline(count: number): string {
    return Array.from({ length: count }, () => {
      const words = this.#words(1 + this.#below(5));
      switch (this.#below(9)) {
        case 0:
          return `**${words}**`;
        case 1:
          return `_${words}_`;
        case 2:
          return `~~${words}~~`;
        case 3:
          return `\`${words}\``;
        case 4:
          return `[${words}](https://example.com/${this.#below(99)})`;
        case 5:
          return `**${words} _${words}_ [${words}](https://example.com) \`${words}\`**`;
        default:
          return words;
      }
    }).join(" ");
  }

  #words(count: number): string {
    return Array.from({ length: count }, () =>
      this.#pick([
        "word",
        "sentence.",
        "שלום",
        "مرحبا",
        "日本語の文。",
        "👍",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "e\u0301",
        "🏳️‍🌈🏳️‍🌈🏳️‍🌈",
        "𝒳".repeat(1 + this.#below(40)),
        "x".repeat(1 + this.#below(this.#below(40) === 0 ? 5_000 : 20)),
      ]),
    ).join(" ");
  }
}

/** The part as HTML, tags opened and closed in the order of its entities. */
function htmlOf({ text, entities }: Part): string {
  const tags: { at: number; order: number; tag: string }[] = [];
  entities.forEach(({ type, offset, length }, order) => {
    tags.push({ at: offset, order: order + 1, tag: `<${type}>` });
    // Ends before starts, inner ends first.
    tags.push({ at: offset + length, order: -order - 1, tag: `</${type}>` });
  });
  tags.sort((a, b) => a.at - b.at || a.order - b.order);
  let html = "";
  let at = 0;
  for (const tag of tags) {
    html += text.slice(at, tag.at).replaceAll("<", "&lt;") + tag.tag;
    at = tag.at;
  }
  return html + text.slice(at).replaceAll("<", "&lt;");
}

/** The first tag that does not close what was opened last. */
function firstUnbalanced(html: string): string | undefined {
  const open: string[] = [];
  for (const [tag, slash, name] of html.matchAll(/<(\/?)(\w+)>/g)) {
    if (slash === "") open.push(name ?? "");
    else if (open.pop() !== name) return tag;
  }
  return open.pop();
}

/** What formats each UTF-16 unit of a text. */
function formatOf(length: number, entities: readonly Entity[]): string[] {
  const formats: string[] = Array.from({ length }, () => "");
  for (const { type, offset, length: long, url = "", language = "" } of entities) {
    for (let at = offset; at < offset + long; at += 1) formats[at] += `${type} ${url}${language};`;
  }
  return formats;
}

const cutsPair = (text: string, at: number) =>
  /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));

/** Everything that is wrong with the parts of a document; empty for a good split. */
function faultsOf(markdown: string, parts: readonly Part[]): string[] {
  const whole = richText(markdown, { acceptsLink });
  const wanted = formatOf(whole.text.length, entitiesOf(whole.spans) as unknown as Entity[]);
  const faults: string[] = [];
  let read = 0;
  parts.forEach((part, index) => {
    const { text, entities } = part;
    const wrong = (what: string) => faults.push(`part ${index + 1}: ${what}`);
    if (lengthIn(text, "codepoints") > TEXT_LIMIT) wrong("too long");
    if (text.trim() === "") wrong("blank");
    for (const { offset, length } of entities) {
      if (length < 1 || offset < 0 || offset + length > text.length) wrong("an entity outside");
      if (cutsPair(text, offset) || cutsPair(text, offset + length)) wrong("half a character");
    }
    const unbalanced = firstUnbalanced(htmlOf(part));
    if (unbalanced !== undefined) wrong(`unbalanced ${unbalanced}`);
    try {
      checkText({ text, entities });
    } catch (error) {
      wrong(`refused: ${String(error)}`);
    }
    // Between two parts lies white space and nothing else.
    const start = whole.text.indexOf(text, read);
    if (start < 0 || whole.text.slice(read, start).trim() !== "") {
      wrong("text lost or changed");
      return;
    }
    const formats = formatOf(text.length, entities);
    const lost = formats.findIndex((format, at) => format !== wanted[start + at]);
    if (lost >= 0) wrong(`"${text.slice(lost, lost + 20)}" has lost its formatting`);
    read = start + text.length;
  });
  if (whole.text.slice(read).trim() !== "") faults.push("the end is lost");
  return faults;
}

describe("any document", () => {
  test("is split into valid parts that say the whole, formatted as the whole", {
    timeout: 30_000,
  }, () => {
    let split = 0;
    for (let seed = 1; seed <= 60; seed += 1) {
      const markdown = new Author(seed).document();
      const parts = partsOf(markdown);
      if (parts.length > 1) split += 1;
      expect(faultsOf(markdown, parts), `seed ${seed}`).toEqual([]);
    }
    // Most of them must be long enough for the test to mean something.
    expect(split).toBeGreaterThan(25);
  });

  test("the checks see a bad split", () => {
    const markdown = `**bold** and \`code\` 👍 ${"word ".repeat(10)}`;
    const [good] = partsOf(markdown);
    if (good === undefined) throw new Error("no part");
    expect(faultsOf(markdown, [good])).toEqual([]);
    const bold = { type: "bold", offset: 0, length: 4 };
    const bad: Part[] = [
      { ...good, text: good.text.slice(0, -3) },
      { ...good, text: good.text.replace("code", "c0de") },
      { ...good, entities: good.entities.slice(1) },
      { ...good, entities: [bold, { ...bold, type: "italic", offset: 2 }] },
      { ...good, entities: [{ ...bold, offset: good.text.indexOf("👍") + 1 }] },
      { ...good, entities: [{ ...bold, length: 900 }] },
    ];
    for (const part of bad) expect(faultsOf(markdown, [part])).not.toEqual([]);
  });
});

describe("a split in the middle of", () => {
  /** Long enough for two parts, whatever stands around it. */
  const long = (piece: string) => piece.repeat(Math.ceil(12_000 / piece.length));
  test.each([
    ["bold", `**${long("bold ")}end**`],
    ["a link", `[${long("label ")}end](https://example.com/a)`],
    ["a code block", `\`\`\`ts\n${long("let a = 1;\n")}\`\`\``],
    ["a quote", long("> quoted words\n")],
    ["a list in a list", `- a\n${long("  - **b** _c_\n")}`],
    ["a table", `|a|b|\n|-|-|\n${long("|1|2|\n")}`],
    ["right-to-left text", `**${long("שלום עולם ")}سلام**`],
    ["pairs of surrogates", `_${long("👍👍")}_`],
    ["joined emoji", long("👩‍👩‍👧‍👦")],
  ])("%s", (_name, markdown) => {
    const parts = partsOf(markdown);
    expect(parts.length).toBeGreaterThan(1);
    expect(faultsOf(markdown, parts)).toEqual([]);
  });
});
