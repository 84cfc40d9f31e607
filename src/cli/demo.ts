/**
 * `npm run demo`: messages flow through a bot on the real runtime, which is killed again and again, and a
 * table shows what became of each.
 *
 * @module
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../testing/random.ts";
import { type Play, play, untilQuiet } from "./demoPlay.ts";
import { DemoStage } from "./demoStage.ts";
import { PLAIN_MS, screenOn, TERMINAL_MS, type View } from "./demoTable.ts";
import { requireSetup } from "./project.ts";
import { argumentsError, CommandError, command, paint, say } from "./terminal.ts";

const HELP = `npm run demo -- [options]

Users write to a bot on the real runtime, through a simulated Telegram that delivers again until it is
told that a message arrived. The runtime is killed (SIGKILL) again and again and started on the same
storage. At the end every message is checked: exit code 1 if one was lost, or answered twice without an
announcement. Needs no account and no network.

  --seconds N    how long users write (default: 30)
  --kills N      how often the runtime is killed meanwhile (default: 10)
  --chats N      how many users, each in a chat of their own (default: 20)
  --seed N       decides who writes when and when the kills come (default: another each time)
  --help         this text
`;

const root = resolve(import.meta.dirname, "../..");

/** A whole number in a range. @throws {CommandError} */
function whole(name: string, text: string | undefined, fallback: number, most: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  const least = name === "kills" || name === "seed" ? 0 : 1;
  if (text.trim() !== "" && Number.isInteger(value) && value >= least && value <= most)
    return value;
  throw new CommandError(
    `--${name} is "${text}", but must be a whole number from ${least} to ${most}`,
    "npm run demo -- --help",
  );
}

function readOptions(): Play | undefined {
  let values: Partial<Record<keyof Play, string>> & { help?: boolean };
  try {
    ({ values } = parseArgs({
      options: {
        seconds: { type: "string" },
        kills: { type: "string" },
        chats: { type: "string" },
        seed: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    throw argumentsError(error, "npm run demo -- --help");
  }
  if (values.help) return undefined;
  const seconds = whole("seconds", values.seconds, 30, 3_600);
  return {
    seconds,
    // A kill and a start take about half a second.
    kills: whole("kills", values.kills, Math.min(10, seconds), seconds * 2),
    chats: whole("chats", values.chats, 20, 500),
    seed: whole("seed", values.seed, Math.floor(Math.random() * 1_000_000), 1_000_000),
  };
}

/** Plays it and shows it. Resolves to whether nothing was lost or doubled. */
async function demo(plan: Play, signal: AbortSignal): Promise<boolean> {
  await using stage = new DemoStage(seededRandom(plan.seed + 1), signal);
  await stage.open();
  const startedAt = Date.now();
  const screen = screenOn(process.stdout);
  let phase = "users write, the runtime is killed";
  const show = () => screen.show(viewOf(stage, plan, startedAt, phase));
  const timer = setInterval(show, process.stdout.isTTY ? TERMINAL_MS : PLAIN_MS);
  try {
    await play(stage, plan, signal);
    phase = "nobody writes; waiting for what is left";
    await untilQuiet(stage, signal);
    stage.ledger.finish();
    phase = "done";
  } catch (error) {
    if (!signal.aborted) throw error;
    phase = "stopped";
  } finally {
    clearInterval(timer);
    show();
  }
  if (signal.aborted) return false;
  return conclude(stage);
}

function viewOf(stage: DemoStage, plan: Play, startedAt: number, phase: string): View {
  return {
    totals: stage.ledger.totals(),
    kills: stage.kills,
    killsPlanned: plan.kills,
    upMs: stage.upMs,
    elapsedMs: Date.now() - startedAt,
    phase,
  };
}

/** Prints the verdict, and each message that is not as it must be. */
function conclude(stage: DemoStage): boolean {
  const { ledger } = stage;
  const totals = ledger.totals();
  const differences = ledger.differences();
  say();
  say(
    `${totals.sent} messages, ${stage.kills} kills, ${stage.hit} sends under way when they came: ` +
      `${totals.lost} lost, ${totals.doubled} doubled, ${totals.announced} announced.`,
  );
  if (totals.announced > 0) {
    say(
      `Announced: Telegram cannot be asked whether a send that a kill cut off arrived, so by default it is not ` +
        `repeated but announced (onAmbiguous); of ${totals.announced}, ${totals.announced - totals.held} had arrived and ` +
        `${totals.held} ${totals.held === 1 ? "is" : "are"} held back${totals.repeated > 0 ? `, ${totals.repeated} came twice` : ""}.`,
    );
  }
  for (const line of differences) say(paint("red", line));
  const fine = differences.length === 0;
  say(
    fine
      ? paint(
          "green",
          "Checked message by message: every one answered once or announced, in order, counted once.",
        )
      : paint("red", `${differences.length} messages are not as they must be.`),
  );
  return fine;
}

async function run(): Promise<void> {
  const plan = readOptions();
  if (plan === undefined) {
    say(HELP);
    return;
  }
  requireSetup(root);
  const stop = new AbortController();
  let interrupted = false;
  // Whoever read the output has gone, as in `npm run demo | head`.
  process.stdout.on("error", () => stop.abort());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      // Whoever asks twice does not want to wait; the runtime and its storage go with this process.
      if (interrupted) process.exit(130);
      interrupted = true;
      stop.abort();
    });
  }
  say(
    // A line of its own: one that wraps is copied without its end.
    `${plan.chats} chats, ${plan.seconds} s, ${plan.kills} kills; the same again:\n` +
      `npm run demo -- --seconds ${plan.seconds} --kills ${plan.kills} --chats ${plan.chats} --seed ${plan.seed}`,
  );
  const fine = await demo(plan, stop.signal);
  process.exitCode = interrupted ? 130 : fine ? 0 : 1;
}

await command(run);
