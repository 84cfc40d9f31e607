/**
 * Lengths as platforms count them.
 *
 * @module
 */

/** What a platform's limit counts. */
export type LengthUnit = "codepoints" | "utf16" | "bytes";

/** What the code point at `index` weighs, and how many UTF-16 units it takes. */
function weigh(text: string, index: number, unit: LengthUnit): { weight: number; units: number } {
  const code = text.codePointAt(index) ?? 0;
  const units = code > 0xffff ? 2 : 1;
  if (unit === "codepoints") return { weight: 1, units };
  if (unit === "utf16") return { weight: units, units };
  // A lone surrogate is sent as U+FFFD, three bytes, which is what this gives.
  return { weight: code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4, units };
}

/** The length of `text` in `unit`. */
export function lengthIn(text: string, unit: LengthUnit): number {
  if (unit === "utf16") return text.length;
  let length = 0;
  for (let i = 0; i < text.length; ) {
    const { weight, units } = weigh(text, i, unit);
    length += weight;
    i += units;
  }
  return length;
}

/** Whether `text` is at most `limit` long; cheap for texts far below it. */
export function fits(text: string, limit: number, unit: LengthUnit): boolean {
  return text.length * (unit === "bytes" ? 3 : 1) <= limit || lengthIn(text, unit) <= limit;
}

/** The largest index such that `text.slice(start, index)` is within `limit` and cuts no code point. */
export function reach(text: string, start: number, limit: number, unit: LengthUnit): number {
  let length = 0;
  let i = start;
  while (i < text.length) {
    const { weight, units } = weigh(text, i, unit);
    if (length + weight > limit) break;
    length += weight;
    i += units;
  }
  return i;
}

/** Cuts `text` to `limit`, with an ellipsis where something is missing. Never cuts a grapheme. */
export function truncate(text: string, limit: number, unit: LengthUnit): string {
  if (fits(text, limit, unit)) return text;
  const room = limit - lengthIn("…", unit);
  if (room < 1) return "";
  const end = reach(text, 0, room, unit);
  const cut = graphemeStart(text, 0, end);
  return `${text.slice(0, cut > 0 ? cut : end)}…`;
}

// One for the module: making a segmenter costs more than using it.
let segmenter: Intl.Segmenter | undefined;

/** Where the grapheme cluster begins that holds `index`, seen from the cluster boundary `start`. */
export function graphemeStart(text: string, start: number, index: number): number {
  if (index >= text.length) return text.length;
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  const next = (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  const found = segmenter.segment(text.slice(start, index + next)).containing(index - start);
  return start + (found?.index ?? index - start);
}

/**
 * Whether a grapheme cluster may end at `index`, judged by the code points on both sides. Enough next
 * to white space and punctuation; flags and joined emoji need {@link graphemeStart}.
 */
export function isPlainBoundary(text: string, index: number): boolean {
  const after = text.codePointAt(index) ?? 0;
  const before = text.charCodeAt(index - 1);
  // Nothing below U+0300 extends a cluster, but for CR LF.
  if (after < 0x300 && before < 0x300) return !(before === 13 && after === 10);
  const low = before >= 0xdc00 && before <= 0xdfff && index >= 2;
  const from = low ? index - 2 : index - 1;
  return graphemeStart(text, from, index) === index;
}
