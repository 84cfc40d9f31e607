/**
 * Cron jobs as events: each run is journaled in an actor of its job, so that it is retried after a
 * crash, listed when it failed, and can be replayed like any other event.
 *
 * @module
 */
import { ConfigError } from "../channels/errors.ts";
import type { Address, InboundEvent } from "../channels/events.ts";
import { type BotScope, chatActorName, formatAddress } from "../objects/names.ts";
import { parseCron } from "../time/cron.ts";
import type { CronJob, ListenerTools } from "./BotRuntime.ts";
import type { ChatClient, Client } from "./Client.ts";
import type { Context } from "./Context.ts";
import type { SendOptions } from "./sends.ts";

/** The connection of cron jobs in names and addresses; no channel is called so. */
export const CRON_CONNECTION = "~cron";

/** Options of `bot.cron`. */
export interface CronOptions {
  /**
   * Names the job in its records: letters, digits, `.`, `_`, `-`, up to 64. Default: its expression.
   * A job that is renamed starts with no record of its past runs.
   */
  name?: string | undefined;
}

/** What a cron job runs. */
export type CronHandler<Env> = (tools: ListenerTools<Env>) => unknown;

const NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** Checks a job. @throws {ConfigError} naming the expression or the name */
export function cronJob(
  expression: string,
  options: CronOptions,
  run: CronJob["run"],
  others: readonly CronJob[],
): CronJob {
  const shown = `cron ${JSON.stringify(expression)}`;
  if (typeof run !== "function") throw new ConfigError(`${shown} needs a handler function`);
  try {
    parseCron(expression);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(
      `${shown} is no cron expression: ${reason.replace(/\.+$/, "")}. It takes five fields in UTC: minute, hour, day of the month, month, day of the week, such as "0 8 * * 1-5"`,
    );
  }
  if (options.name !== undefined && !NAME.test(options.name)) {
    throw new ConfigError(
      `the name of ${shown} is ${JSON.stringify(options.name)}, but must be 1 to 64 letters, digits, ".", "_" or "-"`,
    );
  }
  const name = options.name ?? expression.trim().split(/\s+/).join("_");
  if (others.some((one) => one.name === name)) {
    throw new ConfigError(
      `two cron jobs are called "${name}"; give ${shown} another name, as in bot.cron(${JSON.stringify(expression)}, { name: "…" }, handler)`,
    );
  }
  return { name, expression, run };
}

/** The actor that keeps a job's runs. */
export function cronActorName(scope: BotScope, name: string): string {
  return chatActorName(scope, CRON_CONNECTION, name);
}

/** One run of a job as the event that its actor admits: the same minute is the same event. */
export function cronEvent(name: string, at: number): InboundEvent {
  return {
    // "2026-01-01T08:00Z": runs are by the minute.
    id: `cron:${name}:${new Date(at).toISOString().slice(0, 16)}Z`,
    kind: "cron",
    type: name,
    channel: CRON_CONNECTION,
    connection: CRON_CONNECTION,
    chat: { id: name, kind: "direct" },
    at,
  };
}

/** Runs the job that an event names. @throws {ConfigError} when the bot no longer has it */
export async function runCron(jobs: readonly CronJob[], ctx: Context): Promise<void> {
  const job = jobs.find((one) => one.name === ctx.event.type);
  if (job === undefined) {
    const name = ctx.event.type ?? "";
    ctx.log.warn("a cron job is gone, its run is listed as failed", { id: ctx.ref.id, job: name });
    throw new ConfigError(`the bot has no cron job "${name}" any more`);
  }
  await job.run({ env: ctx.env, client: clientOfRun(ctx.client, ctx.ref.id), log: ctx.log });
}

/**
 * The client of one run. Its sends have keys, `<run>:<n>` for the n-th to a chat, so that a run that is
 * repeated after a crash says nothing twice.
 */
export function clientOfRun(client: Client, run: string): Client {
  const sends = new Map<string, number>();
  const keyed = <O extends SendOptions>(address: Address | string, options: O): O => {
    if (options.idempotencyKey !== undefined) return options;
    const chat = typeof address === "string" ? address : formatAddress(address);
    const n = sends.get(chat) ?? 0;
    sends.set(chat, n + 1);
    return { ...options, idempotencyKey: `${run}:${n}` };
  };
  return {
    durability: client.durability,
    edit: (message, content) => client.edit(message, content),
    resume: (token, payload) => client.resume(token, payload),
    chat: (address): ChatClient => {
      const chat = client.chat(address);
      return {
        ...chat,
        send: (content, options = {}) => chat.send(content, keyed(address, options)),
        enqueue: (content, options = {}) => chat.enqueue(content, keyed(address, options)),
      };
    },
  };
}
