/**
 * Which bots were polled on a state folder: when the bot's `id` changes, its old connection would go on
 * fetching beside the new one, also after a restart. The note lies beside the folder.
 *
 * @module
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";

/** Where the ids are kept. */
export interface PolledBots {
  read(): string[];
  write(ids: readonly string[]): void;
}

/** Kept in a file beside the state. A note that cannot be read is none. */
export function polledBots(state: string): PolledBots {
  return {
    read() {
      try {
        const ids: unknown = JSON.parse(readFileSync(fileOf(state), "utf8"));
        return Array.isArray(ids) ? ids.map(String) : [];
      } catch {
        return [];
      }
    },
    write: (ids) => writeFileSync(fileOf(state), `${JSON.stringify(ids)}\n`),
  };
}

/** Forgets them, with the state. */
export function removePolledBots(state: string): void {
  rmSync(fileOf(state), { force: true });
}

function fileOf(state: string): string {
  return `${state}.polled.json`;
}
