/**
 * `npm run telegram:simulated`: a Telegram without an account, on this machine only. Lines that are typed
 * are a person's messages to the bot; what the bot says is printed.
 *
 * @module
 */
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { listen } from "../testing/platforms/serve.ts";
import { type ScreenMessage, SimTelegram } from "../testing/platforms/telegram.ts";
import { isFree } from "./ports.ts";
import { argumentsError, CommandError, command, paint, say } from "./terminal.ts";

const USUAL_PORT = 8_081;
const LOCAL_HOST = "127.0.0.1";
/** A running bot fetches at once; after this long, in ms, somebody may have forgotten to start it. */
const UNFETCHED_MS = 5_000;

/** Of its own: where a bot stopped to fetch belongs to one Telegram, and is kept with the state. */
const START = "npm start -- --state .holdfast/simulated";

const HELP = `npm run telegram:simulated -- [options]

Serves a simulated Telegram on this machine, and prints the two lines that make a bot use it. Each line that
you type is a message to the bot; [text] presses its newest button with that text. Ctrl-C ends it.

  --port N       listen there (default: ${USUAL_PORT})
  --help         this text
`;

function readPort(): number | undefined {
  let values: { port?: string; help?: boolean };
  try {
    ({ values } = parseArgs({
      options: { port: { type: "string" }, help: { type: "boolean", short: "h" } },
    }));
  } catch (error) {
    throw argumentsError(error, "npm run telegram:simulated -- --help");
  }
  if (values.help) return undefined;
  const port = Number(values.port ?? USUAL_PORT);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new CommandError(
    `--port is "${values.port}", but must be a whole number from 1 to 65535`,
    `npm run telegram:simulated -- --port ${USUAL_PORT + 1}`,
  );
}

/** One person's chat with the bot. */
class Talk {
  readonly sim = new SimTelegram();
  /**
   * Of this run alone, and larger than in earlier ones: the bot remembers the updates and chats that it
   * has seen, and where it stopped to fetch.
   */
  readonly #chat = Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / 1_000);
  #updateId = this.#chat;
  readonly #shown = new Map<string, string>();
  #answers = 0;

  /** Answers the bot, and prints what that changed. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const response = await this.sim.fetch(request);
    this.#show();
    return response;
  };

  /** What the person typed. */
  type(line: string): void {
    const text = line.trim();
    if (text === "") return;
    const press = /^\[(.+)\]$/.exec(text)?.[1];
    if (press === undefined) this.#happens({ chatId: this.#chat, text });
    else this.#press(press);
  }

  #press(text: string): void {
    const buttons = this.#said().flatMap((one) =>
      (one.buttons ?? []).flat().map((button) => ({ ...button, messageId: one.messageId })),
    );
    const found = buttons.findLast((button) => button.text === text);
    if (found?.data !== undefined)
      this.#happens({ chatId: this.#chat, messageId: found.messageId, data: found.data });
    else say(paint("yellow", `The bot shows no button [${text}] to press.`));
  }

  #happens(init: Happening): void {
    this.#updateId += 1;
    const updateId = this.#updateId;
    const update =
      "data" in init
        ? this.sim.callbackUpdate({ ...init, updateId })
        : this.sim.messageUpdate({ ...init, updateId });
    this.sim.enqueue(update);
    setTimeout(() => {
      if (!this.sim.pending.includes(update)) return;
      say(
        paint("yellow", "Nobody has fetched that yet. Is `npm start` running, with the two lines?"),
      );
    }, UNFETCHED_MS).unref();
  }

  #said(): ScreenMessage[] {
    return this.sim.screen(this.#chat).filter((one) => one.from === "bot");
  }

  #show(): void {
    const said = this.#said();
    for (const one of said) {
      const text = textOf(one);
      const before = this.#shown.get(one.messageId);
      if (before === text) continue;
      this.#shown.set(one.messageId, text);
      say(`${paint("cyan", before === undefined ? "bot:" : "bot, edited:")} ${text}`);
    }
    for (const [id, text] of this.#shown) {
      if (said.some((one) => one.messageId === id)) continue;
      this.#shown.delete(id);
      say(`${paint("cyan", "bot, deleted:")} ${text}`);
    }
    for (const { text } of this.sim.pressAnswers.slice(this.#answers)) {
      if (text !== undefined) say(`${paint("cyan", "bot, over the chat:")} ${text}`);
    }
    this.#answers = this.sim.pressAnswers.length;
  }
}

/** What the person does. */
type Happening =
  | { chatId: number; text: string }
  | { chatId: number; messageId: string; data: string };

function textOf({ text, media, buttons = [] }: ScreenMessage): string {
  const shown = buttons.flat().map((button) => `[${button.text}]`);
  return [media === undefined ? "" : `(${media})`, text, ...shown]
    .filter((part) => part !== "")
    .join(" ");
}

async function run(): Promise<void> {
  const port = readPort();
  if (port === undefined) return say(HELP);
  if (!(await isFree(port, LOCAL_HOST))) {
    throw new CommandError(
      `port ${port} is taken on ${LOCAL_HOST}`,
      `stop what uses it, or choose another: npm run telegram:simulated -- --port ${port + 1}`,
    );
  }
  const talk = new Talk();
  const server = await listen(talk.fetch, port);
  say(`A simulated Telegram is on ${server.url}. For a bot that uses it, put this into .dev.vars:

TELEGRAM_BOT_TOKEN=${talk.sim.token}
TELEGRAM_API_BASE=${server.url}

Then, in another terminal: ${START}

Now type here: each line is a message to the bot, [text] presses a button. Ctrl-C ends it.
`);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => talk.type(line));
  const stop = () => {
    lines.close();
    void server.close();
  };
  // Lines from a pipe end, and their answers are still to come.
  if (process.stdin.isTTY) lines.once("close", () => void server.close());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, stop);
}

await command(run);
