/**
 * Connects a bot to Telegram, step by step: each either holds, or ends the command with a cause and a
 * fix. Nothing is changed at Telegram before everything else was proved.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { isRecord } from "../channels/telegram/call.ts";
import { ALL_UPDATES } from "../channels/telegram/kinds.ts";
import { BotApi } from "./botApi.ts";
import { readHealth } from "./report.ts";
import { CommandError } from "./terminal.ts";

/** What both ways need. */
export interface ConnectSettings {
  /** Empty where it is not set. */
  token: string;
  tokenName: string;
  secretName: string;
  apiBase: string | undefined;
  connection: string;
  dropPending: boolean;
  removeWebhook: boolean;
  /** The bot that runs on this machine, if it does. */
  running?: RunningBot | undefined;
  fetch: typeof fetch;
  say(line: string): void;
  /** A step that holds. */
  done(line: string): void;
  /** Something to know, that is no failure. */
  note(line: string): void;
}

/** A bot that `npm start` runs. */
export interface RunningBot {
  url: string;
  /** Has a connection fetch at once. Resolves to whether it will. */
  poll(connection: string): Promise<boolean>;
}

/** What a deployed Worker needs besides. */
export interface DeployedSettings extends ConnectSettings {
  url: string | undefined;
  /** As `wrangler.toml` names it. */
  workerName: string | undefined;
  secret: string;
  /** Where the secret is kept, if it was made. */
  secretFile: string | undefined;
  /** Gives the Worker a secret; absent where nobody asked for it. @throws {CommandError} */
  putSecret?(name: string, value: string): void;
}

/** What `getWebhookInfo` says, as far as it matters. */
interface WebhookInfo {
  url: string;
  pending: number;
  lastError: string | undefined;
  /** Epoch seconds. */
  lastErrorAt: number;
  allowed: readonly string[] | undefined;
}

/** How long the Worker may take to answer, in ms. */
const ANSWER_MS = 15_000;
const SECRET_HEADER = "x-telegram-bot-api-secret-token";
/** Kinds that come only to bots that name them; Telegram names no kinds where it has its default. */
const UNASKED = ["message_reaction", "message_reaction_count", "chat_member"];
/** Clocks differ: an error that Telegram saw this long before the start belongs to this webhook, in s. */
const SKEW_S = 5;

/** For this machine: everything that polling needs. */
export async function connectLocal(settings: ConnectSettings): Promise<void> {
  const api = await knownBot(settings);
  let info = await webhookInfo(api);
  if (info.url !== "" && settings.removeWebhook) {
    await api.must("deleteWebhook", {});
    settings.done(`removed the webhook on ${hostOf(info.url)}`);
    info = await webhookInfo(api);
  }
  if (info.url !== "") {
    throw new CommandError(
      `this bot's messages go to a webhook on ${hostOf(info.url)}, so they cannot be fetched here`,
      "use another bot for this machine (@BotFather makes one in a minute), or, if that webhook is no longer wanted: npx holdfast connect telegram --remove-webhook",
    );
  }
  if (settings.dropPending) {
    await api.must("deleteWebhook", { drop_pending_updates: true });
    settings.done("Telegram forgot what was waiting");
  } else if (info.pending > 0) settings.note(waiting(info.pending));
  settings.done("no webhook is set: the bot can be polled");
  settings.say(`\n${await next(settings)}`);
}

/** What happens now. */
async function next({ running, connection }: ConnectSettings): Promise<string> {
  if (running === undefined)
    return "Now run `npm start`. It fetches the messages, with no public address.";
  return (await running.poll(connection))
    ? `The bot on ${running.url} fetches the messages now.`
    : `A bot runs on ${running.url}, but did not say that it fetches the messages: see what it prints.`;
}

/** For the deployed Worker: its secrets, its webhook, and one update through it. */
export async function connectDeployed(settings: DeployedSettings): Promise<void> {
  const base = addressOf(settings);
  const api = await knownBot(settings);
  if (settings.putSecret !== undefined) {
    settings.putSecret(settings.tokenName, settings.token);
    settings.putSecret(settings.secretName, settings.secret);
    settings.done(`the Worker was given ${settings.tokenName} and ${settings.secretName}`);
  }
  await checkHealth(settings, base);
  const { connection } = settings;
  const hook = `${base}/webhooks/telegram${connection === "telegram" ? "" : `/${encodeURIComponent(connection)}`}`;
  await checkWebhook(settings, hook);
  await setWebhook(settings, api, hook);
  settings.say("\nTalk to the bot: it answers from the deployed Worker.");
}

