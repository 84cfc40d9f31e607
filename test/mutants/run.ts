/**
 * `npm run test:mutants`: runs the engine's tests against each mutant, in a copy of the project, and
 * says which tests caught it. Fails when one survives.
 */
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { MUTANTS, type Mutant } from "./mutants.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const COPIED = [
  "src",
  "test",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
  "wrangler.toml",
];
/** One mutant's tests may take this long; a mutant that hangs them is caught, too. */
const LIMIT_MS = 120_000;
/** The quick ones first: most mutants do not live to see the others. */
const STAGES = [
  ["test/engine", "src/outbox", "src/turns", "src/journal"],
  ["test/sim", "test/matrix"],
];

interface Outcome {
  caught: boolean;
  by: string[];
}

interface Report {
  testResults: {
    name: string;
    message: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

async function runTests(directory: string, first?: string): Promise<Outcome> {
  for (const suites of first === undefined ? STAGES : [[first], ...STAGES]) {
    const outcome = await runStage(directory, suites);
    if (outcome.caught) return outcome;
  }
  return { caught: false, by: [] };
}

async function runStage(directory: string, suites: readonly string[]): Promise<Outcome> {
  const output = join(directory, "report.json");
  const child = spawn(
    // This very Node: the one that a shebang finds may be too old.
    process.execPath,
    [
      join(ROOT, "node_modules/vitest/vitest.mjs"),
      "run",
      "--project",
      "node",
      "--reporter",
      "json",
      "--bail",
      "3",
      "--outputFile",
      output,
      ...suites,
    ],
    { cwd: directory, stdio: "ignore", detached: true, env: { ...process.env, CI: "true" } },
  );
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, LIMIT_MS);
  const code = await new Promise<number | null>((done) => child.on("exit", done));
  clearTimeout(timer);
  if (code === 0) return { caught: false, by: [] };
  try {
    const report = JSON.parse(await readFile(output, "utf8")) as Report;
    const failed = report.testResults.flatMap((file) =>
      file.assertionResults.filter((test) => test.status === "failed").map((test) => test.fullName),
    );
    // A file that does not load fails without a test of its own.
    const by =
      failed.length > 0 ? failed : report.testResults.map((file) => file.message).filter(Boolean);
    return { caught: true, by };
  } catch {
    return { caught: true, by: [`the tests did not end within ${LIMIT_MS / 1_000} s`] };
  }
}

async function plant(directory: string, mutant: Mutant): Promise<void> {
  const path = join(directory, mutant.file);
  const source = await readFile(path, "utf8");
  const pieces = source.split(mutant.find);
  if (pieces.length !== 2) {
    throw new Error(
      `mutant "${mutant.name}": its text is ${pieces.length - 1} times in ${mutant.file}, not once`,
    );
  }
  await writeFile(path, pieces.join(mutant.replace));
}

async function restore(directory: string, mutant: Mutant): Promise<void> {
  await cp(join(ROOT, mutant.file), join(directory, mutant.file));
}

const only = process.argv[2];
const chosen = MUTANTS.filter((mutant) => only === undefined || mutant.name === only);
if (chosen.length === 0)
  throw new Error(
    `no mutant is called "${only}"; known: ${MUTANTS.map((one) => one.name).join(", ")}`,
  );
const directory = await mkdtemp(join(tmpdir(), "holdfast-mutants-"));
const started = performance.now();
const survivors: string[] = [];
try {
  for (const name of COPIED) await cp(join(ROOT, name), join(directory, name), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"));
  if (only === undefined) {
    const sane = await runTests(directory);
    if (sane.caught)
      throw new Error(`the tests fail without any mutant: ${sane.by.slice(0, 3).join("; ")}`);
  }
  for (const mutant of chosen) {
    await plant(directory, mutant);
    const began = performance.now();
    const { caught, by } = await runTests(directory, mutant.first);
    await restore(directory, mutant);
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    console.log(
      `${caught ? "caught  " : "SURVIVED"}  ${mutant.name} (${seconds} s): ${mutant.breaks}`,
    );
    for (const test of by.slice(0, 3)) console.log(`          by: ${test}`);
    if (!caught) survivors.push(mutant.name);
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
const total = ((performance.now() - started) / 1_000).toFixed(0);
console.log(`${chosen.length - survivors.length} of ${chosen.length} mutants caught in ${total} s`);
if (survivors.length > 0) process.exitCode = 1;
