/** What tests of this channel call it with. @module */
import type { SimTelegram } from "../../testing/platforms/telegram.ts";
import { SIM_TOKEN } from "../../testing/platforms/telegram.ts";
import type { ChannelIo } from "../channel.ts";
import type { TelegramConfig } from "./config.ts";

/** What the outbox gives the channel, over a simulated platform. `onRequest` sees each call as it goes out. */
export function ioOver(
  sim: SimTelegram,
  onRequest: (request: Request) => void = () => {},
): ChannelIo<TelegramConfig> {
  return {
    options: { token: SIM_TOKEN, webhookSecret: "s", apiBase: "https://api.telegram.org" },
    fetch: (input, init) => {
      const request = new Request(input, init);
      onRequest(request);
      return sim.fetch(request);
    },
    signal: new AbortController().signal,
    now: Date.now,
    actors: { call: () => Promise.reject(new Error("none")) },
    scope: "t/e/b/telegram",
  };
}
