/**
 * Looks at the sources of a broken bot until one has changed. A recursive `fs.watch` would lose a file
 * that an editor replaces by renaming another over it, which is how many save.
 *
 * @module
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** How often they are looked at, in ms. */
const SOURCES_MS = 500;

/** The sources below one folder. */
export class SourcePoll {
  /** Called once for each `look`, when something has changed. */
  onChange: () => void = () => {};
  readonly #folder: string;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Looks from now on, until something changes. */
  look(): void {
    const seen = newestChange(this.#folder);
    const again = () => {
      if (newestChange(this.#folder) !== seen) this.onChange();
      else this.#timer = setTimeout(again, SOURCES_MS);
    };
    this.stop();
    this.#timer = setTimeout(again, SOURCES_MS);
  }

  /** Looks no more. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** What tells one state of a folder from another: how many files, and when the newest changed. */
function newestChange(folder: string): string {
  let count = 0;
  let newest = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    count += 1;
    try {
      newest = Math.max(newest, statSync(join(entry.parentPath, entry.name)).mtimeMs);
    } catch {
      // It went between the list and the look.
    }
  }
  return `${count}/${newest}`;
}
