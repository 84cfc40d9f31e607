import { describe, expect, test } from "vitest";
import { parseMarkdown } from "./markdown.ts";
import { fits, lengthIn, truncate } from "./measure.ts";
import { type RichText, richText } from "./richtext.ts";

/** Rich text with its spans drawn in, which reads better than offsets. */
function drawn({ text, spans }: RichText): string {
  const marks: { at: number; mark: string; order: number }[] = [];
  spans.forEach((span, index) => {
    const extra = span.url ?? span.lang ?? "";
    marks.push({ at: span.start, mark: `<${span.type}${extra && `=${extra}`}>`, order: index });
    marks.push({ at: span.end, mark: `</${span.type}>`, order: -index - 1 });
  });
  marks.sort((a, b) => a.at - b.at || a.order - b.order);
  let out = "";
  let from = 0;
  for (const { at, mark } of marks) {
    out += text.slice(from, at) + mark;
    from = at;
  }
  return out + text.slice(from);
}
const md = (source: string) => drawn(richText(source));

describe("richText", () => {
  test.each([
    ["plain text", "plain text"],
    ["**b** *i* ~~s~~ `c`", "<bold>b</bold> <italic>i</italic> <strike>s</strike> <code>c</code>"],
    ["***both***", "<italic><bold>both</bold></italic>"],
    ["~5 or ~6", "~5 or ~6"],
    ["2 < 3 & 4 \\*not\\* &amp;", "2 < 3 & 4 *not* &"],
    ["# Head\n\ntext", "<bold>Head</bold>\n\ntext"],
    ["# A **b** c", "<bold>A b c</bold>"],
    ["one\ntwo  \nthree", "one\ntwo\nthree"],
    ["> quoted\n> more", "<quote>quoted\nmore</quote>"],
    ["> a\n>\n> > b", "<quote>a\n\nb</quote>"],
    ["a\n\n---\n\nb", "a\n\n———\n\nb"],
    ["one<br>two", "one\ntwo"],
  ])("%j", (source, expected) => {
    expect(md(source)).toBe(expected);
  });

  test("code blocks keep their language, their blank lines and their indent", () => {
    expect(md("```js title\n  a();\n\n  b();\n```")).toBe("<pre=js>  a();\n\n  b();</pre>");
    expect(md("    indented")).toBe("<pre>indented</pre>");
  });

  test("links with an address that the target takes are spans, others are written out", () => {
    expect(md("[a](https://x.org) b")).toBe("<link=https://x.org>a</link> b");
    expect(md("<https://x.org>")).toBe("<link=https://x.org>https://x.org</link>");
    expect(md("[](https://x.org)")).toBe("<link=https://x.org>https://x.org</link>");
    expect(md("[a](../x.md)")).toBe("a (../x.md)");
    expect(md("[a](javascript:alert)")).toBe("a (javascript:alert)");
    expect(md("[a][1] and ![pic][1]\n\n[1]: https://x.org\n[1]: https://y.org")).toBe(
      "<link=https://x.org>a</link> and <link=https://x.org>pic</link>",
    );
    expect(drawn(richText("m@x.org [m](mailto:m@x.org)", { acceptsLink: () => false }))).toBe(
      "m@x.org m (mailto:m@x.org)",
    );
    expect(md("see www.x.org/a, https://x.org/_y_z or m@x.org.")).toBe(
      "see <link=http://www.x.org/a>www.x.org/a</link>, <link=https://x.org/_y_z>https://x.org/_y_z</link> or " +
        "<link=mailto:m@x.org>m@x.org</link>.",
    );
    expect(md("![alt](https://x.org/p.png)")).toBe("<link=https://x.org/p.png>alt</link>");
  });

  test("lists: bullets, numbers, boxes, nesting, spread", () => {
    expect(md("- a\n- b\n  - c\n    more\n- d")).toBe("• a\n• b\n  • c\n    more\n• d");
    expect(md("3. a\n4. b")).toBe("3. a\n4. b");
    expect(md("- [ ] a\n- [x] b")).toBe("• ☐ a\n• ☑ b");
    expect(md("- a\n\n  second\n\n- b")).toBe("• a\n\n  second\n\n• b");
    expect(md("1. run:\n   ```sh\n   ls\n   cd\n   ```\n2. *done*")).toBe(
      "1. run:\n<pre=sh>ls\ncd</pre>\n2. <italic>done</italic>",
    );
    expect(md("- > quote\n  > more")).toBe("• <quote>quote\n  more</quote>");
  });

  test("tables become preformatted columns", () => {
    expect(md("| Item | n |\n|:--|--:|\n| **Tee** | 1 |\n| 茶 | 12 |")).toBe(
      "<pre>Item |  n\n-----+---\nTee  |  1\n茶   | 12</pre>",
    );
  });

  test("links in tables keep their address", () => {
    expect(md("| a |\n|-|\n| [x](https://x.org) |")).toContain("x (https://x.org)");
  });

  test("footnotes keep their text", () => {
    expect(md("a[^1]\n\n[^1]: as said before")).toBe("a[^1]\n\n[^1]: as said before");
  });

  test("never turns words into nothing", () => {
    expect(md("[x]: https://x.org")).toBe("[x]: https://x.org");
    expect(md("  \n")).toBe("");
    expect(md("<div>raw</div>")).toBe("<div>raw</div>");
  });

  test("spans are sorted, nested, and within the text", () => {
    const { text, spans } = richText(
      "# a *b* `c`\n\n> **d** [e *f*](https://x.org)\n\n```\ng\n\n```",
    );
    let last = 0;
    for (const span of spans) {
      expect(span.start).toBeGreaterThanOrEqual(last);
      expect(span.end).toBeGreaterThan(span.start);
      expect(span.end).toBeLessThanOrEqual(text.length);
      for (const other of spans) {
        const crossing = other.start < span.start && span.start < other.end && other.end < span.end;
        expect(crossing).toBe(false);
      }
      last = span.start;
    }
  });
});

