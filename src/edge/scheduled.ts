/** The cron sweep: asks each Registry shard to wake chats that slept past their time. @module */
import type { Actors } from "../host/Host.ts";
import { encodePart } from "../objects/names.ts";
import { registriesOf } from "../objects/Reporter.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";

/** Sweeps all shards; resolves to how many chats were woken. */
export async function sweep(bot: BotRuntime, actors: Actors): Promise<number> {
  const { tenant, environment, bot: id } = bot.scope;
  let woken = 0;
  for (const shard of registriesOf([tenant, environment, id].map(encodePart).join("/"))) {
    const answer = JSON.parse(await actors.call("Registry", shard, "sweep", "{}")) as {
      woken: number;
    };
    woken += answer.woken;
  }
  return woken;
}
