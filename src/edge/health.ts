/** `/health`: which connections are ready, and what is missing where one is not. No secrets. @module */
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
  const connections = bot.channels.map((channel) => {
    const configured = channel.configure(env);
    return {
      connection: channel.connection,
      channel: channel.name,
      ready: configured.ok,
      ...(configured.ok ? {} : { missing: configured.missing }),
    };
  });
  return { ok: connections.every((one) => one.ready), bot: bot.id, connections };
}
