import { describe, expect, test } from "vitest";
import { fits, type LengthUnit, lengthIn } from "./measure.ts";
import { type RichText, richText, type Span } from "./richtext.ts";
import { splitRanges, splitRichText, splitText } from "./split.ts";

/** A small seeded generator (mulberry32), so that a failing case can be run again. */
function prng(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const PIECES = [
  ..."abcdefgh",
  " ",
  " ",
  "  ",
  "\n",
  "\n\n",
  "\r\n",
  "\t",
  ". ",
  "! ",
  "。",
  "é",
  "e\u0301",
  "ж",
  "界",
  "👍",
  "👍🏽",
  "👨‍👩‍👧‍👦",
  "🇩🇪",
  "🇫🇷",
  "각",
  "நி",
  " \u0308",
  "\u0600",
  "❤️",
  "word ",
  "https://example.org/a/b ",
];
const LONE_SURROGATE = /\p{Surrogate}/u;
const UNITS: LengthUnit[] = ["codepoints", "utf16", "bytes"];

function randomText(random: () => number, pieces: number): string {
  let text = "";
  for (let i = 0; i < pieces; i += 1) text += PIECES[Math.floor(random() * PIECES.length)] ?? "";
  return text;
}

function graphemeBoundaries(text: string): Set<number> {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const found = new Set([text.length]);
  for (const { index } of segmenter.segment(text)) found.add(index);
  return found;
}

function longestGrapheme(text: string, unit: LengthUnit): number {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  let longest = 0;
  for (const { segment } of segmenter.segment(text)) {
    longest = Math.max(longest, lengthIn(segment, unit));
  }
  return longest;
}

describe("splitText", () => {
  test("leaves a text that fits as it is", () => {
    expect(splitText("  hello \n", 9, "codepoints")).toEqual(["  hello \n"]);
    expect(splitText("", 10, "codepoints")).toEqual([]);
  });

  test("counts in the unit of the platform", () => {
    expect(splitText("👍👍👍👍", 2, "codepoints")).toEqual(["👍👍", "👍👍"]);
    expect(splitText("👍👍👍👍", 5, "utf16")).toEqual(["👍👍", "👍👍"]);
    expect(splitText("👍👍éé", 9, "bytes")).toEqual(["👍👍", "éé"]);
  });

  test("prefers paragraph, line, sentence, space, in this order", () => {
    const at = (text: string) => splitText(text, 20, "codepoints")[0];
    expect(at("one two.\n\nthree. four\nfive six seven")).toBe("one two.");
    expect(at("one two three\nfour. five six seven")).toBe("one two three");
    expect(at("one two three. four five six seven")).toBe("one two three.");
    expect(at("one two three four five six seven")).toBe("one two three four");
    expect(at("(one two?) three four five six")).toBe("(one two?)");
    expect(at("これは文です。これも文ですよこれも文です。")).toBe("これは文です。");
    expect(at("abcdefghijklmnopqrstuvwxyz")).toBe("abcdefghijklmnopqrst");
  });

  test("does not make a message of an early heading", () => {
    expect(splitText("Hi\n\nabcdef ghijkl mnopqrst", 20, "codepoints")).toEqual([
      "Hi\n\nabcdef ghijkl",
      "mnopqrst",
    ]);
  });

  test("keeps the indent of the next line and drops blank parts", () => {
    expect(splitText("if (x) {\n    run(x);\n}", 16, "codepoints")).toEqual([
      "if (x) {",
      "    run(x);\n}",
    ]);
    expect(splitText(`${" ".repeat(50)}x${" ".repeat(50)}`, 10, "codepoints")).toEqual(["x"]);
    expect(splitText(" ".repeat(50), 10, "codepoints")).toEqual([]);
  });

  test("cuts a grapheme only when it alone is over the limit, and then no surrogate pair", () => {
    const family = "👨‍👩‍👧‍👦";
    expect(splitText(`ab${family}`, 8, "codepoints")).toEqual(["ab", family]);
    const parts = splitText(family, 4, "utf16");
    expect(parts.join("")).toBe(family);
    for (const part of parts) expect(LONE_SURROGATE.test(part)).toBe(false);
  });

  test("refuses a limit that no code point fits in", () => {
    expect(() => splitText("x", 3, "bytes")).toThrow(RangeError);
    expect(() => splitText("x", 1, "utf16")).toThrow(RangeError);
    expect(() => splitText("x", Number.NaN, "codepoints")).toThrow(RangeError);
  });

  test("holds its promises on random texts", () => {
    for (let seed = 1; seed <= 3_000; seed += 1) {
      const random = prng(seed);
      const text = randomText(random, 5 + Math.floor(random() * 120));
      const unit = UNITS[seed % 3] ?? "codepoints";
      const limit = 4 + Math.floor(random() * 60);
      const boundaries = graphemeBoundaries(text);
      const splitsGraphemes = longestGrapheme(text, unit) > limit;
      let at = 0;
      for (const { start, end } of splitRanges(text, limit, unit)) {
        const hint = `seed ${seed}, ${unit} ${limit}: ${JSON.stringify(text)} at ${start}`;
        expect(start >= at && end > start, hint).toBe(true);
        expect(text.slice(at, start), hint).toMatch(/^[ \r\n]*$/);
        const part = text.slice(start, end);
        expect(fits(part, limit, unit), hint).toBe(true);
        expect(LONE_SURROGATE.test(part), hint).toBe(false);
        if (!splitsGraphemes) {
          expect(boundaries.has(start) && boundaries.has(end), hint).toBe(true);
        }
        at = end;
      }
      expect(text.slice(at), `seed ${seed}`).toMatch(/^[ \r\n]*$/);
    }
  });

  test("is linear: ten times the text, about ten times the time", () => {
    for (const piece of ["word ", "x", "界", "\n", "👨‍👩‍👧‍👦", "a)", "жд. ", " \u0308"]) {
      const text = piece.repeat(Math.ceil(400_000 / piece.length));
      const started = performance.now();
      for (const limit of [4096, 100_000]) splitText(text, limit, "codepoints");
      // Quadratic behaviour takes minutes here; the bound is far from both.
      expect(performance.now() - started, JSON.stringify(piece)).toBeLessThan(3_000);
    }
  });
});

describe("splitRichText", () => {
  test("reopens spans behind a cut, code with its language", () => {
    const rich = richText("```ts\nconst a = 1;\nconst b = 2;\n```");
    expect(splitRichText(rich, 14, "codepoints")).toEqual([
      { text: "const a = 1;", spans: [{ type: "pre", lang: "ts", start: 0, end: 12 }] },
      { text: "const b = 2;", spans: [{ type: "pre", lang: "ts", start: 0, end: 12 }] },
    ]);
    const link = richText("[one two three](https://example.org)");
    expect(splitRichText(link, 8, "utf16")).toEqual([
      { text: "one two", spans: [{ type: "link", url: "https://example.org", start: 0, end: 7 }] },
      { text: "three", spans: [{ type: "link", url: "https://example.org", start: 0, end: 5 }] },
    ]);
  });

  test("would rather cut before code than at a blank line in it", () => {
    const rich = richText("Some words here\n\n```\naaa\n\nbbb\nccc\n```");
    expect(splitRichText(rich, 26, "codepoints").map((part) => part.text)).toEqual([
      "Some words here",
      "aaa\n\nbbb\nccc",
    ]);
  });

  test("keeps every formatted character formatted, on random spans", () => {
    for (let seed = 1; seed <= 500; seed += 1) {
      const random = prng(seed);
      const text = randomText(random, 80);
      const spans: Span[] = [];
      for (let i = 0; i < 6; i += 1) {
        const start = Math.floor(random() * text.length);
        const end = start + 1 + Math.floor(random() * (text.length - start));
        spans.push({ start, end, type: i % 2 === 0 ? "bold" : "pre" });
      }
      const rich: RichText = { text, spans };
      const ranges = splitRanges(text, 20, "codepoints");
      for (const part of splitRichText(rich, 20, "codepoints")) {
        for (const span of part.spans) {
          expect(span.start >= 0 && span.start < span.end && span.end <= part.text.length).toBe(
            true,
          );
        }
      }
      // Without code the ranges are those of plain text, so coverage can be compared by character.
      const bold = { text, spans: spans.filter((span) => span.type === "bold") };
      splitRichText(bold, 20, "codepoints").forEach((part, index) => {
        const from = ranges[index]?.start ?? 0;
        for (let i = 0; i < part.text.length; i += 1) {
          const before = bold.spans.filter((s) => s.start <= from + i && from + i < s.end).length;
          const after = part.spans.filter((s) => s.start <= i && i < s.end).length;
          expect(after, `seed ${seed}`).toBe(before);
        }
      });
    }
  });

  test("is fast with many spans", () => {
    const source = "**bold** and `code` and [a link](https://example.org).\n\n".repeat(2_000);
    const rich = richText(source);
    const started = performance.now();
    const parts = splitRichText(rich, 4_096, "codepoints");
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(parts.reduce((sum, part) => sum + part.spans.length, 0)).toBeGreaterThanOrEqual(6_000);
  });
});
