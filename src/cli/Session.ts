/**
 * One `npm start`: keeps a runtime up, tells what happens, ticks the cron that local runtimes do not
 * fire, and ends everything together.
 *
 * @module
 */
import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { localRoutes } from "./localRoutes.ts";
import { removeRun, writeRun } from "./lock.ts";
import type { OutputEvent } from "./output.ts";
import { isAboutPolling, PollingWatch } from "./PollingWatch.ts";
import { polledBots } from "./polledBots.ts";
import { Runtime } from "./Runtime.ts";
import {
  banner,
  connectionLines,
  eventLine,
  type Health,
  indent,
  type Places,
  problemTitle,
  readHealth,
} from "./report.ts";
import { SourcePoll } from "./SourcePoll.ts";
import { type EnvFiles, envFiles } from "./secrets.ts";
import { CommandError, paint, say } from "./terminal.ts";

/** What a session is about. */
export interface SessionOptions extends Places {
  /** Files of the tool itself. */
  scratch: string;
  host: string;
  port: number;
  verbose: boolean;
}

/** How long a start may take, in ms. The first one bundles and makes databases. */
const START_MS = 60_000;
const POLL_MS = 100;
/** An error that wrangler printed is why the Worker does not answer, if it does not within this, in ms. */
const COMPLAINT_MS = 3_000;
/** Editors write a file in several steps. */
const SETTLE_MS = 150;
const MINUTE_MS = 60_000;
/** How often polling is looked at. */
const LOOK_MS = 2_000;
/** A runtime that dies sooner than this after its start, this often in a row, is not started again. */
const SHORT_LIFE_MS = 10_000;
const SHORT_LIVES = 3;

const LOOK = "look at what it prints: npm start -- --verbose";
const FIXES = {
  build: "correct the file that is named above, then npm start",
  script: "correct src/bot.ts or what it imports, then npm start",
  port: "stop what uses it, or choose another: npm start -- --port 8790",
} as const;

/** Files beside `src/` that a running bot depends on. */
const VARIABLES = [".dev.vars", ".env", ".env.local"];
const CONFIG = "wrangler.toml";

