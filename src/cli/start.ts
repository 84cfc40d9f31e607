/**
 * `npm start`: runs the bot on this machine, on the real runtime, with its storage on disk.
 *
 * @module
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { currentRun } from "./lock.ts";
import { freePortFrom, isFree } from "./ports.ts";
import { requireSetup, STATE, secretsOf } from "./project.ts";
import { Session } from "./Session.ts";
import { ensureSecrets } from "./secrets.ts";
import { argumentsError, CommandError, command, say } from "./terminal.ts";

const USUAL_PORT = 8787;
const LOCAL_HOST = "127.0.0.1";

const HELP = `npm start -- [options]

Runs src/bot.ts on this machine: the real runtime, storage on disk, live reload. Needs no account, no
network and no file to edit.

  --port N       listen there (default: ${USUAL_PORT}, or the next free port)
  --host ADDR    listen on this address (default: ${LOCAL_HOST}, this machine only)
  --state DIR    keep storage there (default: ${STATE})
  --verbose      show everything that wrangler prints
  --help         this text
`;

interface Options {
  port: number | undefined;
  host: string;
  state: string;
  verbose: boolean;
}

const root = resolve(import.meta.dirname, "../..");

function readOptions(): Options | undefined {
  let values: { port?: string; host?: string; state?: string; verbose?: boolean; help?: boolean };
  try {
    ({ values } = parseArgs({
      options: {
        port: { type: "string" },
        host: { type: "string" },
        state: { type: "string" },
        verbose: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    throw argumentsError(error, "npm start -- --help");
  }
  if (values.help) return undefined;
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && (!Number.isInteger(port) || port < 1 || port > 65_535)) {
    throw new CommandError(
      `--port is "${values.port}", but must be a whole number from 1 to 65535`,
      "npm start -- --port 8790",
    );
  }
  return {
    port,
    host: values.host === undefined || values.host === "localhost" ? LOCAL_HOST : values.host,
    state: resolve(values.state ?? join(root, STATE)),
    verbose: values.verbose ?? false,
  };
}

async function choosePort({ port, host }: Options): Promise<number> {
  if (port !== undefined) {
    if (await isFree(port, host)) return port;
    throw new CommandError(
      `port ${port} is taken on ${host}`,
      `stop what uses it, or choose another: npm start -- --port ${port + 1}`,
    );
  }
  const free = await freePortFrom(USUAL_PORT, host);
  if (free === undefined) {
    throw new CommandError(
      `no port from ${USUAL_PORT} on is free on ${host}`,
      "choose one: npm start -- --port 9000",
    );
  }
  if (free !== USUAL_PORT) say(`Port ${USUAL_PORT} is taken; using ${free}.`);
  return free;
}

async function start(): Promise<void> {
  const options = readOptions();
  if (options === undefined) {
    say(HELP);
    return;
  }
  requireSetup(root);
  const { state, host, verbose } = options;
  const running = await currentRun(state);
  if (running !== undefined) {
    throw new CommandError(
      `this state is in use by the bot on http://localhost:${running.port} (process ${running.pid})`,
      "stop that one first, or keep another state: npm start -- --state .holdfast/other",
    );
  }
  const port = await choosePort(options);
  const secrets = secretsOf(state);
  const made = ensureSecrets(secrets);
  if (made.length > 0) say(`Made local secrets: ${made.join(", ")}.`);
  if (host !== LOCAL_HOST && host !== "::1") {
    say(`Careful: with --host ${host}, others on the network reach the bot and its local tools.`);
  }
  say("Starting …");
  const session = new Session({
    root,
    state,
    secrets,
    scratch: join(secrets, ".."),
    host,
    port,
    verbose,
  });
  // Whoever read the output has gone, as in `npm start | head`.
  process.stdout.on("error", () => void session.stop(0));
  let asked = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      asked += 1;
      // Whoever asks twice does not want to wait.
      if (asked > 1) session.kill();
      else say("\nStopping …");
      void session.stop(0);
    });
  }
  try {
    await session.start();
  } catch (error) {
    await session.stop(1);
    throw error;
  }
  process.exitCode = await session.ended;
}

await command(start);
