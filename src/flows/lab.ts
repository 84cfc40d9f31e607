/** What the tests of flows share. @module */
import { Bot, type BotOptions } from "../index.ts";
import { MockPlatform, mockProvider, type TestBot, testBot } from "../testing/index.ts";

/** Makes a bot's handlers; what the function notes is kept by the test. */
export type Setup = (bot: Bot, notes: unknown[]) => void;

/** A bot on a platform that tells repeats apart. */
export function botWith(setup: (bot: Bot) => void, options: Partial<BotOptions> = {}): Bot {
  const platform = new MockPlatform({ now: () => 0, setTimer: () => () => {} }, "keyed");
  const bot = new Bot({ id: "flows", channels: [mockProvider({ platform })], ...options });
  setup(bot);
  return bot;
}

/** A bot under test, and what its functions note. */
export function made(
  setup: Setup,
  options: Partial<BotOptions> = {},
): { t: TestBot; notes: unknown[] } {
  const notes: unknown[] = [];
  return { t: testBot(botWith((bot) => setup(bot, notes), options)), notes };
}

/** The disk refuses commits for which `refuses` holds. */
export function refuseCommits(t: TestBot, refuses: (label: string) => boolean): void {
  t.runtime.onCommit = (_actor, label) => {
    if (refuses(label)) throw new Error("database or disk is full: SQLITE_FULL");
  };
}

/** So much time of the test's own clock. */
export function pause(t: TestBot, ms: number): Promise<void> {
  return new Promise((done) => void t.runtime.clock.setTimer(ms, done));
}
