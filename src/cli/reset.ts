/** `npm run reset`: clears the state that `npm start` keeps. @module */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { currentRun } from "./lock.ts";
import { removePolledBots } from "./polledBots.ts";
import { STATE, secretsOf } from "./project.ts";
import { argumentsError, CommandError, command, say } from "./terminal.ts";

const HELP = `npm run reset -- [options]

Removes what the bot keeps on this machine: chats, their state, what is still to be sent. The local
secrets stay. Refuses while the bot is running.

  --state DIR    the folder to clear (default: ${STATE})
  --help         this text
`;

const root = resolve(import.meta.dirname, "../..");

/** How many files a folder holds, and their bytes. */
function measure(folder: string): { files: number; bytes: number } {
  let files = 0;
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files += 1;
    bytes += statSync(join(entry.parentPath, entry.name)).size;
  }
  return { files, bytes };
}

async function reset(): Promise<void> {
  let values: { state?: string; help?: boolean };
  try {
    ({ values } = parseArgs({
      options: { state: { type: "string" }, help: { type: "boolean", short: "h" } },
    }));
  } catch (error) {
    throw argumentsError(error, "npm run reset -- --help");
  }
  if (values.help) {
    say(HELP);
    return;
  }
  const state = resolve(values.state ?? join(root, STATE));
  const shown = relative(process.cwd(), state) || ".";
  const running = await currentRun(state);
  if (running !== undefined) {
    throw new CommandError(
      `the bot is running on this state: http://localhost:${running.port} (process ${running.pid})`,
      "stop it with Ctrl-C where it runs, then npm run reset",
    );
  }
  if (!existsSync(state)) {
    say(`Nothing to clear: ${shown} does not exist.`);
    return;
  }
  // A slip in --state must not cost anybody a folder.
  if (!readdirSync(state).every((name) => /^v\d+$/.test(name))) {
    throw new CommandError(
      `${shown} holds files that are no state of a bot`,
      "give the folder that `npm start -- --state` was given",
    );
  }
  const { files, bytes } = measure(state);
  say(
    `Removing ${shown}: ${files} files, ${(bytes / 1_024).toFixed(0)} kB of chats and their state.`,
  );
  rmSync(state, { recursive: true });
  removePolledBots(state);
  say(`Cleared. ${relative(process.cwd(), secretsOf(state))} stays.`);
}

await command(reset);
