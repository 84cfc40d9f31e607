/**
 * The test kit: a bot in plain Node, with virtual time and simulated platforms.
 *
 * @module
 */
export {
  type CrashPoint,
  type CrashReport,
  type CrashScenario,
  crashEverywhere,
} from "./crashEverywhere.ts";
export { type Fault, type LedgerEntry, MockPlatform } from "./MockPlatform.ts";
export { type MockProviderOptions, mockProvider } from "./MockProvider.ts";
export { type Announced, type TestBot, type TestBotOptions, testBot } from "./TestBot.ts";
export type { TestUser, UserEvent, UserOptions } from "./TestUser.ts";