/** A running bot. */
export class Session {
  readonly #options: SessionOptions;
  readonly #url: string;
  readonly #watchers: FSWatcher[] = [];
  readonly #sources: SourcePoll;
  readonly #polling: PollingWatch;
  #runtime: Runtime | undefined;
  #env: EnvFiles | undefined;
  #startedAt = 0;
  #shortLives = 0;
  /** Problems of the life that is starting; told in one piece if it fails. */
  #problems: OutputEvent[] = [];
  #up = false;
  #stopping = false;
  /** A broken bot waits for a change. */
  #waiting = false;
  /** A change or a death is being dealt with. */
  #busy: Promise<void> = Promise.resolve();
  #shown = "";
  #timer: NodeJS.Timeout | undefined;
  #settle: NodeJS.Timeout | undefined;
  #end: (code: number) => void = () => {};
  /** Settles with the exit code when all is over. */
  readonly ended: Promise<number> = new Promise((done) => {
    this.#end = done;
  });

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#sources = new SourcePoll(join(options.root, "src"));
    const { root, secrets, state } = options;
    const local = localRoutes(root, secrets, `http://${this.#target}`);
    this.#polling = new PollingWatch(local, polledBots(state));
    const shown = options.host === "127.0.0.1" ? "localhost" : options.host;
    this.#url = `http://${shown.includes(":") ? `[${shown}]` : shown}:${options.port}`;
  }

  /** Starts, and tells where everything is. @throws {CommandError} with the cause */
  async start(): Promise<void> {
    const health = await this.#comeUp(this.#launch());
    if (health === undefined) {
      await this.stop(1);
      return;
    }
    for (const line of banner(health, this.#url, this.#options, process.pid)) say(line);
    this.#shown = connectionLines(health, this.#url).join("\n");
    this.#watch();
    this.#tick();
    void this.#lookAtPolling();
  }

  /** Ends everything. */
  async stop(code: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#settle);
    clearTimeout(this.#look);
    this.#sources.stop();
    for (const watcher of this.#watchers) watcher.close();
    await this.#runtime?.stop();
    this.#env?.remove();
    removeRun(this.#options.state);
    this.#end(code);
  }

  /** Ends everything without manners. */
  kill(): void {
    this.#runtime?.kill();
  }

  #launch(): Runtime {
    const { root, port, host, state, scratch, secrets, verbose } = this.#options;
    this.#env?.remove();
    this.#env = envFiles(root, secrets, `${state}.vars.env`);
    this.#problems = [];
    this.#up = false;
    this.#startedAt = Date.now();
    const runtime = new Runtime({
      root,
      port,
      host,
      state,
      scratch,
      envFiles: this.#env.files,
      onEvent: (event) => this.#onEvent(runtime, event),
      ...(verbose ? { onRaw: (text) => process.stdout.write(paint("dim", text)) } : {}),
    });
    this.#runtime = runtime;
    writeRun(state, { pid: process.pid, group: runtime.pid, port, startedAt: this.#startedAt });
    void runtime.exited.then(() => this.#onExit(runtime));
    return runtime;
  }

  /** Waits until the Worker answers. @throws {CommandError} when it cannot */
  async #comeUp(runtime: Runtime): Promise<Health | undefined> {
    let over = false;
    let complaintAt: number | undefined;
    void runtime.exited.then(() => {
      over = true;
    });
    while (!this.#stopping) {
      const health = await this.#health();
      if (health !== undefined) {
        this.#up = true;
        // What was held back, in case it was the cause of a failure.
        for (const event of this.#problems.splice(0)) this.#tell(event);
        return health;
      }
      const broken = this.#problems.some((one) => one.type === "problem");
      const complained = this.#problems.some(
        (one) => one.type === "console" && one.level === "error",
      );
      if (complained) complaintAt ??= Date.now();
      const hopeless = complaintAt !== undefined && Date.now() - complaintAt > COMPLAINT_MS;
      if (over || broken || hopeless) {
        // What belongs to the message may still be on its way.
        await delay(POLL_MS);
        throw this.#failure();
      }
      if (Date.now() - this.#startedAt > START_MS) {
        throw new CommandError(
          `the Worker did not answer on ${this.#url}/health within ${START_MS / 1_000} s`,
          LOOK,
        );
      }
      await delay(POLL_MS);
    }
    return undefined;
  }

  #failure(): CommandError {
    const problem = this.#problems.find((one) => one.type === "problem");
    if (problem?.type === "problem") {
      const text = `${problemTitle(problem.of)}\n${indent(problem.text)}`;
      return new CommandError(text, FIXES[problem.of]);
    }
    const said = this.#problems.flatMap((one) =>
      one.type === "console" && one.level === "error" ? [one.text] : [],
    );
    return said.length === 0
      ? new CommandError("wrangler ended before the Worker answered", LOOK)
      : new CommandError(
          `The Worker did not come up:\n${indent(said.join("\n"))}`,
          "correct what is named above, then npm start",
        );
  }

  async #health(): Promise<Health | undefined> {
    try {
      const response = await fetch(`http://${this.#target}/health`, {
        signal: AbortSignal.timeout(2_000),
      });
      return readHealth(await response.json());
    } catch {
      return undefined;
    }
  }

  /** Where this machine reaches the Worker. */
  get #target(): string {
    const { host, port } = this.#options;
    const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
    return `${address.includes(":") ? `[${address}]` : address}:${port}`;
  }

  #onEvent(runtime: Runtime, event: OutputEvent): void {
    if (runtime !== this.#runtime || this.#stopping) return;
    if (!this.#up) {
      this.#problems.push(event);
      return;
    }
    if (event.type === "crashed") {
      runtime.kill();
      return;
    }
    this.#tell(event);
    if (event.type === "problem" && event.of === "script") {
      // Wrangler ends after this one, in its own time.
      this.#problems.push(event);
      runtime.kill();
    }
    if (event.type === "reloaded") this.#queue(() => this.#showChanges());
  }

  #tell(event: OutputEvent): void {
    // Said by `PollingWatch`, with the name of the bot.
    if (isAboutPolling(event)) return;
    const line = eventLine(event);
    if (line !== undefined) say(line);
  }

  /** Connections after a change, where they are not what they were. */
  async #showChanges(): Promise<void> {
    const health = await this.#health();
    if (health === undefined) return;
    const lines = connectionLines(health, this.#url).join("\n");
    if (lines !== this.#shown) say(lines);
    this.#shown = lines;
  }

  #onExit(runtime: Runtime): void {
    // While it comes up, whoever waits for that deals with its end.
    if (runtime !== this.#runtime || this.#stopping || !this.#up) return;
    this.#up = false;
    const script = this.#problems.some((one) => one.type === "problem");
    if (script) {
      this.#waitForChange();
      return;
    }
    this.#shortLives = Date.now() - this.#startedAt < SHORT_LIFE_MS ? this.#shortLives + 1 : 0;
    if (this.#shortLives >= SHORT_LIVES) {
      say(paint("red", "The runtime keeps dying. See why with: npm start -- --verbose"));
      void this.stop(1);
      return;
    }
    say(paint("yellow", "The runtime died. Starting it again; unfinished work resumes by itself."));
    this.#queue(() => this.#again());
  }

  #waitForChange(): void {
    this.#waiting = true;
    this.#sources.look();
    say(paint("yellow", "Waiting for a change to try again."));
  }

  /** Starts once more. A bot that is broken waits for the next change. */
  async #again(): Promise<void> {
    if (this.#stopping) return;
    this.#waiting = false;
    this.#sources.stop();
    const before = this.#runtime;
    this.#runtime = undefined;
    await before?.stop();
    if (this.#stopping) return;
    this.#polling.renew();
    const runtime = this.#launch();
    try {
      if ((await this.#comeUp(runtime)) === undefined) return;
      say(paint("green", "Running again."));
      await this.#showChanges();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      say(error.message);
      await runtime.stop();
      this.#waitForChange();
    }
  }

  #watch(): void {
    const { root } = this.#options;
    const changed = (restarts: boolean) => {
      if (!restarts && !this.#waiting) return;
      clearTimeout(this.#settle);
      this.#settle = setTimeout(() => {
        if (this.#stopping || (!restarts && !this.#waiting)) return;
        if (!this.#waiting) say(paint("dim", "The variables have changed. Starting again."));
        this.#queue(() => this.#again());
      }, SETTLE_MS);
    };
    // Wrangler watches the sources itself, as long as it lives; while it does not, they are polled.
    this.#sources.onChange = () => changed(false);
    const others = watch(root, (_event, name) => {
      if (name !== null && VARIABLES.includes(name)) changed(true);
      else if (name === CONFIG) changed(false);
    });
    this.#watchers.push(others);
    // A folder that cannot be watched (too many are) costs the comfort, not the bot.
    for (const watcher of this.#watchers) watcher.on("error", () => watcher.close());
  }

  /** One at a time. */
  #queue(work: () => Promise<void>): void {
    this.#busy = this.#busy.then(work).catch((error: unknown) => {
      say(paint("red", String(error)));
    });
  }

  /** Starts the polling of whatever has its secrets, and tells how it goes, again and again. */
  async #lookAtPolling(): Promise<void> {
    if (this.#up) for (const line of await this.#polling.look()) say(line);
    if (!this.#stopping) this.#look = setTimeout(() => void this.#lookAtPolling(), LOOK_MS);
  }
  #look: NodeJS.Timeout | undefined;
  /** Calls the scheduled handler at each full minute, as the platform would. */
  #tick(): void {
    if (this.#stopping) return;
    this.#timer = setTimeout(
      async () => {
        await this.#scheduled();
        this.#tick();
      },
      MINUTE_MS - (Date.now() % MINUTE_MS),
    );
  }

  async #scheduled(): Promise<void> {
    if (!this.#up || this.#stopping) return;
    const path = `/cdn-cgi/local/scheduled?cron=${encodeURIComponent("* * * * *")}`;
    try {
      const response = await fetch(`http://${this.#target}${path}`, {
        signal: AbortSignal.timeout(30_000),
      });
      const text = (await response.text()).trim();
      if (this.#options.verbose) say(paint("dim", `scheduled: ${response.status} ${text}`));
      if (!response.ok)
        say(
          paint(
            "yellow",
            `The scheduled handler answered ${response.status}: ${text.slice(0, 200)}`,
          ),
        );
    } catch (error) {
      // A reload cuts it off; the next minute comes.
      if (this.#options.verbose) say(paint("dim", `scheduled: ${String(error)}`));
    }
  }
}