describe("parseMarkdown", () => {
  test("takes hostile input in a moment and loses none of it", () => {
    const inputs = [
      "_a*b".repeat(20_000),
      `${">".repeat(30_000)} x`,
      "[".repeat(50_000),
      "*".repeat(9_000),
    ];
    for (const input of inputs) {
      const started = performance.now();
      expect(richText(input).text.length).toBeGreaterThan(0);
      expect(performance.now() - started).toBeLessThan(3_000);
    }
    expect(richText("_a*b".repeat(20_000)).text).toBe("_a*b".repeat(20_000));
  });

  test("deep nesting is written as its source instead of overflowing", () => {
    const deep = `${"*a ".repeat(1_500)}${"b*".repeat(1_500)}`;
    expect(richText(deep).text).toContain("b");
    expect(richText(`${">".repeat(49)} x`).text).toBe("x");
  });

  test("a long list of bold items is no attack", () => {
    const rich = richText("- **item**: text\n".repeat(2_000));
    expect(rich.spans.length).toBe(2_000);
  });

  test("code with many marks is still code", () => {
    const tree = parseMarkdown(`\`\`\`c\n${"**p_x = *q_y;\n".repeat(2_000)}\`\`\`\n\n**ok**`);
    expect(tree.children.map((node) => node.type)).toEqual(["code", "paragraph"]);
  });
});

describe("measure", () => {
  test("counts code points, units and bytes", () => {
    expect(lengthIn("aé界👍", "codepoints")).toBe(4);
    expect(lengthIn("aé界👍", "utf16")).toBe(5);
    expect(lengthIn("aé界👍", "bytes")).toBe(new TextEncoder().encode("aé界👍").length);
    expect(lengthIn("\ud800", "bytes")).toBe(new TextEncoder().encode("\ud800").length);
    expect(fits("aé", 3, "bytes")).toBe(true);
    expect(fits("aé", 2, "bytes")).toBe(false);
  });

  test("truncate keeps graphemes whole", () => {
    expect(truncate("hello", 5, "codepoints")).toBe("hello");
    expect(truncate("hello!", 5, "codepoints")).toBe("hell…");
    expect(truncate("ab👨‍👩‍👧‍👦cd", 6, "codepoints")).toBe("ab…");
    expect(truncate("abc", 2, "bytes")).toBe("");
  });
});