/** Checks the token. */
async function knownBot(settings: ConnectSettings): Promise<BotApi> {
  const { token, tokenName } = settings;
  if (token === "") {
    throw new CommandError(
      `${tokenName} is not set`,
      `get a token from @BotFather (https://t.me/BotFather, /newbot), and put ${tokenName}=… into .dev.vars`,
    );
  }
  const api = new BotApi(settings);
  const me = await api.must("getMe", {});
  const username = isRecord(me) ? String(me.username ?? "") : "";
  settings.done(`the token is @${username}'s: https://t.me/${username}`);
  return api;
}

/** The Worker's address, without a slash at its end. @throws {CommandError} where it is none */
export function addressOf({
  url,
  workerName,
}: Pick<DeployedSettings, "url" | "workerName">): string {
  const example = `npx holdfast connect telegram --deployed --url https://${workerName ?? "my-bot"}.my-subdomain.workers.dev`;
  if (url === undefined || url.trim() === "") {
    const named =
      workerName === undefined
        ? ""
        : ` wrangler.toml calls the Worker "${workerName}", but your account's subdomain is not in it.`;
    throw new CommandError(
      `the Worker's public address is not known.${named}`,
      `\`npx wrangler deploy\` prints it; then: ${example}`,
    );
  }
  if (!URL.canParse(url)) {
    throw new CommandError(`"${url}" is no address`, `give it whole, such as: ${example}`);
  }
  const { protocol, origin, pathname } = new URL(url);
  if (protocol !== "https:") {
    throw new CommandError(
      `Telegram delivers over https only, and the address is ${url}`,
      `use the https address of the deployed Worker, such as: ${example}. Without one, leave out --deployed: \`npm start\` polls`,
    );
  }
  if (pathname !== "/") {
    throw new CommandError(
      `the address has a path, ${pathname}, and the Worker's own routes begin at its root`,
      `--url ${origin}`,
    );
  }
  return origin;
}

/** Whether the Worker is there, is this bot, and has its secrets. */
async function checkHealth(settings: DeployedSettings, base: string): Promise<void> {
  const response = await reach(settings, `${base}/health`, { method: "GET" });
  const health = readHealth(await response.json().catch(() => undefined));
  if (health === undefined) {
    throw new CommandError(
      `${base}/health answered ${response.status} and is not a Holdfast Worker`,
      "deploy first (npx wrangler deploy), and give the address that it prints with --url",
    );
  }
  const { connection, tokenName, secretName } = settings;
  const telegram = health.connections.filter((one) => one.channel === "telegram");
  const found = telegram.find((one) => one.connection === connection);
  if (found === undefined) {
    const others = telegram.map((one) => one.connection).join(", ");
    throw new CommandError(
      `the deployed bot "${health.bot}" has no Telegram connection "${connection}"${others === "" ? "" : `, but: ${others}`}`,
      others === ""
        ? "add telegram() to `channels` in src/bot.ts, then npx wrangler deploy"
        : `choose one: --connection ${others.split(", ")[0]}`,
    );
  }
  if (!found.ready) {
    throw new CommandError(
      `the Worker lacks ${(found.missing ?? []).join(", ")}`,
      `${secretCommands(settings, [tokenName, secretName])}\n       or let this command do it: add --put-secrets`,
    );
  }
  settings.done(`${base} is the bot "${health.bot}", and has its secrets`);
}

/** One update that does nothing goes through the webhook, and one with a wrong secret does not. */
async function checkWebhook(settings: DeployedSettings, hook: string): Promise<void> {
  const push = async (secret: string) => {
    // No update of Telegram's has a negative id, and no handler is for this kind.
    const update = { update_id: -Date.now(), holdfast_check: {} };
    const response = await reach(settings, hook, {
      method: "POST",
      headers: { "content-type": "application/json", [SECRET_HEADER]: secret },
      body: JSON.stringify(update),
    });
    return response.status;
  };
  const status = await push(settings.secret);
  if (status === 401) {
    throw new CommandError(
      `the Worker does not accept the webhook's secret: its ${settings.secretName} is another one`,
      `${secretCommands(settings, [settings.secretName])}\n       or let this command do it: add --put-secrets`,
    );
  }
  if (status !== 200) {
    throw new CommandError(
      `the webhook answered ${status} to an update, and 200 is needed`,
      "see why in the Worker's log: npx wrangler tail",
    );
  }
  settings.done("an update went through the webhook and was recorded");
  const wrong = await push(randomBytes(24).toString("base64url"));
  if (wrong !== 401) {
    throw new CommandError(
      `the webhook answered ${wrong} to an update with a wrong secret, and 401 is needed: whoever knows the address could write as anybody`,
      "see that nothing in front of the Worker answers for it, and that it runs this version: npx wrangler deploy",
    );
  }
  settings.done("an update with a wrong secret was refused");
}

