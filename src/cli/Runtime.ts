/**
 * The runtime as a child process: `wrangler dev` and everything that it starts, in a process group of
 * their own, which ends with this process in whatever way that ends.
 *
 * @module
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type OutputEvent, OutputReader } from "./output.ts";

/** What to run, and where. */
export interface RuntimeOptions {
  /** The project: where `wrangler.toml` is. */
  root: string;
  port: number;
  /** The address to listen on. */
  host: string;
  /** Where storage is kept. */
  state: string;
  /** Where files of the tool itself go. */
  scratch: string;
  envFiles: readonly string[];
  onEvent(event: OutputEvent): void;
  /** Everything that is printed, as it comes. */
  onRaw?: ((text: string) => void) | undefined;
}

/** How long a polite stop may take, in ms. */
const GRACE_MS = 3_000;

const onWindows = process.platform === "win32";

/** No account, no network, no remarks. */
const ENVIRONMENT = {
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_WRITE_LOGS: "false",
  WRANGLER_NO_SKILLS_UPDATE_PROMPTS: "true",
  X_LOCAL_EXPLORER: "false",
  X_LOCAL_OBSERVABILITY: "false",
} as const;

/** One life of the runtime. */
export class Runtime {
  /** Id of the process, and of its group. */
  readonly pid: number;
  /** Settles when it has ended, with its exit code. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #guard: ChildProcess | undefined;
  #over = false;

  /** Starts it. Whether it comes up is seen at its port. */
  constructor(options: RuntimeOptions) {
    const child = spawn(process.execPath, argumentsOf(options), {
      cwd: options.root,
      // Its own group, so that a Ctrl-C in the terminal reaches `npm start` alone, which then ends it.
      detached: !onWindows,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        ...ENVIRONMENT,
        WRANGLER_REGISTRY_PATH: join(options.scratch, "registry"),
      },
    });
    if (child.pid === undefined) throw new Error("could not start wrangler");
    this.pid = child.pid;
    this.#child = child;
    this.#guard = guard(child.pid);
    const readers = [child.stdout, child.stderr].map((stream) => {
      const reader = new OutputReader(options.onEvent);
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        options.onRaw?.(chunk);
        reader.push(chunk);
      });
      return reader;
    });
    const onExit = () => this.kill();
    process.once("exit", onExit);
    this.exited = new Promise((done) => {
      // "exit", not "close": whoever is left in the group may hold the pipes open.
      child.once("exit", (code) => {
        this.#over = true;
        process.off("exit", onExit);
        for (const reader of readers) reader.end();
        killGroup(this.pid);
        this.#guard?.kill("SIGKILL");
        done(code);
      });
    });
  }

  /** Stops it politely, then for good. Resolves when nothing of it is left. */
  async stop(): Promise<void> {
    if (!this.#over) {
      this.#child.kill("SIGTERM");
      await Promise.race([this.exited, delay(GRACE_MS, undefined, { ref: false })]);
    }
    this.kill();
    await this.exited;
  }

  /** Kills all of it, now. */
  kill(): void {
    if (!this.#over) killGroup(this.pid);
  }
}

function argumentsOf(options: RuntimeOptions): string[] {
  return [
    join(options.root, "node_modules", "wrangler", "bin", "wrangler.js"),
    "dev",
    "--local",
    `--port=${options.port}`,
    `--ip=${options.host}`,
    // A free one.
    "--inspector-port=0",
    `--persist-to=${options.state}`,
    "--show-interactive-dev-session=false",
    // Stack traces are for people.
    "--minify=false",
    ...options.envFiles.map((file) => `--env-file=${file}`),
  ];
}

/**
 * Waits for the end of this process in any form, SIGKILL included (its end of the pipe closes), and
 * then kills the runtime, which would otherwise go on serving. Windows has no groups to kill.
 */
function guard(pid: number): ChildProcess | undefined {
  if (onWindows) return undefined;
  const child = spawn("/bin/sh", ["-c", `read _; kill -s KILL -- -${pid}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: {},
  });
  child.on("error", () => {});
  child.unref();
  return child;
}

function killGroup(pid: number): void {
  if (onWindows) {
    spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore" });
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Already gone.
  }
}
