/** The Bot API for the command line: a refusal ends the command with a cause and a fix. @module */
import type { JsonObject } from "../channels/content.ts";
import { call } from "../channels/telegram/call.ts";
import { DEFAULT_API_BASE } from "../channels/telegram/config.ts";
import { CommandError } from "./terminal.ts";

/** What a caller gives. */
export interface BotApiSettings {
  token: string;
  /** The variable that the token comes from. */
  tokenName: string;
  apiBase: string | undefined;
  fetch: typeof fetch;
}

const ANSWER_MS = 15_000;

/** Calls of one bot. The token is in the path of every URL, so no URL is ever shown. */
export class BotApi {
  readonly #settings: BotApiSettings;

  /** @throws {CommandError} where the API's address is none */
  constructor(settings: BotApiSettings) {
    this.#settings = settings;
    if (!URL.canParse(this.#base)) {
      throw new CommandError(
        `TELEGRAM_API_BASE is "${this.#base}", which is no address`,
        `leave it out, or set it whole, such as ${DEFAULT_API_BASE}`,
      );
    }
  }

  /** Calls a method. @throws {CommandError} unless it worked */
  async must(method: string, params: JsonObject): Promise<unknown> {
    const { token, tokenName, fetch } = this.#settings;
    const options = { token, webhookSecret: "", apiBase: this.#base };
    const signal = AbortSignal.timeout(ANSWER_MS);
    const reply = await call({ options, fetch, signal }, method, params);
    if (reply.outcome === "ok") return reply.result;
    if (reply.outcome === "lost") {
      throw new CommandError(
        `Telegram (${new URL(this.#base).host}) could not be reached: ${reply.message}`,
        "see that this machine is on the network, and that TELEGRAM_API_BASE is right if it is set",
      );
    }
    const { status, description, parameters } = reply;
    // Something that does not look like a token is "not found" to Telegram.
    if (status === 401 || status === 404) {
      throw new CommandError(
        `Telegram does not know this token (${status} ${description})`,
        `copy it from @BotFather again into ${tokenName}; a token that was revoked never works again`,
      );
    }
    if (status === 429) {
      throw new CommandError(
        `Telegram asks to wait ${String(parameters.retry_after ?? "a few")} seconds`,
        "wait as long, then try again",
      );
    }
    throw new CommandError(
      `Telegram refused ${method}: ${description} (${status})`,
      hintFor(description),
    );
  }

  get #base(): string {
    return (this.#settings.apiBase ?? DEFAULT_API_BASE).replace(/\/+$/, "");
  }
}

function hintFor(description: string): string {
  if (/resolve host/i.test(description))
    return "the host's name is not known to the world yet: see the address, or wait for the DNS and try again";
  if (/https/i.test(description)) return "give the Worker's https address with --url";
  if (/secret token/i.test(description))
    return "a webhook's secret is 1 to 256 of A-Z, a-z, 0-9, _ and -";
  if (/webhook/i.test(description))
    return "see that the address is right and can be reached from outside";
  return "try again in a minute; if it stays so, the message above is Telegram's own";
}
