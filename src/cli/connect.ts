/**
 * `npx holdfast connect telegram`: reads what is given and runs the steps.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  addressOf,
  type ConnectSettings,
  connectDeployed,
  connectLocal,
  type RunningBot,
} from "./connectTelegram.ts";
import { localRoutes } from "./localRoutes.ts";
import { currentRun } from "./lock.ts";
import { STATE, secretsOf } from "./project.ts";
import { deployedSecret, ownVariables } from "./secrets.ts";
import { argumentsError, CommandError, paint, say } from "./terminal.ts";

const HELP = `npx holdfast connect telegram [options]

Without --deployed: for this machine. Checks the token, and that nothing else takes the bot's messages;
then \`npm start\` fetches them by polling, with no public address.

With --deployed: for the Worker that \`npx wrangler deploy\` made. Checks the token, that the Worker has its
secrets and knows the webhook's secret (one harmless update goes through it, and one with a wrong secret has
to be refused), sets the webhook, and reads back what Telegram made of it.

  --deployed         set the webhook of the deployed Worker
  --url URL          where the Worker is, such as https://shop.example (or HOLDFAST_URL)
  --connection ID    which account of the bot, where it has several (default: telegram)
  --token-name NAME  the variable of its token (default: TELEGRAM_BOT_TOKEN)
  --secret-name NAME the variable of its webhook's secret (default: TELEGRAM_WEBHOOK_SECRET)
  --put-secrets      give the Worker both secrets first (runs \`wrangler secret put\`)
  --drop-pending     let Telegram forget the messages that wait
  --remove-webhook   without --deployed: remove the webhook that is set, so that polling works
  --help             this text

Variables come from .dev.vars (or .env) and from the shell. The token is never printed. Without a webhook's
secret one is made and kept in ${join(STATE, "..", "deployed.env")}.
`;

const OPTIONS = {
  deployed: { type: "boolean" },
  url: { type: "string" },
  connection: { type: "string" },
  "token-name": { type: "string" },
  "secret-name": { type: "string" },
  "put-secrets": { type: "boolean" },
  "drop-pending": { type: "boolean" },
  "remove-webhook": { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const root = resolve(import.meta.dirname, "../..");

/** Runs the command. @throws {CommandError} with cause and fix */
export async function connect(args: readonly string[]): Promise<void> {
  const { values, positionals } = readArgs(args);
  if (values.help) return say(HELP);
  const [platform, ...more] = positionals;
  if (platform !== "telegram" || more.length > 0) {
    throw new CommandError(
      platform === undefined ? "connect needs a platform" : `"${positionals.join(" ")}" is unknown`,
      "npx holdfast connect telegram",
    );
  }
  refuseUnused(values);
  const variables = { ...ownVariables(root), ...fromShell(values) };
  const tokenName = values["token-name"] ?? "TELEGRAM_BOT_TOKEN";
  const secretName = values["secret-name"] ?? "TELEGRAM_WEBHOOK_SECRET";
  const settings: ConnectSettings = {
    token: variables[tokenName]?.trim() ?? "",
    tokenName,
    secretName,
    apiBase: variables.TELEGRAM_API_BASE?.trim() || undefined,
    connection: values.connection ?? "telegram",
    dropPending: values["drop-pending"] ?? false,
    removeWebhook: values["remove-webhook"] ?? false,
    fetch,
    say: (line) => say(line),
    done: (line) => say(`${paint("green", "ok")}   ${line}`),
    note: (line) => say(`${paint("yellow", "note")} ${line}`),
  };
  if (!values.deployed) return connectLocal({ ...settings, running: await runningBot() });
  const worker = {
    url: values.url ?? variables.HOLDFAST_URL ?? process.env.HOLDFAST_URL,
    workerName: workerName(),
  };
  // Before a secret is made for nothing.
  addressOf(worker);
  const file = join(secretsOf(join(root, STATE)), "..", "deployed.env");
  const given = variables[secretName]?.trim() || undefined;
  const { secret, made } =
    given === undefined ? deployedSecret(file, secretName) : { secret: given, made: false };
  if (made) settings.note(`made a secret for the webhook; it is kept in ${file}`);
  await connectDeployed({
    ...settings,
    ...worker,
    secret,
    secretFile: given === undefined ? file : undefined,
    ...(values["put-secrets"] ? { putSecret } : {}),
  });
}

function readArgs(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw argumentsError(error, "npx holdfast connect telegram --help");
  }
}

/** What the other way of connecting takes would have no effect. @throws {CommandError} naming it */
function refuseUnused(values: ReturnType<typeof readArgs>["values"]): void {
  const [others, fix] = values.deployed
    ? ([["remove-webhook"], "leave it out: the webhook is what a deployed bot needs"] as const)
    : ([
        ["url", "secret-name", "put-secrets"],
        "add --deployed, or leave it out: a bot on this machine has no webhook",
      ] as const);
  const unused = others.find((name) => values[name] !== undefined);
  if (unused === undefined) return;
  const way = values.deployed ? "a bot on this machine" : "a deployed bot";
  throw new CommandError(`--${unused} is for ${way}`, fix);
}

/** The bot that runs on the usual state. */
async function runningBot(): Promise<RunningBot | undefined> {
  const state = join(root, STATE);
  const run = await currentRun(state);
  if (run === undefined) return undefined;
  const ask = localRoutes(root, secretsOf(state), `http://127.0.0.1:${run.port}`);
  return {
    url: `http://localhost:${run.port}`,
    poll: async (connection) => {
      const path = `polling/${encodeURIComponent(connection)}`;
      try {
        // Stopped first, so that it forgets the trouble that it had. Should this end in between, `npm start`
        // starts it.
        await ask("POST", `${path}/stop`);
        return (await ask("POST", `${path}/start`)) !== undefined;
      } catch {
        return false;
      }
    },
  };
}

/** Variables of another name are taken from the shell as well. */
function fromShell(values: {
  "token-name"?: string;
  "secret-name"?: string;
}): Record<string, string> {
  const names = [values["token-name"], values["secret-name"]];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = name === undefined ? undefined : process.env[name];
      return name === undefined || !value ? [] : [[name, value] as const];
    }),
  );
}

/** The Worker's name, for the message that asks for its address. */
function workerName(): string | undefined {
  const file = join(root, "wrangler.toml");
  if (!existsSync(file)) return undefined;
  return /^name\s*=\s*"([^"]+)"/m.exec(readFileSync(file, "utf8"))?.[1];
}

/** Gives the deployed Worker a secret; the value goes through a pipe, not through the list of processes. */
function putSecret(name: string, value: string): void {
  const wrangler = join(root, "node_modules", "wrangler", "bin", "wrangler.js");
  const { status, stderr } = spawnSync(process.execPath, [wrangler, "secret", "put", name], {
    cwd: root,
    input: value,
    encoding: "utf8",
  });
  if (status === 0) return;
  const cause = stderr.replaceAll(value, "…").trim().split("\n").slice(0, 3).join(" ");
  throw new CommandError(
    `wrangler could not put the secret ${name}: ${cause}`,
    `log in with \`npx wrangler login\`, deploy once, or run \`npx wrangler secret put ${name}\` yourself`,
  );
}
