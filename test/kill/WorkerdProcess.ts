/**
 * A Worker with Durable Objects on the real runtime, storage on disk, in a process that a test can
 * kill at any moment and start again on the same storage.
 *
 * It runs the plain `workerd` binary, with no dev server around it that would notice the death and
 * repair it. Nothing here sends the Worker a request, starting included, so what a test sees after
 * {@link WorkerdProcess.restart} happened without traffic.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bundleWorker, type DurableNamespace, renderConfig, workerdBinary } from "./config.ts";
import { accepts, freePort } from "./ports.ts";

export type { DurableNamespace } from "./config.ts";

/** How to serve a Worker. */
export interface WorkerdOptions {
  /** The Worker's module: default export and Durable Object classes. */
  readonly entry: string;
  /**
   * Working folder, made when missing: `objects/` (databases and alarms; outlives every kill) and
   * `build/` (bundle and config, written at each start). The caller removes it.
   */
  readonly directory: string;
  readonly namespaces: readonly DurableNamespace[];
  /** Text bindings. */
  readonly vars?: Readonly<Record<string, string>> | undefined;
  /** Default: a free one, chosen at the first start and kept. */
  readonly port?: number | undefined;
  /** Default 2026-10-20. */
  readonly compatibilityDate?: string | undefined;
  readonly compatibilityFlags?: readonly string[] | undefined;
  /** Whether the bundle is minified, as it is deployed. Default false. */
  readonly production?: boolean | undefined;
  /** How long a start may take. Default 10 s. */
  readonly startTimeoutMs?: number | undefined;
}

/** What a restart may change, as a deploy would. */
export type WorkerdChanges = Partial<Pick<WorkerdOptions, "entry" | "vars">>;

const DEFAULT_DATE = "2026-10-20";
const EXIT_TIMEOUT_MS = 5_000;
const STOP_GRACE_MS = 2_000;
const TAIL_CHARS = 64 * 1024;
const POLL_MS = 5;

/** Folders in use: two runtimes on one folder corrupt it. */
const busy = new Set<string>();
const running = new Set<Life>();
process.on("exit", () => {
  for (const life of running) killGroup(life.pid);
});

/** One life of the process. */
interface Life {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly guard: ChildProcess;
  /** Settles when the process is gone. */
  readonly exited: Promise<void>;
}

/** A killable `workerd`. */
export class WorkerdProcess {
  #options: WorkerdOptions;
  readonly #directory: string;
  #port: number | undefined;
  #bundled: string | undefined;
  #life: Life | undefined;
  #stdout = "";
  #stderr = "";
  readonly #onOutput = new Set<() => void>();

  constructor(options: WorkerdOptions) {
    this.#options = options;
    this.#directory = resolve(options.directory);
    this.#port = options.port;
  }

