/**
 * The test kit: a bot in plain Node, with virtual time and simulated platforms.
 *
 * @module
 */

export {
  CrashableProvider,
  type CrashOrders,
  type CrashStep,
  crashable,
  type ProviderDeath,
} from "./CrashableProvider.ts";
export {
  type CrashPoint,
  type CrashReport,
  type CrashScenario,
  crashEverywhere,
} from "./crashEverywhere.ts";
export { type Fault, type LedgerEntry, MockPlatform, type Revision } from "./MockPlatform.ts";
export { MockProvider, type MockProviderOptions, mockProvider } from "./MockProvider.ts";
export { ModelStream, type ModelStreamOptions } from "./ModelStream.ts";
export { type Announced, type TestBot, type TestBotOptions, testBot } from "./TestBot.ts";
export type { TestUser, UserEvent, UserOptions } from "./TestUser.ts";
export {
  CAPABILITY_NAMES,
  type CapabilityName,
  type CapabilityProof,
  CapabilityProofError,
  type CapabilityProofs,
  type ProvenCapability,
  verifyCapabilityProofs,
} from "./verifyCapabilityProofs.ts";
