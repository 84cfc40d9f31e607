/**
 * Fetching updates without a public URL. The cursor, which tells the platform what it may forget, is
 * saved only behind updates that their chats have committed, or that the quarantine took in the same
 * commit.
 *
 * @module
 */
import type {
  AnyChannel,
  ChannelIo,
  PolledUpdate,
  PollingAccount,
  PollResult,
} from "../channels/channel.ts";
import { errorText } from "../safety/redact.ts";
import { backoffMs } from "../time/backoff.ts";
import { sleep, TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { BotRuntime } from "../turns/BotRuntime.ts";
import { admit, type ChatGroup, sortItems } from "./admit.ts";
import type { ConnectionEvents } from "./ConnectionEvents.ts";
import { type Alive, ConnectionLoop } from "./ConnectionLoop.ts";
import type { ConnectionStore } from "./ConnectionStore.ts";
import { connectionOf } from "./names.ts";
import { ADMIT_MS, type Quarantine, type Spill } from "./Quarantine.ts";

/** How long the platform may hold a poll that has nothing to say, in ms. */
const WAIT_MS = 25_000;
/** How much longer than that an answer may take, in ms. */
const GRACE_MS = 10_000;
/** Updates fetched at once. */
const LIMIT = 100;
const BACKOFF = { baseMs: 1_000, capMs: 30_000 };
/** Waiting for somebody to act: a bad token, a webhook, another poller. In ms. */
const SLOW_MS = 60_000;
/** The least time between two polls that bring nothing new, in ms: whatever the platform does, no hot loop. */
const IDLE_MS = 1_000;
/** Where the state is kept. */
const FACT = "poll";

type Failure = Extract<PollResult, { ok: false }>;

/** What is on disk. */
interface PollState {
  on: boolean;
  /** Behind the last update that was committed. */
  cursor?: string;
  /** Failures in a row. */
  failures: number;
  /** No poll before this; epoch ms. */
  nextAt: number;
  account?: PollingAccount;
  error?: PollError;
}

/** Why polling does not work. */
export interface PollError {
  kind: string;
  code?: string;
  /** Names cause and fix; without secrets. */
  message: string;
  /** Since when: epoch ms. */
  since: number;
}

/** How polling stands. */
export interface PollStatus {
  /** Whether the channel can be polled at all. */
  supported: boolean;
  on: boolean;
  account?: PollingAccount;
  cursor?: string;
  error?: PollError;
  /** When it is tried again after an error: epoch ms. */
  nextAt?: number;
  /** When the platform last answered, in this life: epoch ms. */
  polledAt?: number;
}

/** The polling of one connection. */
export class Polling {
  readonly #store: ConnectionStore;
  readonly #bot: BotRuntime;
  readonly #scope: string;
  readonly #channel: () => AnyChannel;
  readonly #quarantine: Quarantine;
  readonly #events: ConnectionEvents;
  readonly #loop: ConnectionLoop;
  /** Aborts the poll that is under way. */
  #abort: AbortController | undefined;
  #polledAt: number | undefined;
  /** Whether the last poll brought an event that its chat did not have. */
  #news = false;
  #state: PollState | undefined;

  constructor(parts: {
    store: ConnectionStore;
    bot: BotRuntime;
    scope: string;
    channel: () => AnyChannel;
    quarantine: Quarantine;
    events: ConnectionEvents;
  }) {
    this.#store = parts.store;
    this.#bot = parts.bot;
    this.#scope = parts.scope;
    this.#channel = parts.channel;
    this.#quarantine = parts.quarantine;
    this.#events = parts.events;
    this.#loop = new ConnectionLoop(parts.store.host, (alive) => this.#run(alive));
  }

  /** Begins to poll, now; an error is tried again at once. */
  start(): PollStatus {
    const state = this.#read();
    if (!state.on || state.nextAt > this.#store.now()) {
      const { account: _account, ...rest } = state;
      this.#write("poll.start", { ...rest, on: true, nextAt: 0 });
      this.#restart();
    }
    this.kick();
    return this.status();
  }

  /** Stops. What was fetched and not committed stays with the platform. */
  stop(): PollStatus {
    const { error: _error, ...state } = this.#read();
    if (state.on) this.#write("poll.stop", { ...state, on: false, failures: 0, nextAt: 0 });
    this.#restart();
    return this.status();
  }

  /** How it stands. */
  status(): PollStatus {
    const { on, account, cursor, error, nextAt } = this.#read();
    return {
      supported: this.#channel().polling !== undefined,
      on,
      ...(account === undefined ? {} : { account }),
      ...(cursor === undefined ? {} : { cursor }),
      ...(error === undefined ? {} : { error, nextAt }),
      ...(this.#polledAt === undefined ? {} : { polledAt: this.#polledAt }),
    };
  }

  /** When the alarm is needed; epoch ms. */
  nextDue(): number | undefined {
    const { on, nextAt } = this.#read();
    return on ? Math.max(nextAt, this.#store.now()) : undefined;
  }

  /** Polls unless a loop does already, or it is too early. */
  kick(): void {
    const { on, nextAt } = this.#read();
    if (on && nextAt <= this.#store.now()) this.#loop.kick();
  }

  #restart(): void {
    this.#loop.stop();
    this.#abort?.abort(new Error("polling was stopped"));
  }

  async #run(alive: Alive): Promise<void> {
    const { host } = this.#store;
    try {
      while (alive() && (await this.#once(alive)));
    } catch (error) {
      host.rethrowIfHalted(error);
      if (alive())
        this.#failed({ ok: false, kind: "unknown", message: errorText(error, host.env) });
    }
  }

  /** One poll. Resolves to whether the next may follow. */
  async #once(alive: Alive): Promise<boolean> {
    const { cursor } = this.#read();
    const channel = this.#channel();
    const startedAt = this.#store.now();
    const asked = await this.#ask(channel, cursor);
    // Stopped or replaced meanwhile: nothing is confirmed, so the platform still has it all.
    if (!alive() || !this.#read().on) return false;
    if (!asked.ok) {
      this.#failed(asked);
      return false;
    }
    this.#polledAt = this.#store.now();
    this.#news = false;
    await this.#take(channel, cursor, asked.updates, alive);
    if (!alive()) return false;
    // A cursor that moves is no proof of news: it may go back and forth for ever.
    const moved = this.#news && this.#read().cursor !== cursor;
    if (!moved && this.#store.now() - startedAt < IDLE_MS)
      await sleep(this.#store.host.clock, IDLE_MS);
    return true;
  }

  /** Asks whose token it is, if nobody did, and then for updates. */
  async #ask(channel: AnyChannel, cursor: string | undefined): Promise<PollResult> {
    const { polling } = channel;
    if (polling === undefined) {
      return refused(`${channel.name} cannot be polled: it has no such method. Use its webhook.`);
    }
    const configured = channel.configure(this.#store.host.env);
    if (!configured.ok) {
      return refused(
        `connection "${channel.connection}" is not configured: set ${configured.missing.join(", ")}`,
      );
    }
    const abort = new AbortController();
    this.#abort = abort;
    const io = this.#io(configured.options, abort.signal);
    if (this.#read().account === undefined) {
      const who = await this.#inTime(abort, GRACE_MS, polling.account(io));
      if (!who.ok) return who;
      // Kept in memory until the next commit: it costs one call to learn it again.
      this.#state = { ...this.#read(), account: who.account };
    }
    const context = { connection: channel.connection, waitMs: WAIT_MS, limit: LIMIT };
    return this.#inTime(abort, WAIT_MS + GRACE_MS, polling.poll(cursor, io, context));
  }

  async #inTime<T>(abort: AbortController, ms: number, work: Promise<T>): Promise<T | Failure> {
    const done = await withDeadline(this.#store.host.clock, ms, work);
    if (done !== TIMED_OUT) return done;
    abort.abort(new Error("the platform did not answer in time"));
    return { ok: false, kind: "transient", message: `the platform did not answer in ${ms} ms` };
  }

  /** Has every chat commit its updates, and only then moves the cursor. */
  async #take(
    channel: AnyChannel,
    from: string | undefined,
    updates: readonly PolledUpdate[],
    alive: Alive,
  ): Promise<void> {
    const sorted = sortItems(
      this.#bot.scope,
      channel,
      updates.flatMap((update) => update.items),
    );
    const spills = await Promise.all(sorted.chats.map((group) => this.#admit(group)));
    // Another loop may have begun meanwhile: it fetches the same again, and chats know what they have.
    if (!alive() || this.#read().cursor !== from) return;
    const last = updates.at(-1);
    const state = this.#read();
    if (last === undefined && state.error === undefined) return;
    const { error, ...rest } = state;
    const next: PollState = {
      ...rest,
      failures: 0,
      nextAt: 0,
      ...(last === undefined ? {} : { cursor: last.cursor }),
    };
    this.#write("poll.advance", next, () => {
      for (const spill of spills) if (spill !== undefined) this.#quarantine.put(spill);
      this.#events.keep(channel, sorted.account);
    });
    if (error !== undefined) this.#store.host.log.info("polling works again", this.#about());
    this.#report(spills);
    this.#quarantine.kick();
  }

  /** Resolves to nothing once the chat committed, else to what has to wait for it. */
  async #admit(group: ChatGroup): Promise<Spill | undefined> {
    const { host } = this.#store;
    const dueAt = this.#store.now();
    // Behind what waits already, or their order would be lost.
    if (this.#quarantine.has(group.name)) return { group, dueAt };
    try {
      const answer = await withDeadline(
        host.clock,
        ADMIT_MS,
        admit(host.actors, group, { atCommit: true }),
      );
      if (answer === TIMED_OUT) return { group, dueAt, error: "the chat did not answer" };
      if (answer.ok) {
        if (answer.results.includes("accepted")) this.#news = true;
        return undefined;
      }
      const waitMs = answer.retryAfterSeconds * 1_000;
      return { group, dueAt: this.#store.now() + waitMs, error: reasonOf(answer.reason) };
    } catch (error) {
      host.rethrowIfHalted(error);
      return { group, dueAt: this.#store.now() + IDLE_MS, error: errorText(error, host.env) };
    }
  }

  #report(spills: readonly (Spill | undefined)[]): void {
    for (const spill of spills) {
      if (spill?.error === undefined) continue;
      this.#store.host.log.error("a chat cannot admit its events; they wait in the quarantine", {
        chat: spill.group.name,
        items: spill.group.request.items.length,
        error: spill.error,
      });
    }
  }

  #failed(failure: Failure): void {
    const { host } = this.#store;
    const now = this.#store.now();
    const state = this.#read();
    const failures = state.failures + 1;
    const message = errorText(failure.message, host.env);
    const known = state.error?.kind === failure.kind && state.error.message === message;
    const needsSomebody = ["auth", "conflict", "permission"].includes(failure.kind);
    // Half of it random, so that many bots do not come back at once.
    const waitMs = needsSomebody
      ? SLOW_MS * (1 + host.random() / 4)
      : backoffMs(BACKOFF, failures, host.random());
    const error: PollError = {
      kind: failure.kind,
      ...(failure.code === undefined ? {} : { code: failure.code }),
      message,
      since: state.error?.since ?? now,
    };
    const nextAt = Math.ceil(now + Math.max(waitMs, failure.retryAfterMs ?? 0));
    this.#write("poll.failed", { ...state, failures, nextAt, error });
    // Once, and not at every try.
    if (!known) host.log.error("polling does not work", { ...this.#about(), error: message });
  }

  #read(): PollState {
    this.#state ??= this.#store.fact<PollState>(FACT) ?? { on: false, failures: 0, nextAt: 0 };
    return this.#state;
  }

  #write(
    label: "poll.advance" | "poll.failed" | "poll.start" | "poll.stop",
    state: PollState,
    more: () => void = () => {},
  ): void {
    this.#store.commit(label, () => {
      more();
      this.#store.setFact(FACT, state);
      const now = this.#store.now();
      // A loop that runs needs no alarm but the watchdog's.
      if (state.on) this.#store.alarm.arm(state.nextAt > now ? state.nextAt : now + WAIT_MS);
    });
    this.#state = state;
  }

  #about(): { connection: string } {
    return { connection: connectionOf(this.#scope) };
  }

  #io(options: unknown, signal: AbortSignal): ChannelIo<unknown> {
    const { host } = this.#store;
    return {
      options,
      fetch: (input, init) => host.fetch(input, init),
      signal,
      now: () => host.clock.now(),
      actors: host.actors,
      scope: this.#scope,
    };
  }
}

/** Nothing to ask the platform: somebody has to change something first. */
function refused(message: string): Failure {
  return { ok: false, kind: "auth", message };
}

function reasonOf(reason: "full" | "nacked" | "moving" | undefined): string {
  return reason === "moving" ? "its chat is being renamed" : "its queue is full";
}
