/** `/health`: which connections are ready, and what is missing where one is not. No secrets. @module */
import type { AnyChannel } from "../channels/channel.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";

/** The answer of `/health`. */
export interface Health {
  ok: boolean;
  bot: string;
  connections: {
    connection: string;
    channel: string;
    ready: boolean;
    missing?: readonly string[];
  }[];
}

/** Looks at every connection's configuration. */
export function healthOf(bot: BotRuntime, env: Record<string, unknown>): Health {
  const connections = bot.channels.map((channel) => ({
    connection: channel.connection,
    channel: channel.name,
    ...readiness(channel, env),
  }));
  return { ok: connections.every((one) => one.ready), bot: bot.id, connections };
}

function readiness(
  channel: AnyChannel,
  env: Record<string, unknown>,
): { ready: boolean; missing?: readonly string[] } {
  try {
    const configured = channel.configure(env);
    // Names of variables only.
    return configured.ok ? { ready: true } : { ready: false, missing: configured.missing };
  } catch {
    // One channel whose options cannot be read must not hide the others.
    return { ready: false };
  }
}