  /** `http://127.0.0.1:<port>`, the same in every life. Known from the first start on. */
  get url(): string {
    if (this.#port === undefined) throw new Error("not started yet");
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Process id, undefined while it is down. It is also the process group's. */
  get pid(): number | undefined {
    return this.#life?.pid;
  }

  /** End of what this life (or the last one, while down) printed with `console.log`. */
  get stdout(): string {
    return this.#stdout;
  }

  /** End of what it printed with `console.warn` and `console.error`, and the runtime's own log. */
  get stderr(): string {
    return this.#stderr;
  }

  /**
   * Bundles (once per entry), spawns, and resolves when the port accepts connections.
   * @throws when the Worker does not build or does not come up in time; the message has the log.
   */
  async start(): Promise<void> {
    if (this.#life !== undefined || busy.has(this.#directory)) {
      throw new Error(`a runtime already uses ${this.#directory}`);
    }
    busy.add(this.#directory);
    try {
      const config = await this.#prepare();
      await this.#launch(config);
    } catch (error) {
      await this.#end("SIGKILL");
      busy.delete(this.#directory);
      throw error;
    }
  }

  /** SIGKILL, then waits until the process is reaped and its port refuses connections. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
    await this.#portClosed();
  }

  /** SIGTERM, and SIGKILL when that is not enough. Idempotent. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    await this.#portClosed();
  }

  /** {@link kill} if it still runs, then {@link start} on the same storage and port. */
  async restart(changes: WorkerdChanges = {}): Promise<void> {
    await this.kill();
    this.#options = { ...this.#options, ...changes };
    await this.start();
  }

  /**
   * Resolves once this life printed `text` to stdout.
   * @throws after `timeoutMs`, or when the process is down.
   */
  async printed(text: string, timeoutMs = EXIT_TIMEOUT_MS): Promise<void> {
    const life = this.#life;
    if (life === undefined) throw new Error("not running");
    let check = () => {};
    const seen = new Promise<void>((done) => {
      check = () => {
        if (this.#stdout.includes(text)) done();
      };
      this.#onOutput.add(check);
      check();
    });
    const gone = life.exited.then(() => {
      throw new Error(`workerd ended before it printed ${text}\n${this.#stderr}`);
    });
    try {
      await within(timeoutMs, Promise.race([seen, gone]), `no "${text}" on stdout`);
    } finally {
      this.#onOutput.delete(check);
    }
  }

  /**
   * Kills at an exact line: the Worker prints `mark` and then spins (`console.log(mark); for (;;);`),
   * which works even inside `transactionSync`, since the runtime writes the log before it returns.
   */
  async killAt(mark: string, timeoutMs = EXIT_TIMEOUT_MS): Promise<void> {
    await this.printed(mark, timeoutMs);
    await this.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #prepare(): Promise<string> {
    const build = join(this.#directory, "build");
    const objects = join(this.#directory, "objects");
    await Promise.all([mkdir(build, { recursive: true }), mkdir(objects, { recursive: true })]);
    const { entry, namespaces, production } = this.#options;
    if (this.#bundled !== entry) {
      await bundleWorker(entry, join(build, "worker.mjs"), production);
      this.#bundled = entry;
    }
    this.#port ??= await freePort();
    const config = join(build, "config.capnp");
    const rendered = renderConfig({
      module: "worker.mjs",
      objects,
      port: this.#port,
      compatibilityDate: this.#options.compatibilityDate ?? DEFAULT_DATE,
      compatibilityFlags: this.#options.compatibilityFlags ?? [],
      namespaces,
      vars: this.#options.vars ?? {},
    });
    await writeFile(config, rendered);
    return config;
  }

  async #launch(config: string): Promise<void> {
    this.#stdout = "";
    this.#stderr = "";
    this.#onOutput.clear();
    // Detached: its own process group, so that neither a Ctrl-C in the terminal nor anything but
    // this class ends it.
    const child = spawn(workerdBinary(), ["serve", config, "--verbose", "--control-fd=3"], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: {},
    });
    // "close" comes after "exit" and after the last of the output.
    const exited = new Promise<void>((done) => {
      child.once("close", () => done());
      child.once("error", () => done());
    });
    const pid = child.pid;
    if (pid === undefined) throw new Error("could not spawn workerd");
    const life: Life = { pid, child, guard: spawnGuard(pid), exited };
    this.#life = life;
    running.add(life);
    void exited.then(() => {
      running.delete(life);
      life.guard.kill("SIGKILL");
      if (this.#life === life) {
        this.#life = undefined;
        busy.delete(this.#directory);
      }
    });
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stdout = (this.#stdout + chunk).slice(-TAIL_CHARS);
      for (const check of this.#onOutput) check();
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stderr = (this.#stderr + chunk).slice(-TAIL_CHARS);
    });
    // The runtime reports on descriptor 3 once its sockets listen.
    const listening = new Promise<void>((done) => {
      child.stdio[3]?.on("data", (chunk: Buffer) => {
        if (chunk.includes('"listen"')) done();
      });
    });
    const died = exited.then(() => {
      throw new Error(`workerd ended at start:\n${this.#stderr}`);
    });
    const limit = this.#options.startTimeoutMs ?? 10_000;
    await within(limit, Promise.race([listening, died]), "workerd did not listen").catch(
      (error: unknown) => {
        throw new Error(`${String(error)}\n${this.#stderr}`, { cause: error });
      },
    );
    if (!(await accepts(this.#port ?? 0))) throw new Error("workerd listens but does not accept");
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const life = this.#life;
    if (life === undefined) return;
    if (signal === "SIGTERM") {
      life.child.kill("SIGTERM");
      await Promise.race([life.exited, delay(STOP_GRACE_MS, undefined, { ref: false })]);
    }
    if (this.#life === life) killGroup(life.pid);
    await within(EXIT_TIMEOUT_MS, life.exited, "workerd survived SIGKILL");
  }

  async #portClosed(): Promise<void> {
    const port = this.#port;
    if (port === undefined) return;
    const deadline = Date.now() + EXIT_TIMEOUT_MS;
    while (await accepts(port)) {
      if (Date.now() > deadline) throw new Error(`port ${port} is still open`);
      await delay(POLL_MS);
    }
  }
}

/**
 * Waits for the end of this process in any form, SIGKILL included (its end of the pipe closes), and
 * then kills the runtime, which would otherwise go on serving and firing alarms.
 */
function spawnGuard(pid: number): ChildProcess {
  const guard = spawn("/bin/sh", ["-c", `read _; kill -s KILL -- -${pid}`], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: {},
  });
  guard.on("error", () => {});
  guard.unref();
  return guard;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Already gone.
  }
}

async function within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
  const abort = new AbortController();
  const late = delay(ms, undefined, { signal: abort.signal }).then(() => {
    throw new Error(`${what} within ${ms} ms`);
  });
  // The loser of the race must not become an unhandled rejection.
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    abort.abort();
  }
}
