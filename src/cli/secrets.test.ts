import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureSecrets, envFiles, localVariables, ownVariables } from "./secrets.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "holdfast-secrets-"));
});
afterEach(() => rmSync(home, { recursive: true }));

test("local secrets are made once and never overwritten", () => {
  const file = join(home, "made", "secrets.env");
  expect(ensureSecrets(file)).toEqual([
    "HOLDFAST_LOCAL",
    "HOLDFAST_ADMIN_TOKEN",
    "HOLDFAST_SEAL_KEY",
    "TELEGRAM_WEBHOOK_SECRET",
  ]);
  const made = readFileSync(file, "utf8");
  expect(ensureSecrets(file)).toEqual([]);
  expect(readFileSync(file, "utf8")).toBe(made);
});

test("what is missing is added to what a developer wrote", () => {
  const file = join(home, "secrets.env");
  writeFileSync(file, "HOLDFAST_ADMIN_TOKEN=mine");
  expect(ensureSecrets(file)).toEqual([
    "HOLDFAST_LOCAL",
    "HOLDFAST_SEAL_KEY",
    "TELEGRAM_WEBHOOK_SECRET",
  ]);
  expect(readFileSync(file, "utf8")).toMatch(
    /^HOLDFAST_ADMIN_TOKEN=mine\nHOLDFAST_LOCAL=1\nHOLDFAST_SEAL_KEY=\S+\nTELEGRAM_WEBHOOK_SECRET=\S+\n$/,
  );
});

test("the developer's own variables come last, whole, and leave no copy", () => {
  const secrets = join(home, "secrets.env");
  const copy = join(home, "copy.env");
  expect(envFiles(home, secrets, copy, {}).files).toEqual([secrets]);
  writeFileSync(join(home, ".env"), "A=1");
  expect(envFiles(home, secrets, copy, {}).files).toEqual([secrets, join(home, ".env")]);
  writeFileSync(join(home, ".dev.vars"), `TOKEN=a$b\nQUOTED="it's # $HOME"\n`);
  const env = envFiles(home, secrets, copy, {});
  expect(env.files).toEqual([secrets, copy]);
  const lines = readFileSync(copy, "utf8").trimEnd().split("\n");
  expect(lines.sort()).toEqual(["QUOTED=`it's # \\$HOME`", "TOKEN='a\\$b'"]);
  env.remove();
  expect(existsSync(copy)).toBe(false);
});

test("what the shell has of the platforms' variables counts most, and nothing else of it", () => {
  const secrets = join(home, "secrets.env");
  const copy = join(home, "copy.env");
  const shell = { TELEGRAM_BOT_TOKEN: "7:shell", HOME: "/nowhere", TELEGRAM_API_BASE: "" };
  const env = envFiles(home, secrets, copy, shell);
  expect(env.files).toEqual([secrets, copy]);
  expect(readFileSync(copy, "utf8")).toBe("TELEGRAM_BOT_TOKEN='7:shell'\n");
  writeFileSync(join(home, ".dev.vars"), "TELEGRAM_BOT_TOKEN=7:file\nOTHER=1\n");
  expect(ownVariables(home, shell)).toEqual({ TELEGRAM_BOT_TOKEN: "7:shell", OTHER: "1" });
  expect(ownVariables(home, {})).toMatchObject({ TELEGRAM_BOT_TOKEN: "7:file" });
  writeFileSync(secrets, "HOLDFAST_ADMIN_TOKEN=made\nOTHER=0\n");
  expect(localVariables(home, secrets)).toMatchObject({ HOLDFAST_ADMIN_TOKEN: "made", OTHER: "1" });
});
