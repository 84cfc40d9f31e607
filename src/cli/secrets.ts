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
  // No webhook reaches this machine; with it the token alone is enough to poll.
  TELEGRAM_WEBHOOK_SECRET: () => randomBytes(24).toString("base64url"),
};

/** Variables that are taken from the shell, too: `TELEGRAM_BOT_TOKEN=… npm start`. */
const FROM_SHELL = ["TELEGRAM_BOT_TOKEN", "TELEGRAM_WEBHOOK_SECRET", "TELEGRAM_API_BASE"];

type Variables = Record<string, string | undefined>;

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
 * or `.env` and `.env.local` where there is none, then what the shell has.
 *
 * Wrangler reads `.dev.vars` as it is, but expands `$NAME` in files that it is told to read. So that a
 * secret with a dollar sign arrives whole, it is given a copy in which the signs are escaped.
 *
 * @param copy where that copy goes while the bot runs
 */
export function envFiles(
  root: string,
  secrets: string,
  copy: string,
  shell: Variables = process.env,
): EnvFiles {
  const own = join(root, ".dev.vars");
  const others = existsSync(own) ? [] : dotenvFiles(root);
  const copied = { ...(existsSync(own) ? read(own) : {}), ...fromShell(shell) };
  const lines = Object.entries(copied);
  if (!existsSync(own) && lines.length === 0) return { files: [secrets, ...others], remove() {} };
  writeFileSync(
    copy,
    lines.map(([name, value]) => `${name}=${quote(value ?? "")}\n`).join(""),
    PRIVATE,
  );
  return { files: [secrets, ...others, copy], remove: () => rmSync(copy, { force: true }) };
}

/** What a developer has set: `.dev.vars`, or `.env` and `.env.local`, then what the shell has. */
export function ownVariables(root: string, shell: Variables = process.env): Variables {
  const own = join(root, ".dev.vars");
  const files = existsSync(own) ? [own] : dotenvFiles(root);
  return Object.assign({}, ...files.map(read), fromShell(shell)) as Variables;
}

/** What a local run has: the local secrets, and whatever the developer has set above them. */
export function localVariables(root: string, secrets: string): Variables {
  return { ...(existsSync(secrets) ? read(secrets) : {}), ...ownVariables(root) };
}

function dotenvFiles(root: string): string[] {
  return [".env", ".env.local"].map((name) => join(root, name)).filter(existsSync);
}

function read(file: string): Variables {
  return parseEnv(readFileSync(file, "utf8"));
}

function fromShell(shell: Variables): Variables {
  return Object.fromEntries(
    FROM_SHELL.flatMap((name) => (shell[name] ? [[name, shell[name]] as const] : [])),
  );
}

/** A value as a line of an environment file that comes out unchanged. */
function quote(value: string): string {
  const escaped = value.replaceAll("$", "\\$");
  const mark = ["'", "`", '"'].find((one) => !escaped.includes(one)) ?? "'";
  return `${mark}${escaped}${mark}`;
}

/** The secret of a deployed webhook, made and kept in a file of its own where there is none yet. */
export function deployedSecret(file: string, name: string): { secret: string; made: boolean } {
  const known = existsSync(file) ? read(file)[name] : undefined;
  if (known) return { secret: known, made: false };
  const secret = randomBytes(24).toString("base64url");
  mkdirSync(dirname(file), { recursive: true });
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  writeFileSync(file, `${text}${name}=${secret}\n`, PRIVATE);
  return { secret, made: true };
}
