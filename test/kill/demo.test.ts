/** `npm run demo`, piped to a file: what it prints, how it ends, and that it leaves nothing behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

/** A demo under way. */
interface Running {
  child: ChildProcess;
  /** Everything printed so far. */
  output(): string;
  /** Where it keeps its storage while it runs. */
  scratch: string;
  ended: Promise<number | null>;
}

function start(...options: string[]): Running {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-demo-test-"));
  const child = spawn(process.execPath, ["src/cli/demo.ts", ...options], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: scratch, FORCE_COLOR: undefined },
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      printed += chunk;
    });
  }
  const ended = new Promise<number | null>((done) => child.once("close", done));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(scratch, { recursive: true, force: true });
  });
  return { child, output: () => printed, scratch, ended };
}

test("loses and doubles nothing, in plain lines, and leaves nothing behind", async () => {
  const demo = start("--seconds", "4", "--kills", "3", "--chats", "8", "--seed", "11");
  expect(await demo.ended, demo.output()).toBe(0);
  const output = demo.output();
  const lines = output.split("\n");
  const shown = lines.filter((line) => / sent \d+ .* lost \d+ {2}doubled \d+ /.test(line));
  expect(shown.length).toBeGreaterThanOrEqual(4);
  expect(output).not.toContain("\u001b");
  const [, messages] =
    /^(\d+) messages, 3 kills, .*: 0 lost, 0 doubled, \d+ announced\.$/m.exec(output) ?? [];
  expect(Number(messages), output).toBeGreaterThan(8);
  expect(output).toContain("Checked message by message");
  expect(readdirSync(demo.scratch)).toEqual([]);
}, 15_000);

test("ends when it is interrupted, and leaves nothing behind", async () => {
  const demo = start("--seconds", "30", "--kills", "0", "--chats", "4", "--seed", "12");
  await new Promise<void>((done, reject) => {
    demo.child.stdout?.on("data", () => {
      if (/replied [1-9]/.test(demo.output())) done();
    });
    void demo.ended.then(() => reject(new Error(demo.output())));
  });
  demo.child.kill("SIGINT");
  expect(await demo.ended, demo.output()).toBe(130);
  expect(demo.output()).toContain("stopped");
  expect(readdirSync(demo.scratch)).toEqual([]);
}, 15_000);

test("refuses what it does not understand", async () => {
  const demo = start("--kills", "many");
  expect(await demo.ended).toBe(1);
  expect(demo.output()).toContain('--kills is "many"');
}, 15_000);
