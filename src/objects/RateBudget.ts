/**
 * How fast one bot account may call its platform, over all its chats. Chats ask for it only after the
 * platform told one of them to slow down; they get a block of calls and the times to make them at.
 *
 * @module
 */
import type { Pace } from "../channels/channel.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";

/** The method `budget` of a connection is given this. */
export interface BudgetRequest {
  /** How many calls the chat means to make; at least 1. */
  want: number;
  /** The platform has just said so for the whole account: nothing goes out for this long, in ms. */
  retryAfterMs?: number;
}

/** What it answers. */
export interface BudgetGrant {
  /** How many calls the chat may make. 0: ask again at `notBefore`. */
  granted: number;
  /** The first may be made then: epoch ms. */
  notBefore: number;
  /** The time between two of them, in ms. 0: at once. */
  everyMs: number;
}

/** The largest block: a chat that dies with its block must not cost the others more. */
const BLOCK = 20;
/** Blocks are not promised further ahead than this, in ms. */
const AHEAD_MS = 30_000;
/** Two limits that end within this are one, in ms. */
const SAME_MS = 1_000;
/** Where the time is kept that the platform named. */
const FACT = "budget";

/** The budget of one connection. */
export class RateBudget {
  readonly #store: ConnectionStore;
  readonly #pace: () => Pace | undefined;
  /** When the bucket would be full: epoch ms. Each call moves it by one `perMs`. */
  #fullAt: number | undefined;
  #notBefore: number | undefined;
  #saved = 0;

  constructor(store: ConnectionStore, pace: () => Pace | undefined) {
    this.#store = store;
    this.#pace = pace;
  }

  /** Grants a block. */
  take({ want, retryAfterMs }: BudgetRequest): BudgetGrant {
    const now = this.#store.now();
    if (retryAfterMs !== undefined) this.#slowDown(now + Math.max(0, retryAfterMs));
    const from = Math.max(now, this.#until());
    const pace = this.#pace();
    const asked = Math.max(1, Math.floor(want));
    if (pace === undefined) {
      return { granted: from > now ? 0 : asked, notBefore: from, everyMs: 0 };
    }
    const depth = pace.burst * pace.perMs;
    // A fresh life does not know what the last one granted, and a limit leaves nothing: both begin empty.
    this.#fullAt ??= now + depth - pace.perMs;
    const start = Math.max(from, this.#fullAt - depth + pace.perMs);
    if (start - now > AHEAD_MS) {
      return { granted: 0, notBefore: Math.min(start, from + AHEAD_MS), everyMs: pace.perMs };
    }
    const granted = Math.min(asked, BLOCK);
    this.#fullAt = Math.max(this.#fullAt, start) + granted * pace.perMs;
    return { granted, notBefore: start, everyMs: pace.perMs };
  }

  #until(): number {
    this.#notBefore ??= this.#store.fact<number>(FACT) ?? 0;
    return this.#notBefore;
  }

  #slowDown(until: number): void {
    if (until <= this.#until()) return;
    // Many chats hear of one limit within a second: only the first of them costs a row.
    if (until > this.#saved + SAME_MS) {
      this.#store.commit("budget.wait", () => this.#store.setFact(FACT, until));
      this.#saved = until;
    }
    this.#notBefore = until;
    const pace = this.#pace();
    if (pace !== undefined) this.#fullAt = until + (pace.burst - 1) * pace.perMs;
  }
}
