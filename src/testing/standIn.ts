/**
 * What stands in for a bot's channel under test: a mock of the same abilities, unless the channel was
 * made for tests and brings its own platform.
 *
 * @module
 */
import type { AnyChannel } from "../channels/channel.ts";
import type { Clock } from "../time/Clock.ts";
import { CrashableProvider } from "./CrashableProvider.ts";
import { MockPlatform } from "./MockPlatform.ts";
import { MockProvider, mockProvider } from "./MockProvider.ts";

/** The process that a channel runs in. */
export interface TestProcess {
  clock: Clock;
  /** Ends it: all memory is lost. */
  kill(): void;
}

/** Makes the stand-in of a channel, and the platform behind it. */
export function standIn(
  channel: AnyChannel,
  process: TestProcess,
): { channel: AnyChannel; platform: MockPlatform } {
  if (channel instanceof CrashableProvider) {
    const inner = standIn(channel.inner, process);
    return { ...inner, channel: channel.over(inner.channel, () => process.kill()) };
  }
  if (channel instanceof MockProvider) {
    channel.platform.useClock(process.clock);
    return { channel, platform: channel.platform };
  }
  const platform = new MockPlatform(process.clock, channel.capabilities.delivery.class);
  const mock = mockProvider({
    platform,
    name: channel.name,
    connection: channel.connection,
    capabilities: channel.capabilities,
    media: channel.media !== undefined,
    prepare: channel.outbound.prepare !== undefined,
  });
  return { platform, channel: { ...mock, chatKey: (chat) => channel.chatKey(chat) } };
}
