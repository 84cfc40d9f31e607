/** Where a project keeps things on this machine, and whether it is ready to run. @module */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandError } from "./terminal.ts";

/** The folder of the state, from the project's root. */
export const STATE = ".holdfast/state";

/** The file of the local secrets: beside the state, so that clearing the state keeps them. */
export function secretsOf(state: string): string {
  return join(dirname(state), "secrets.env");
}

/** What has to be in `node_modules`. */
const NEEDED = ["wrangler/bin/wrangler.js", "hono/package.json"];

/** wrangler runs on this or newer. */
const NODE = { major: 22, minor: 18 };

/** @throws {CommandError} when the dependencies are missing, or Node is too old */
export function requireSetup(root: string): void {
  if (NEEDED.some((file) => !existsSync(join(root, "node_modules", file)))) {
    throw new CommandError("the dependencies are not installed", "npm ci");
  }
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < NODE.major || (major === NODE.major && minor < NODE.minor)) {
    throw new CommandError(
      `this is Node ${process.versions.node}, and ${NODE.major}.${NODE.minor} or newer is needed`,
      "npm ci brings one along: use `npm start`, which finds it, rather than `node`",
    );
  }
}
