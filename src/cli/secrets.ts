/**
 * What a bot needs of secrets on a developer's machine: made once, kept beside the state, never
 * overwritten. Whatever the developer has set in `.dev.vars` counts more.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";

/** Local values by name, and how one is made. */
const LOCAL: Readonly<Record<string, () => string>> = {
  HOLDFAST_LOCAL: () => "1",
  HOLDFAST_ADMIN_TOKEN: () => randomBytes(24).toString("base64url"),
  HOLDFAST_SEAL_KEY: () => randomBytes(32).toString("base64"),
};

const HEADER = `# Made by \`npm start\` for this machine; never committed, never deployed.
# To use another value, set the same name in .dev.vars.
`;

/** Readable by the owner only. */
const PRIVATE = { mode: 0o600 } as const;

/** Makes the local secrets that a file lacks. Returns the names that were made. */
export function ensureSecrets(file: string): string[] {
  const text = existsSync(file) ? readFileSync(file, "utf8") : HEADER;
  const known = parseEnv(text);
  const missing = Object.keys(LOCAL).filter((name) => known[name] === undefined);
  if (missing.length === 0) return [];
  mkdirSync(dirname(file), { recursive: true });
  const lines = missing.map((name) => `${name}=${LOCAL[name]?.()}\n`);
  const start = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  writeFileSync(file, start + lines.join(""), PRIVATE);
  return missing;
}

/** The environment files of one run, least important first. */
export interface EnvFiles {
  files: string[];
  /** Removes what was made for this run. */
  remove(): void;
}

/**
 * The files that the Worker's variables come from: the local secrets, then the developer's `.dev.vars`,
 * or `.env` and `.env.local` where there is none.
 *
 * Wrangler reads `.dev.vars` as it is, but expands `$NAME` in files that it is told to read. So that a
 * secret with a dollar sign arrives whole, it is given a copy in which the signs are escaped.
 *
 * @param copy where that copy goes while the bot runs
 */
export function envFiles(root: string, secrets: string, copy: string): EnvFiles {
  const own = join(root, ".dev.vars");
  if (!existsSync(own)) {
    const others = [".env", ".env.local"].map((name) => join(root, name)).filter(existsSync);
    return { files: [secrets, ...others], remove() {} };
  }
  const lines = Object.entries(parseEnv(readFileSync(own, "utf8")));
  writeFileSync(
    copy,
    lines.map(([name, value]) => `${name}=${quote(value ?? "")}\n`).join(""),
    PRIVATE,
  );
  return { files: [secrets, copy], remove: () => rmSync(copy, { force: true }) };
}

/** A value as a line of an environment file that comes out unchanged. */
function quote(value: string): string {
  const escaped = value.replaceAll("$", "\\$");
  const mark = ["'", "`", '"'].find((one) => !escaped.includes(one)) ?? "'";
  return `${mark}${escaped}${mark}`;
}
