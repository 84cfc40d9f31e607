/**
 * What the demo shows: on a terminal a table that is drawn again in its place, elsewhere a plain line
 * a second, without an escape code.
 *
 * @module
 */
import type { Totals } from "./demoLedger.ts";
import { paint, type Style } from "./terminal.ts";

/** What is shown at one moment. */
export interface View {
  totals: Totals;
  kills: number;
  killsPlanned: number;
  /** How long the runtime has been up, in ms; `undefined` while it is down. */
  upMs: number | undefined;
  /** Since the demo began, in ms. */
  elapsedMs: number;
  phase: string;
}

/** What it is shown on. */
export interface Screen {
  show(view: View): void;
}

/** How often each kind is drawn, in ms. */
export const TERMINAL_MS = 100;
export const PLAIN_MS = 1_000;

const LABELS: readonly (readonly [name: keyof Totals, about: string])[] = [
  ["sent", "messages that users wrote"],
  ["admitted", "taken: the webhook was answered with success"],
  ["replied", "replies that the platform accepted"],
  ["waiting", "replies still to come"],
  ["announced", "sends cut off by a kill, and said so"],
  ["lost", "no reply, and nobody said so"],
  ["doubled", "said twice, and nobody said so"],
];

/** Writes to `stream`; draws in place where it is a terminal. */
export function screenOn(stream: NodeJS.WriteStream): Screen {
  return stream.isTTY && process.env.TERM !== "dumb" ? new Terminal(stream) : new Plain(stream);
}

class Plain implements Screen {
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  show({ totals, kills, upMs, elapsedMs, phase }: View): void {
    const figures = LABELS.map(([name]) => `${name} ${totals[name]}`).join("  ");
    const up = upMs === undefined ? "down" : `up ${seconds(upMs)}`;
    this.#stream.write(`${seconds(elapsedMs)}  ${figures}  kills ${kills}  ${up}  ${phase}\n`);
  }
}

class Terminal implements Screen {
  readonly #stream: NodeJS.WriteStream;
  #drawn = 0;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  show(view: View): void {
    const lines = linesOf(view).map((line) => line(this.#stream.columns ?? 80));
    // Back to the table's first line, and everything below is cleared.
    const back = this.#drawn === 0 ? "" : `\u001b[${this.#drawn}A\u001b[J`;
    this.#stream.write(`${back}${lines.join("\n")}\n`);
    this.#drawn = lines.length;
  }
}

/** A line for a width: a longer one would wrap, and the next drawing would miss its place. */
type Fitted = (columns: number) => string;

function fitted(plain: string, style?: Style): Fitted {
  return (columns) => {
    const cut = plain.slice(0, Math.max(1, columns - 1));
    return style === undefined ? cut : paint(style, cut);
  };
}

function linesOf({ totals, kills, killsPlanned, upMs, elapsedMs, phase }: View): Fitted[] {
  const runtime = upMs === undefined ? "killed" : `up ${seconds(upMs)}`;
  return [
    fitted(`  ${seconds(elapsedMs).padStart(7)}   ${phase}`, "bold"),
    ...LABELS.map(([name, about]) =>
      fitted(
        `  ${String(totals[name]).padStart(7)}   ${name.padEnd(10)} ${about}`,
        styleOf(name, totals[name]),
      ),
    ),
    fitted(
      `  ${String(kills).padStart(7)}   kills      of ${killsPlanned}; the runtime: ${runtime}`,
      upMs === undefined ? "yellow" : "cyan",
    ),
  ];
}

function styleOf(name: keyof Totals, value: number): Style | undefined {
  if (name === "lost" || name === "doubled") return value === 0 ? "green" : "red";
  if (name === "announced" && value > 0) return "yellow";
  return name === "waiting" ? "dim" : undefined;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