/** Sets the webhook and reads back what Telegram made of it. */
async function setWebhook(settings: DeployedSettings, api: BotApi, hook: string): Promise<void> {
  const startedAt = Math.floor(Date.now() / 1_000) - SKEW_S;
  const before = await webhookInfo(api);
  if (before.url !== "" && before.url !== hook)
    settings.note(`the webhook was on ${hostOf(before.url)}; it is replaced`);
  await api.must("setWebhook", {
    url: hook,
    secret_token: settings.secret,
    allowed_updates: [...ALL_UPDATES],
    ...(settings.dropPending ? { drop_pending_updates: true } : {}),
  });
  const info = await webhookInfo(api);
  if (info.url !== hook) {
    throw new CommandError(
      `Telegram has the webhook on ${info.url === "" ? "no address" : hostOf(info.url)}, although ${hostOf(hook)} was set: something else sets it, too`,
      "stop whatever else runs with this token, then try again",
    );
  }
  const missing = ALL_UPDATES.filter((kind) =>
    info.allowed === undefined ? UNASKED.includes(kind) : !info.allowed.includes(kind),
  );
  if (missing.length > 0) {
    // An older server of one's own does not know the newest kinds; everything else comes.
    const known = ["message", "callback_query", "message_reaction", "chat_member"];
    const needed = missing.filter((kind) => known.includes(kind));
    if (needed.length > 0) {
      throw new CommandError(
        `Telegram did not take all kinds of updates: ${needed.join(", ")} will not come`,
        "something else sets the webhook, too: stop it, then try again",
      );
    }
    settings.note(`this server does not know: ${missing.join(", ")}`);
  }
  if (info.lastError !== undefined && info.lastErrorAt >= startedAt) {
    throw new CommandError(
      `the webhook is set, but Telegram could not deliver: ${info.lastError}`,
      "see that the address can be reached from outside (no login or firewall in front), and the Worker's log: npx wrangler tail",
    );
  }
  settings.done(`the webhook is set: ${hook}`);
  if (info.pending > 0) settings.note(waiting(info.pending));
}

async function webhookInfo(api: BotApi): Promise<WebhookInfo> {
  const info = await api.must("getWebhookInfo", {});
  const fields = isRecord(info) ? info : {};
  const { url, pending_update_count: pending, last_error_message: error, allowed_updates } = fields;
  return {
    url: typeof url === "string" ? url : "",
    pending: Number(pending ?? 0),
    lastError: typeof error === "string" && error !== "" ? error : undefined,
    lastErrorAt: Number(fields.last_error_date ?? 0),
    allowed: Array.isArray(allowed_updates) ? allowed_updates.map(String) : undefined,
  };
}

/** @throws {CommandError} where nothing answers */
async function reach(
  settings: DeployedSettings,
  url: string,
  init: RequestInit,
): Promise<Response> {
  try {
    return await settings.fetch(url, {
      ...init,
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const { code, message } = cause as { code?: string; message?: string };
    throw new CommandError(
      `${new URL(url).host} could not be reached: ${whyNot(code, message)}`,
      "see that the address is right and that the Worker is deployed: npx wrangler deploy prints it",
    );
  }
}

function whyNot(code: string | undefined, message: string | undefined): string {
  // OpenSSL's own words help nobody.
  if (code?.startsWith("ERR_SSL_") || message?.includes("SSL routines"))
    return "it does not speak https";
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "there is no such host";
    case "ECONNREFUSED":
      return "nothing listens there";
    default:
      return message ?? "no answer";
  }
}

/** The commands to paste, with nothing secret in them. */
function secretCommands({ secretName, secretFile }: DeployedSettings, names: string[]): string {
  const lines = names.map((name) => {
    const line = `npx wrangler secret put ${name}`;
    if (name !== secretName) return line;
    return secretFile === undefined
      ? `${line}   (the value in your .dev.vars or shell)`
      : `${line}   (the value in ${secretFile})`;
  });
  return lines.join("\n       ");
}

function waiting(count: number): string {
  return `${count === 1 ? "1 message waits" : `${count} messages wait`} and will be delivered now (--drop-pending forgets what waits)`;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "an address that is none";
}
