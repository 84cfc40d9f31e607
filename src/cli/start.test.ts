/** `npm start` for real: the runtime on a free port, storage in a folder of the test's own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { listen } from "../testing/platforms/serve.ts";
import { SimTelegram } from "../testing/platforms/telegram.ts";
import { accepts, freePortFrom } from "./ports.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A folder that is gone after the test. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-start-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

async function freePort(): Promise<number> {
  const port = await freePortFrom(20_000 + Math.floor(Math.random() * 10_000), "127.0.0.1");
  if (port === undefined) throw new Error("no free port");
  return port;
}

class Command {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  output = "";

  constructor(script: string, args: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.output += chunk;
      });
    }
    this.exited = new Promise((done) => {
      this.child.once("close", (code) => done(code));
    });
    cleanups.push(() => this.child.kill("SIGKILL"));
  }

  async prints(text: string): Promise<void> {
    const deadline = Date.now() + 15_000;
    while (!this.output.includes(text)) {
      if (Date.now() > deadline || this.child.exitCode !== null) {
        throw new Error(`"${text}" was not printed:\n${this.output}`);
      }
      await delay(20);
    }
  }
}

async function closes(port: number): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (await accepts(port)) {
    if (Date.now() > deadline) throw new Error(`port ${port} is still open`);
    await delay(20);
  }
}

describe("npm start", { timeout: 20_000 }, () => {
  it("runs the bot, says where everything is, and leaves nothing behind", async () => {
    const home = folder();
    const state = join(home, "state");
    const port = await freePort();
    const start = new Command("start.ts", [`--port=${port}`, `--state=${state}`]);
    await start.prints("Ctrl-C");
    expect(start.output).toContain(`http://localhost:${port}/chat`);
    expect(start.output).toContain("/webhooks/telegram");
    expect(start.output).toContain("TELEGRAM_BOT_TOKEN");

    const health = await fetch(`http://127.0.0.1:${port}/health`);
    expect(health.status).toBe(200);
    expect(await health.json()).toMatchObject({ bot: "pizza" });
    const page = await fetch(`http://127.0.0.1:${port}/chat`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toContain("text/html");

    const secrets = join(home, "secrets.env");
    expect(readFileSync(secrets, "utf8")).toMatch(/^HOLDFAST_ADMIN_TOKEN=\S{20,}$/m);
    expect(statSync(secrets).mode & 0o077).toBe(0);

    const second = new Command("start.ts", [`--state=${state}`]);
    expect(await second.exited).toBe(1);
    expect(second.output).toContain("in use");
    const early = new Command("reset.ts", [`--state=${state}`]);
    expect(await early.exited).toBe(1);
    expect(existsSync(state)).toBe(true);

    start.child.kill("SIGTERM");
    expect(await start.exited).toBe(0);
    await closes(port);

    const reset = new Command("reset.ts", [`--state=${state}`]);
    expect(await reset.exited).toBe(0);
    expect(reset.output).toContain("Removing");
    expect(existsSync(state)).toBe(false);
    expect(existsSync(secrets)).toBe(true);
  });

  it("takes the runtime along when it is killed, and starts again on the same state", async () => {
    const state = join(folder(), "state");
    const port = await freePort();
    const first = new Command("start.ts", [`--port=${port}`, `--state=${state}`]);
    await first.prints("Ctrl-C");
    first.child.kill("SIGKILL");
    await first.exited;
    const second = new Command("start.ts", [`--port=${port}`, `--state=${state}`]);
    await second.prints("Ctrl-C");
    second.child.kill("SIGINT");
    expect(await second.exited).toBe(0);
    await closes(port);
  });

  it("with a token, fetches Telegram's messages and answers them, with no public address", async () => {
    const sim = new SimTelegram();
    const platform = await listen(sim.fetch);
    cleanups.push(() => void platform.close());
    const args = [`--port=${await freePort()}`, `--state=${join(folder(), "state")}`];
    const start = new Command("start.ts", args, {
      TELEGRAM_BOT_TOKEN: sim.token,
      TELEGRAM_API_BASE: platform.url,
    });
    await start.prints("https://t.me/sim_bot");
    sim.enqueue(sim.messageUpdate({ chatId: 5, text: "hello" }));
    const deadline = Date.now() + 10_000;
    while (sim.sent.length === 0 && Date.now() < deadline) await delay(20);
    expect(sim.sent.map((one) => [one.chatId, one.text])).toEqual([["5", "You said: hello"]]);
    expect(start.output).not.toContain(sim.token);
    start.child.kill("SIGTERM");
    expect(await start.exited).toBe(0);
  });

  it("polls at once with a token that was corrected, without the wait after the wrong one", async () => {
    const sim = new SimTelegram();
    const platform = await listen(sim.fetch);
    cleanups.push(() => void platform.close());
    const args = [`--port=${await freePort()}`, `--state=${join(folder(), "state")}`];
    for (const [token, words] of [
      ["77:wrong", "Telegram does not know the token"],
      // Within the time that `prints` waits, which is less than the bot's own.
      [sim.token, "polling as @sim_bot"],
    ] as const) {
      const env = { TELEGRAM_BOT_TOKEN: token, TELEGRAM_API_BASE: platform.url };
      const start = new Command("start.ts", args, env);
      await start.prints(words);
      start.child.kill("SIGTERM");
      await start.exited;
    }
  }, 40_000);

  it("says where a webhook takes the messages to, and leaves it alone", async () => {
    const sim = new SimTelegram();
    const platform = await listen(sim.fetch);
    cleanups.push(() => void platform.close());
    const hook = "https://shop.example/hidden";
    await sim.fetch(new Request(`https://x/bot${sim.token}/setWebhook?url=${hook}`));
    const args = [`--port=${await freePort()}`, `--state=${join(folder(), "state")}`];
    const start = new Command("start.ts", args, {
      TELEGRAM_BOT_TOKEN: sim.token,
      TELEGRAM_API_BASE: platform.url,
    });
    await start.prints("go to a webhook on shop.example");
    expect(start.output).toContain("--remove-webhook");
    expect(start.output).not.toContain("hidden");
    expect(sim.webhook.url).toBe(hook);
    start.child.kill("SIGTERM");
    await start.exited;
  });

  it("says what to do when the port is taken", async () => {
    const port = await freePort();
    const other = createServer().listen(port, "127.0.0.1");
    cleanups.push(() => other.close());
    const start = new Command("start.ts", [`--port=${port}`, `--state=${join(folder(), "state")}`]);
    expect(await start.exited).toBe(1);
    expect(start.output).toContain(`port ${port} is taken`);
    expect(start.output).toContain("--port");
  });
});
