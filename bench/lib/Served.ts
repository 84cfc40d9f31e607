/**
 * One runtime process of the benchmark, and what the system says of it.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WorkerdProcess } from "../../test/kill/WorkerdProcess.ts";
import type { BotKind } from "../worker/env.ts";
import { postOf, type Wire } from "./http.ts";
import { messageIn } from "./updates.ts";

const SECRET = "bench-webhook-secret";
const TOKEN = "4200:bench-token_of-no-bot";
const CLASSES = { CHAT_ACTOR: "ChatActor", CONNECTION: "Connection", REGISTRY: "Registry" };

/** Which of the two a process is asked for. Both run the same bundle under the same configuration. */
export type Side = "holdfast" | "bare";

const folders = new Set<string>();
// After the runtimes, which end in a listener that was added before.
process.on("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** What is served. */
export interface ServedOptions {
  worker: "plain" | "looked";
  bot: BotKind;
  /** Where the platform listens. */
  apiBase: string;
  /** Default: 60,000, which is Holdfast's own. */
  leaseMs?: number | undefined;
}

/** A started process; leaving its scope ends it and removes its storage. */
export class Served {
  readonly workerd: WorkerdProcess;
  readonly #folder: string;

  private constructor(workerd: WorkerdProcess, folder: string) {
    this.workerd = workerd;
    this.#folder = folder;
  }

  static async start(options: ServedOptions): Promise<Served> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    folders.add(folder);
    const namespaces = Object.entries({ ...CLASSES, BARE: "Bare" });
    const workerd = new WorkerdProcess({
      entry: join(import.meta.dirname, `../worker/${options.worker}.ts`),
      directory: folder,
      production: true,
      namespaces: namespaces.map(([bindingName, className]) => ({
        bindingName,
        className,
        uniqueKey: className,
      })),
      vars: varsOf(options),
    });
    const served = new Served(workerd, folder);
    try {
      await workerd.start();
    } catch (error) {
      await served[Symbol.asyncDispose]();
      throw error;
    }
    return served;
  }

  get port(): number {
    return Number(new URL(this.workerd.url).port);
  }

  /** Resident memory, in bytes. */
  rss(): number {
    const kib = execFileSync("ps", ["-o", "rss=", "-p", String(this.#pid)], { encoding: "utf8" });
    return Number(kib) * 1_024;
  }

  /** Processor time so far, in ms; NaN where the system has no `/proc`. Ticks are 10 ms. */
  cpuMs(): number {
    const file = `/proc/${this.#pid}/stat`;
    if (!existsSync(file)) return Number.NaN;
    // The name in parentheses may hold blanks.
    const fields = readFileSync(file, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  /** Objects in memory: each keeps its database open. NaN where the system has no `/proc`. */
  liveObjects(): number {
    const folder = `/proc/${this.#pid}/fd`;
    if (!existsSync(folder)) return Number.NaN;
    const open = readdirSync(folder).map((fd) => linkOf(join(folder, fd)));
    return new Set(open.filter((file) => /[0-9a-f]{64}\.sqlite$/.test(file))).size;
  }

  /** Asks `/bench/<what>` of the Worker that can be looked into. */
  async ask(what: string, query: Record<string, string | number> = {}): Promise<unknown> {
    const url = new URL(`/bench/${what}`, this.workerd.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.workerd.stop();
    rmSync(this.#folder, { recursive: true, force: true });
    folders.delete(this.#folder);
  }

  get #pid(): number {
    const { pid } = this.workerd;
    if (pid === undefined) throw new Error("the runtime is down");
    return pid;
  }
}

/** The variables of a process. */
export function varsOf(options: ServedOptions): Record<string, string> {
  return {
    BENCH_BOT: options.bot,
    BENCH_LEASE_MS: String(options.leaseMs ?? 60_000),
    TELEGRAM_BOT_TOKEN: TOKEN,
    TELEGRAM_WEBHOOK_SECRET: SECRET,
    TELEGRAM_API_BASE: options.apiBase,
  };
}

/** A request that brings a message of a chat, and the text of the reply to it. */
export function messageTo(path: string, chatId: number): { request: Wire; reply: string } {
  const { json, text } = messageIn(chatId);
  const request = postOf(path, { "x-telegram-bot-api-secret-token": SECRET }, json);
  return { request, reply: `you said: ${text}` };
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    // Closed meanwhile.
    return "";
  }
}
