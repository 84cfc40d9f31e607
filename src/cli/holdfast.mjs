#!/usr/bin/env node
// `npx holdfast`, in plain JavaScript that any Node understands: the rest is TypeScript, which an old Node
// refuses with a message that helps nobody. Where this Node is old, the one in node_modules runs it.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const fits = major > 22 || (major === 22 && minor >= 18);
const brought = fileURLToPath(new URL("../../node_modules/node/bin/node", import.meta.url));
const entry = fileURLToPath(new URL("./holdfast.ts", import.meta.url));

if (!fits && !existsSync(brought)) {
  console.error(
    `\nerror  this is Node ${process.versions.node}, and 22.18 or newer is needed\nfix    npm ci, which brings one along\n`,
  );
  process.exitCode = 1;
} else {
  const node = fits ? process.execPath : brought;
  const { status } = spawnSync(node, [entry, ...process.argv.slice(2)], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}
