/** Variables and bindings of the benchmark's Workers. @module */
import type { Bare } from "./Bare.ts";

/**
 * What the bot does with a message. `none`: it has no handler. `held`: its handler never returns, so that
 * what comes behind is only admitted. `echo`: it replies.
 */
export type BotKind = "none" | "held" | "echo";

/** What the Workers are given. */
export interface BenchEnv {
  BENCH_BOT: BotKind;
  /** The lease of inbox and outbox, in ms. */
  BENCH_LEASE_MS: string;
  TELEGRAM_BOT_TOKEN: string;
  TELEGRAM_WEBHOOK_SECRET: string;
  TELEGRAM_API_BASE: string;
  BARE: DurableObjectNamespace<Bare>;
}
