/**
 * What the scenarios of the crash matrix share.
 *
 * @module
 */
import type { Capabilities, DeliveryClass } from "../../src/channels/channel.ts";
import { Bot, type DurabilityOptions } from "../../src/index.ts";
import { MockPlatform } from "../../src/testing/MockPlatform.ts";
import { mockProvider } from "../../src/testing/MockProvider.ts";
import type { TestBot } from "../../src/testing/TestBot.ts";
import { wallClock } from "../../src/time/Clock.ts";
import type { BusyOptions } from "../../src/turns/busyOptions.ts";
import type { AmbiguousPolicy } from "../../src/turns/options.ts";

/** One column of the matrix. */
export interface Column {
  class: DeliveryClass;
  policy: AmbiguousPolicy;
}

/** One scenario. */
export interface Scenario {
  name: string;
  bot(column: Column): Bot;
  run(t: TestBot): Promise<void>;
  /** Records are purged on the way, so that what was said has none any more. */
  purges?: true;
}

/** Text limit of the matrix's channel: small, so that messages have parts. */
export const LIMIT = 40;

export interface Setup {
  durability?: DurabilityOptions;
  capabilities?: Partial<Capabilities>;
  prepare?: boolean;
  busy?: BusyOptions;
}

export function botOf(column: Column, setup: Setup = {}): Bot {
  const { inbox, outbox, ...rest } = setup.durability ?? {};
  const channel = mockProvider({
    platform: new MockPlatform(wallClock, column.class),
    capabilities: { text: { limit: LIMIT, unit: "codepoints" }, ...setup.capabilities },
    prepare: setup.prepare ?? false,
  });
  return new Bot({
    id: "matrix",
    channels: [channel],
    ...setup.busy,
    durability: {
      ...rest,
      inbox: { leaseMs: 5_000, minAgeMs: 0, ...inbox },
      outbox: { leaseMs: 5_000, sendTimeoutMs: 2_000, onAmbiguous: column.policy, ...outbox },
    },
  });
}

/** An operator's call: repeated while the actor is down, as a person would. */
export async function insist<T>(t: TestBot, call: () => Promise<T>): Promise<T | undefined> {
  for (let tries = 0; tries < 5; tries += 1) {
    try {
      return await within(t, call());
    } catch {
      await t.advance(1_000);
    }
  }
  return undefined;
}

/** Lets time pass until a call is answered. */
async function within<T>(t: TestBot, call: Promise<T>): Promise<T> {
  let done = false;
  const mark = () => {
    done = true;
  };
  call.then(mark, mark);
  await t.runtime.until(() => done, 60_000);
  return call;
}
