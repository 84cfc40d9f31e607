/**
 * Polling on this machine: has each connection polled that has its secrets, has nobody else of this
 * machine poll beside it, and says how it goes when that changes.
 *
 * @module
 */
import type { Ask } from "./localRoutes.ts";
import type { OutputEvent } from "./output.ts";
import type { PolledBots } from "./polledBots.ts";
import { paint } from "./terminal.ts";

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

/** What the Worker answers. */
interface Polling {
  bot: string;
  connections: Polled[];
}

/** The polling of one running bot. */
export class PollingWatch {
  readonly #ask: Ask;
  readonly #polled: PolledBots;
  #shown = new Map<string, string>();
  /** Connections that began anew since the variables were read. */
  #begun = new Set<string>();

  constructor(ask: Ask, polled: PolledBots) {
    this.#ask = ask;
    this.#polled = polled;
  }

  /**
   * The variables may be others now: everything is polled anew, without what an earlier token left (its
   * name, its trouble, the wait after it).
   */
  renew(): void {
    // Others, not emptied ones: a look that is under way still fills the old ones.
    this.#begun = new Set();
    this.#shown = new Map();
  }

  /** Looks once. Resolves to what is new, as lines; never rejects. */
  async look(): Promise<string[]> {
    try {
      const before = this.#begun;
      const answer = (await this.#ask("GET", "polling")) as Polling | undefined;
      // Renewed meanwhile: this answer may be of a Worker that is gone.
      if (answer === undefined || this.#begun !== before) return [];
      await this.#stopOthers(answer);
      const lines: string[] = [];
      const [begun, shown] = [this.#begun, this.#shown];
      for (const one of answer.connections) {
        // What it says is of before; how it goes now is seen at the next look.
        if (await this.#begin(one, begun)) continue;
        const line = lineOf(one);
        if (line === undefined || shown.get(one.connection) === line) continue;
        shown.set(one.connection, line);
        lines.push(line);
      }
      return lines;
    } catch {
      // The runtime is starting or reloading: the next look comes.
      return [];
    }
  }

  /** Stops the polling of what this bot was called before. */
  async #stopOthers({ bot, connections }: Polling): Promise<void> {
    const known = this.#polled.read();
    const others = known.filter((id) => id !== bot);
    if (others.length === 0 && known.length > 0) return;
    // Before anything is polled: a death from here on leaves a note of both.
    if (!known.includes(bot)) this.#polled.write([...others, bot]);
    for (const id of others)
      for (const one of connections)
        if (
          (await this.#ask("POST", `${pathOf(one)}/stop/${encodeURIComponent(id)}`)) === undefined
        )
          return;
    // The new one may have met the old one, and be waiting for it.
    if (others.length > 0) this.renew();
    this.#polled.write([bot]);
  }

  /** Starts what has its secrets. Resolves to whether it did. */
  async #begin(one: Polled, begun: Set<string>): Promise<boolean> {
    if (!one.ready || (one.status.on && begun.has(one.connection))) return false;
    if (one.status.on) await this.#ask("POST", `${pathOf(one)}/stop`);
    await this.#ask("POST", `${pathOf(one)}/start`);
    begun.add(one.connection);
    return true;
  }
}

function pathOf({ connection }: Polled): string {
  return `polling/${encodeURIComponent(connection)}`;
}

/** How a connection's polling goes; `undefined` while nothing is known. */
function lineOf({ connection, channel, ready, status }: Polled): string | undefined {
  if (!ready || !status.on) return undefined;
  const name = connection === channel ? titled(channel) : `${titled(channel)} (${connection})`;
  if (status.error !== undefined)
    return `${name}: ${paint("yellow", "no messages come in.")} ${titled(status.error.message.replace(/\.+$/, ""))}. It is tried again by itself.`;
  if (status.account === undefined) return undefined;
  const { name: bot, url } = status.account;
  const talk = url === undefined ? "" : ` Talk to it: ${paint("cyan", url)}`;
  return `${name}: ${paint("green", `polling as ${bot}.`)}${talk}`;
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
