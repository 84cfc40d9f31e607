/**
 * What the Worker's cron does each minute: wakes chats that slept past their time, has connections try
 * their quarantine, and ticks the bot's own cron jobs.
 *
 * @module
 */
import { connectionActorName, encodePart } from "../objects/names.ts";
import { registriesOf } from "../objects/Reporter.ts";
import { errorText } from "../safety/redact.ts";
import { runCrons, type TickParts } from "./cron.ts";

/** What one tick did. */
export interface TickReport {
  /** Chats that were woken; those of further slices follow by alarm. */
  woken: number;
  /** Parts of the tick that did not work; each has its log line. */
  failed: number;
}

/**
 * One tick. Its parts do not depend on each other: what fails is logged, counted, and done by a later one.
 *
 * @param tick when the tick is: epoch milliseconds
 */
export async function runScheduled(parts: TickParts, tick: number): Promise<TickReport> {
  const [swept, connections, crons] = await Promise.all([
    sweepShards(parts),
    sweepConnections(parts),
    runCrons(parts, tick),
  ]);
  return { woken: swept.woken, failed: swept.failed + connections + crons };
}

async function sweepShards(parts: TickParts): Promise<TickReport> {
  const { tenant, environment, bot } = parts.bot.scope;
  const prefix = [tenant, environment, bot].map(encodePart).join("/");
  const answers = await Promise.all(
    registriesOf(prefix).map((shard) =>
      attempt(parts, "a shard of the Registry could not be swept", { shard }, () =>
        parts.actors.call("Registry", shard, "sweep", "{}"),
      ),
    ),
  );
  const woken = answers.map((text) =>
    text === undefined ? 0 : (JSON.parse(text) as { woken: number }).woken,
  );
  return {
    woken: woken.reduce((sum, one) => sum + one, 0),
    failed: answers.filter((text) => text === undefined).length,
  };
}

async function sweepConnections(parts: TickParts): Promise<number> {
  const answers = await Promise.all(
    parts.bot.channels.map(({ connection }) =>
      attempt(parts, "a connection could not be swept", { connection }, () =>
        parts.actors.call(
          "Connection",
          connectionActorName(parts.bot.scope, connection),
          "sweep",
          "{}",
        ),
      ),
    ),
  );
  return answers.filter((text) => text === undefined).length;
}

async function attempt(
  { log, env }: TickParts,
  complaint: string,
  fields: Record<string, string>,
  call: () => Promise<string>,
): Promise<string | undefined> {
  try {
    return await call();
  } catch (error) {
    log.error(complaint, { ...fields, error: errorText(error, env) });
    return undefined;
  }
}
