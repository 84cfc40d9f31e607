/** The play: users who write, a hand that kills, and the wait until all is quiet. @module */
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "../testing/random.ts";
import type { DemoStage } from "./demoStage.ts";

/** What is played. */
export interface Play {
  seconds: number;
  kills: number;
  chats: number;
  seed: number;
}

const FIRST_CHAT = 1_000;
/** Between two messages of a user, in ms. Telegram takes one message a second in a chat. */
const THINK_MS = { least: 900, most: 2_100 };
/** The longest that the runtime stays down, in ms. */
const DOWN_MS = 400;
/** How long a kill looks for the worst moment, in ms. */
const WORST_MS = 300;
/** Nobody said anything for so long, in ms: a reply that comes twice would have come. */
const QUIET_MS = 2_500;
/** The longest that quiet is waited for, in ms. */
const PATIENCE_MS = 30_000;

/** Users write for so many seconds; meanwhile the runtime is killed so many times. */
export async function play(stage: DemoStage, plan: Play, signal: AbortSignal): Promise<void> {
  const endsAt = Date.now() + plan.seconds * 1_000;
  const users = Array.from({ length: plan.chats }, (_user, at) =>
    write(stage, at, seededRandom(plan.seed * 1_000 + at), endsAt, signal),
  );
  await Promise.all([kill(stage, plan, signal), ...users]);
}

async function write(
  stage: DemoStage,
  user: number,
  random: () => number,
  endsAt: number,
  signal: AbortSignal,
): Promise<void> {
  for (let number = 1; ; number += 1) {
    // The first message comes at any moment, so that the users do not speak in chorus.
    const least = number === 1 ? 0 : THINK_MS.least;
    await delay(least + random() * (THINK_MS.most - least), undefined, { signal });
    if (Date.now() >= endsAt) return;
    await stage.write(FIRST_CHAT + user, `${user + 1}-${number}`, number);
  }
}

async function kill(stage: DemoStage, plan: Play, signal: AbortSignal): Promise<void> {
  const random = seededRandom(plan.seed);
  const startedAt = Date.now();
  // Evenly spread, each at any moment of its part.
  const part = (plan.seconds * 1_000) / plan.kills;
  for (let n = 0; n < plan.kills; n += 1) {
    const at = startedAt + (n + 0.1 + random() * 0.8) * part;
    await delay(Math.max(0, at - Date.now()), undefined, { signal });
    // Half of the kills look for the worst moment: a send is under way and nobody knows its end.
    if (random() < 0.5) await stage.sending(WORST_MS);
    await stage.crash(random() * DOWN_MS);
  }
}

/** Waits until every message is answered or announced and nothing more comes. Bounded. */
export async function untilQuiet(stage: DemoStage, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  const { ledger } = stage;
  while (Date.now() < deadline) {
    const quietFor = Date.now() - ledger.lastAt;
    if (ledger.totals().waiting === 0 && quietFor >= QUIET_MS) return;
    await delay(50, undefined, { signal });
  }
}
