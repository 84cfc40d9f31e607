/**
 * Polling on this machine: has each connection polled that has its secrets, and says how it goes when
 * that changes.
 *
 * @module
 */
import type { OutputEvent } from "./output.ts";
import { paint } from "./terminal.ts";

/** Asks the Worker's local routes; resolves to nothing where it refused. May throw. */
export type Ask = (method: "GET" | "POST", path: string) => Promise<unknown>;

/** One connection, as the Worker shows it. */
interface Polled {
  connection: string;
  channel: string;
  ready: boolean;
  status: {
    on: boolean;
    account?: { name: string; url?: string };
    error?: { message: string };
  };
}

/** What the Worker logs of polling; whoever watches says it better. */
const LOGGED = ["polling does not work", "polling works again"];

/** Whether an event only repeats what {@link PollingWatch} says. */
export function isAboutPolling(event: OutputEvent): boolean {
  return event.type === "log" && LOGGED.includes(event.message);
}

/** The polling of one running bot. */
export class PollingWatch {
  readonly #ask: Ask;
  readonly #shown = new Map<string, string>();

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Looks once. Resolves to what is new, as lines; never rejects. */
  async look(): Promise<string[]> {
    try {
      const answer = (await this.#ask("GET", "polling")) as { connections?: Polled[] } | undefined;
      const lines: string[] = [];
      for (const one of answer?.connections ?? []) {
        if (one.ready && !one.status.on)
          await this.#ask("POST", `polling/${encodeURIComponent(one.connection)}/start`);
        const line = lineOf(one);
        if (line === undefined || this.#shown.get(one.connection) === line) continue;
        this.#shown.set(one.connection, line);
        lines.push(line);
      }
      return lines;
    } catch {
      // The runtime is starting or reloading: the next look comes.
      return [];
    }
  }
}

/** How a connection's polling goes; `undefined` while nothing is known. */
function lineOf({ connection, channel, ready, status }: Polled): string | undefined {
  if (!ready || !status.on) return undefined;
  const name = connection === channel ? titled(channel) : `${titled(channel)} (${connection})`;
  if (status.error !== undefined)
    return `${name}: ${paint("yellow", "no messages come in.")} ${status.error.message.replace(/\.+$/, "")}. It is tried again by itself.`;
  if (status.account === undefined) return undefined;
  const { name: bot, url } = status.account;
  const talk = url === undefined ? "" : ` Talk to it: ${paint("cyan", url)}`;
  return `${name}: ${paint("green", `polling as ${bot}.`)}${talk}`;
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
