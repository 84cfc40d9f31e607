/** Text for a terminal: colour only where a person looks at one (`NO_COLOR` is respected). @module */
import { styleText } from "node:util";

/** Styles that the command line uses. */
export type Style = "bold" | "dim" | "red" | "yellow" | "green" | "cyan";

/** Text in a style, where standard output is a terminal. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** Prints to standard output. */
export function say(text = ""): void {
  process.stdout.write(`${text}\n`);
}

/** Why a command cannot go on, and what helps. */
export class CommandError extends Error {
  /** What to do about it. */
  readonly fix: string;

  constructor(cause: string, fix: string) {
    super(cause);
    this.name = "CommandError";
    this.fix = fix;
  }
}

/** What `parseArgs` threw, without its advice about arguments that begin with a dash. */
export function argumentsError(error: unknown, fix: string): CommandError {
  const text = error instanceof Error ? error.message : String(error);
  return new CommandError(text.split(". To specify a positional argument")[0] ?? "", fix);
}

/** Runs a command; a {@link CommandError} ends it with a cause, a fix and exit code 1. */
export async function command(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(
      `\n${styleText("red", "error", { stream: process.stderr })}  ${error.message}\n`,
    );
    if (error.fix !== "")
      process.stderr.write(
        `${styleText("bold", "fix", { stream: process.stderr })}    ${error.fix}\n`,
      );
    process.exitCode = 1;
  }
}
