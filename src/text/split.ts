/**
 * Cuts long text into messages. A cut falls, in this order of preference, between paragraphs, lines,
 * sentences, words, and at last between grapheme clusters; only a cluster that alone is over the limit
 * is cut, and then between code points.
 *
 * @module
 */
import { fits, graphemeStart, isPlainBoundary, type LengthUnit, reach } from "./measure.ts";
import type { RichText, Span } from "./richtext.ts";

/** A stretch of a text in UTF-16 units; `end` is exclusive. */
export interface Range {
  start: number;
  end: number;
}

/**
 * A paragraph, line or sentence break is taken only if it leaves the part at least this full, so that
 * one early heading does not make a message of its own.
 */
const MIN_FILL = 1 / 3;

/** Breaks, from the worst that is still a break to the best. */
const SPACE = 1;
const SENTENCE = 2;
const LINE = 3;
const PARAGRAPH = 4;

interface Break {
  /** Where the part ends. */
  end: number;
  /** Where the next part begins; what lies between is white space. */
  next: number;
  rank: number;
}

/**
 * The parts of `text`, each within `limit`, as ranges. They are in order and do not overlap; what lies
 * between two of them (or before the first, or after the last) is spaces and line breaks only, and
 * nothing is left out of a text that fits.
 *
 * @param codeAt whether an index lies in preformatted text, where a blank line ends no paragraph
 * @throws {RangeError} when `limit` is too small for a single code point
 */
export function splitRanges(
  text: string,
  limit: number,
  unit: LengthUnit,
  codeAt?: (index: number) => boolean,
): Range[] {
  const least = unit === "bytes" ? 4 : unit === "utf16" ? 2 : 1;
  if (!(limit >= least)) throw new RangeError(`a part must hold at least ${least} ${unit}`);
  const ranges: Range[] = [];
  if (text === "") return ranges;
  if (fits(text, limit, unit)) return [{ start: 0, end: text.length }];
  let start = 0;
  while (start < text.length) {
    const content = skipSpace(text, start);
    if (content === text.length) break;
    const hard = reach(text, start, limit, unit);
    if (hard === text.length) {
      ranges.push({ start, end: hard });
      break;
    }
    if (content >= hard) {
      // Nothing but white space up to the limit: a blank message says nothing, and most platforms
      // refuse it.
      start = content;
      continue;
    }
    const cut = bestBreak(text, content, start, hard, codeAt) ?? hardBreak(text, start, hard);
    ranges.push({ start, end: cut.end });
    start = cut.next;
  }
  return ranges;
}

/** Splits plain text; see {@link splitRanges} for what holds. */
export function splitText(text: string, limit: number, unit: LengthUnit): string[] {
  return splitRanges(text, limit, unit).map(({ start, end }) => text.slice(start, end));
}

/**
 * Splits rich text: the text as {@link splitRanges} does, and each span that crosses a cut ends there
 * and starts anew in the next part, with its language or address.
 */
export function splitRichText(rich: RichText, limit: number, unit: LengthUnit): RichText[] {
  const spans = [...rich.spans].sort((a, b) => a.start - b.start || b.end - a.end);
  const ranges = splitRanges(rich.text, limit, unit, codeLookup(spans));
  let waiting = 0;
  let open: Span[] = [];
  return ranges.map(({ start, end }) => {
    // Spans enter once and leave once, so all parts together cost one pass.
    open = open.filter((span) => span.end > start);
    for (let span = spans[waiting]; span !== undefined && span.start < end; span = spans[waiting]) {
      if (span.end > start) open.push(span);
      waiting += 1;
    }
    return {
      text: rich.text.slice(start, end),
      spans: open
        .map((span) => ({
          ...span,
          start: Math.max(span.start, start) - start,
          end: Math.min(span.end, end) - start,
        }))
        .filter((span) => span.start < span.end),
    };
  });
}

function codeLookup(sorted: readonly Span[]): (index: number) => boolean {
  const code = sorted.filter((span) => span.type === "pre");
  return (index) => {
    // The last code block that starts at or before the index; blocks do not overlap.
    let low = 0;
    let high = code.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((code[middle]?.start ?? 0) <= index) low = middle + 1;
      else high = middle;
    }
    const candidate = code[low - 1];
    return candidate !== undefined && index < candidate.end;
  };
}

/** Walks backwards from the limit and takes the best break that is full enough. */
function bestBreak(
  text: string,
  content: number,
  start: number,
  hard: number,
  codeAt: ((index: number) => boolean) | undefined,
): Break | undefined {
  const full = start + (hard - start) * MIN_FILL;
  let best: Break | undefined;
  for (let i = hard; i > content && !(i < full && best !== undefined); ) {
    let candidate: Break | undefined;
    if (isSpace(text.charCodeAt(i))) {
      candidate = breakAtSpace(text, i, content);
      i = candidate.end - 1;
    } else {
      // Chinese and Japanese put no space behind a full stop.
      if (isWideStop(text.charCodeAt(i - 1))) candidate = { end: i, next: i, rank: SENTENCE };
      i -= 1;
    }
    if (candidate === undefined) continue;
    if (candidate.rank === PARAGRAPH && codeAt?.(candidate.end)) candidate.rank = LINE;
    const better = best === undefined || (candidate.rank > best.rank && candidate.end >= full);
    if (better && keepsClusters(text, candidate)) best = candidate;
    if (best?.rank === PARAGRAPH) return best;
  }
  return best;
}

/** The break at the run of white space around `i`. */
function breakAtSpace(text: string, i: number, content: number): Break {
  let end = i;
  while (end > content && isSpace(text.charCodeAt(end - 1))) end -= 1;
  const next = skipSpace(text, i);
  let lines = 0;
  let lastLine = next;
  for (let at = end; at < next; at += 1) {
    if (text.charCodeAt(at) !== 10) continue;
    lines += 1;
    lastLine = at + 1;
  }
  if (lines === 0) return { end, next, rank: endsSentence(text, end) ? SENTENCE : SPACE };
  // The indent of the next line is content: code and lists live by it.
  return { end, next: lastLine, rank: lines > 1 ? PARAGRAPH : LINE };
}

/** False where a mark sits on the white space, or a letter takes it along, as one cluster. */
function keepsClusters(text: string, { end, next }: Break): boolean {
  return isPlainBoundary(text, end) && (next >= text.length || isPlainBoundary(text, next));
}

function hardBreak(text: string, start: number, hard: number): Break {
  const boundary = graphemeStart(text, start, hard);
  const at = boundary > start ? boundary : hard;
  return { end: at, next: at, rank: 0 };
}

function skipSpace(text: string, from: number): number {
  let i = from;
  while (i < text.length && isSpace(text.charCodeAt(i))) i += 1;
  return i;
}

/** Space, line feed, carriage return. A tab may be data, and a no-break space asks not to be cut. */
function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13;
}

function isWideStop(code: number): boolean {
  // 。 ！ ？ ｡
  return code === 0x3002 || code === 0xff01 || code === 0xff1f || code === 0xff61;
}

function endsSentence(text: string, end: number): boolean {
  let i = end - 1;
  // Quotes and brackets close after the full stop.
  while (i > 0 && `"')]}»”’*_`.includes(text.charAt(i))) i -= 1;
  return ".!?…".includes(text.charAt(i)) || isWideStop(text.charCodeAt(i));
}
