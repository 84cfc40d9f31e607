/**
 * One tick of the bot's cron jobs: each minute that came due becomes an event of its job's actor, which
 * drops what it has already. A tick that was missed is made up for by those of the next minutes.
 *
 * @module
 */
import type { Actors, Log } from "../host/Host.ts";
import { errorText } from "../safety/redact.ts";
import { minutesDue, parseCron } from "../time/cron.ts";
import type { BotRuntime, CronJob } from "../turns/BotRuntime.ts";
import { CRON_CONNECTION, cronActorName, cronEvent } from "../turns/crons.ts";

/** How far a tick looks back, in ms: as many missed ticks in a row cost nothing. */
export const CATCH_UP_MS = 5 * 60_000;

/** What a tick works with. */
export interface TickParts {
  bot: BotRuntime;
  actors: Actors;
  env: Record<string, unknown>;
  log: Log;
}

/**
 * Admits the runs of every job that are due in `(tick - 5 min, tick]`. A job that cannot be told does not
 * stop the others. Makes no call for a job that is not due.
 *
 * @param tick epoch milliseconds
 * @returns how many jobs could not be told
 */
export async function runCrons(parts: TickParts, tick: number): Promise<number> {
  const told = await Promise.all(parts.bot.crons.map((job) => admitRuns(parts, job, tick)));
  return told.filter((ok) => !ok).length;
}

async function admitRuns(parts: TickParts, job: CronJob, tick: number): Promise<boolean> {
  const { bot, actors, env, log } = parts;
  try {
    const due = minutesDue(parseCron(job.expression), tick - CATCH_UP_MS, tick);
    if (due.length === 0) return true;
    const request = {
      connection: CRON_CONNECTION,
      channel: CRON_CONNECTION,
      chat: { id: job.name, kind: "direct" },
      // A job that is new was not there for the minutes before.
      newestAtFirst: true,
      // Oldest first; those of earlier ticks are known by their ids.
      items: due.map((at) => ({ type: "event", event: cronEvent(job.name, at) })),
    };
    const actor = cronActorName(bot.scope, job.name);
    const answer = JSON.parse(
      await actors.call("ChatActor", actor, "receive", JSON.stringify(request)),
    ) as { ok: boolean };
    if (!answer.ok) log.error("a cron job has too many runs waiting", { job: job.name });
    return answer.ok;
  } catch (error) {
    log.error("a cron job could not be told to run", {
      job: job.name,
      error: errorText(error, env),
    });
    return false;
  }
}
