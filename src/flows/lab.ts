/** What the tests of flows share. @module */
import { Bot, type BotOptions } from "../index.ts";
import { Chat } from "../objects/Chat.ts";
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

/** Other code for the same chats. */
export async function deploy(t: TestBot, bot: Bot): Promise<void> {
  const before = t.runtime.make;
  const seen = Object.create(bot, {
    channels: { value: [t.channel("mock")] },
    channel: { value: (connection: string) => t.channel(connection) },
  }) as Bot;
  // Methods of a class with private fields need their own object.
  const bound = new Proxy(seen, {
    get: (target, name) => {
      if (name === "channels" || name === "channel") return Reflect.get(target, name);
      const value = Reflect.get(bot, name) as unknown;
      return typeof value === "function" ? value.bind(bot) : value;
    },
  });
  t.runtime.make = (host, kind, name) =>
    kind === "ChatActor" ? new Chat(host, bound, name) : before(host, kind, name);
  await t.restart();
}
