/**
 * Reads what `wrangler dev` prints and says what happened. Its own remarks are dropped; what the Worker
 * logged and what went wrong come out as events.
 *
 * @module
 */
import { stripVTControlCharacters } from "node:util";

/** Levels of a log line. */
export type Level = "debug" | "info" | "warn" | "error";

/** Something that wrangler or the Worker said. */
export type OutputEvent =
  /** A rebuilt Worker is about to be loaded, or is. */
  | { type: "reloading" }
  | { type: "reloaded" }
  /** The runtime died by itself. */
  | { type: "crashed" }
  | { type: "request"; method: string; path: string; status: number; ms: number }
  /** Logged by Holdfast: one JSON object. */
  | { type: "log"; level: Level; message: string; fields: Record<string, unknown> }
  /** Logged by the bot's own code. */
  | { type: "console"; level: Level; text: string }
  /** Wrangler could not build, load or serve the Worker. */
  | { type: "problem"; of: "build" | "script" | "port"; text: string };

/** A message of several lines is over after this silence, in ms. */
const QUIET_MS = 40;

const HEADS = [
  { mark: /^✘ \[ERROR\] ?/, level: "error" },
  { mark: /^▲ \[WARNING\] ?/, level: "warn" },
] as const;

/** Remarks about wrangler itself, or about what `npm start` does anyway. */
const NOISE = [
  /^Scheduled Workers are not automatically triggered/,
  /^A DurableObjectNamespace in the config referenced the class/,
  /^The latest compatibility date supported by/,
  /^The Workers runtime failed to start/,
  /^Your Worker has access to the following bindings/,
  /^Binding\s+Resource\s+Mode/,
  /^env\.\S+ .*\blocal\s*$/,
  /^Using secrets defined in /,
  /^⎔ Starting local server/,
  /^\[wrangler:info\] (?:Updated and ready|Ready) on /,
  /^If you think this is a bug then please create an issue/,
  /^Note that there is a newer version of Wrangler/,
];

/** Lines inside messages that help nobody here. */
const CLUTTER = /^(?:If you think this is a bug|stack: \S*workerd@)/;

/** The crash button of the web chat; the runtime prints it for the object and again for its caller. */
const KILLED = /^Uncaught Error: killed on request, in local mode/;
const KILLED_TEXT =
  "The bot was killed in the middle of a send, as the page asked. It goes on by itself.";
/** Two of them this close, in ms, are one. */
const SAME_KILL_MS = 1_000;

const REQUEST = /^\[wrangler:info\] ([A-Z]+) (\S+) (\d{3}) .*\((\d+)ms\)$/;

/** Reads one stream of output. */
export class OutputReader {
  readonly #emit: (event: OutputEvent) => void;
  #rest = "";
  #block: { level: "warn" | "error"; lines: string[] } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #killedAt = 0;

  constructor(emit: (event: OutputEvent) => void) {
    this.#emit = emit;
  }

  push(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(stripVTControlCharacters(line).trimEnd());
    clearTimeout(this.#timer);
    if (this.#block !== undefined)
      this.#timer = setTimeout(() => this.#endBlock(), QUIET_MS).unref();
  }

  /** The stream is over. */
  end(): void {
    clearTimeout(this.#timer);
    if (this.#rest !== "") this.#line(stripVTControlCharacters(this.#rest).trimEnd());
    this.#rest = "";
    this.#endBlock();
  }

  #line(line: string): void {
    const head = HEADS.find(({ mark }) => mark.test(line));
    if (head !== undefined) {
      this.#endBlock();
      this.#block = { level: head.level, lines: [line.replace(head.mark, "")] };
      return;
    }
    if (this.#block !== undefined && (line === "" || line.startsWith("  "))) {
      this.#block.lines.push(line);
      return;
    }
    this.#endBlock();
    if (line !== "") this.#plain(line);
  }

  #endBlock(): void {
    const block = this.#block;
    this.#block = undefined;
    if (block === undefined) return;
    const text = tidy(block.lines);
    if (text === "" || NOISE.some((one) => one.test(text))) return;
    if (KILLED.test(text)) {
      this.#killed();
      return;
    }
    const log = logOf(text);
    const of = block.level === "error" ? problemOf(text) : undefined;
    if (log !== undefined) this.#emit(log);
    else if (of !== undefined) this.#emit({ type: "problem", of, text: explain(of, text) });
    else this.#emit({ type: "console", level: block.level, text });
  }

  #killed(): void {
    const again = Date.now() - this.#killedAt < SAME_KILL_MS;
    this.#killedAt = Date.now();
    if (!again) this.#emit({ type: "console", level: "info", text: KILLED_TEXT });
  }

  #plain(line: string): void {
    const request = REQUEST.exec(line);
    if (request !== null) {
      const [, method = "", path = "", status, ms] = request;
      this.#emit({ type: "request", method, path, status: Number(status), ms: Number(ms) });
    } else if (line.startsWith("⎔ Reloading local server")) {
      this.#emit({ type: "reloading" });
    } else if (line.startsWith("⎔ Local server updated and ready")) {
      this.#emit({ type: "reloaded" });
    } else if (line.startsWith("[wrangler:warn] The Workers runtime crashed")) {
      this.#emit({ type: "crashed" });
    } else if (!NOISE.some((one) => one.test(line))) {
      this.#emit(logOf(line) ?? { type: "console", level: "info", text: line });
    }
  }
}

/** A message without its indentation and the empty lines around and between. */
function tidy(lines: readonly string[]): string {
  return lines
    .map((line) => line.replace(/^ {2}/, ""))
    .filter((line) => line.trim() !== "" && !CLUTTER.test(line))
    .join("\n");
}

/** A log line of Holdfast. */
function logOf(text: string): OutputEvent | undefined {
  if (!text.startsWith('{"level":')) return undefined;
  try {
    const { level, message, ...fields } = JSON.parse(text) as Record<string, unknown>;
    if (level !== "debug" && level !== "info" && level !== "warn" && level !== "error")
      return undefined;
    return { type: "log", level, message: String(message), fields };
  } catch {
    return undefined;
  }
}

function problemOf(text: string): Extract<OutputEvent, { type: "problem" }>["of"] | undefined {
  if (text.startsWith("Build failed with")) return "build";
  if (/^service core:user:\S*: /.test(text)) return "script";
  if (/address already in use/i.test(text)) return "port";
  // Errors that the Worker printed look the same as wrangler's own; those have a stack or are JSON.
  return undefined;
}

/** The part of wrangler's message that helps. */
function explain(of: string, text: string): string {
  if (of === "script") {
    const [first = ""] = text.split("\n");
    return first.replace(/^service core:user:\S*: (?:Uncaught )?(?:Error: (?=\w*Error: ))?/, "");
  }
  if (of === "build") {
    // The headline only counts what follows.
    return text.split("\n").slice(1).join("\n").replaceAll("✘ [ERROR] ", "") || text;
  }
  return text;
}
