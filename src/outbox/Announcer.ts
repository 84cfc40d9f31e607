/**
 * Tells listeners what became dead or ambiguous, and what was sent, at least once each: the bit in the
 * row is cleared only after the listener returned.
 *
 * @module
 */
import { isOpen, type OutboxRow, OWES, readExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { formatAddress } from "../objects/names.ts";
import { errorText } from "../safety/redact.ts";
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { Announcements, ListenerTools } from "../turns/BotRuntime.ts";
import { publicKeyOf } from "./publicKey.ts";
import { receiptOf } from "./results.ts";

/** How long one listener may take, in ms. */
const LISTENER_TIMEOUT_MS = 30_000;
/** A listener that throws is called again after the record's age, within these bounds, in ms. */
const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 3_600_000;

type Item = { box: "in"; seq: number } | { box: "out"; turn: number; pos: number };

function nameOf(item: Item): string {
  return item.box === "in" ? `in/${item.seq}` : `out/${item.turn}.${item.pos}`;
}

/** The announcements of one actor: a loop of its own, so that a slow listener holds no send. */
export class Announcer {
  readonly #core: Core;
  readonly #tools: () => ListenerTools;
  readonly #queue = new Map<string, Item>();
  #running = false;

  constructor(core: Core, tools: () => ListenerTools) {
    this.#core = core;
    this.#tools = tools;
  }

  get live(): boolean {
    return this.#running;
  }

  /** Whether a row waits here for its listener. */
  has(row: { turn: number; pos: number }): boolean {
    return this.#queue.has(`out/${row.turn}.${row.pos}`);
  }

  /** Announces what a send owes. */
  pushSend(row: OutboxRow): void {
    if (row.owed !== 0) this.#push({ box: "out", turn: row.turn, pos: row.pos });
  }

  /** Announces what an event owes. */
  pushEvent(seq: number): void {
    this.#push({ box: "in", seq });
  }

  /** Tells listeners once of what no record stands for. */
  tell<K extends keyof Announcements>(kind: K, event: Announcements[K]): void {
    const { host, bot } = this.#core;
    if (!bot.hasListener(kind)) return;
    const told = host.outlive(bot.announce(kind, event, this.#tools()));
    host.keepAlive(
      withDeadline(host.clock, LISTENER_TIMEOUT_MS, told).catch((error: unknown) => {
        host.rethrowIfHalted(error);
        host.log.error("a listener failed", { kind, error: errorText(error, host.env) });
      }),
    );
  }

  #push(item: Item): void {
    this.#queue.set(nameOf(item), item);
    if (this.#running) return;
    this.#running = true;
    this.#core.host.keepAlive(this.#run());
  }

  async #run(): Promise<void> {
    for (;;) {
      const [name, item] = this.#queue.entries().next().value ?? [];
      if (name === undefined || item === undefined) break;
      try {
        await (item.box === "in" ? this.#event(item.seq) : this.#send(item.turn, item.pos));
      } catch (error) {
        this.#failed(name, item, error);
      }
      this.#queue.delete(name);
    }
    this.#running = false;
  }

  async #send(turn: number, pos: number): Promise<void> {
    const { outbox } = this.#core.journal;
    for (const bit of [OWES.ambiguous, OWES.dead, OWES.afterSend]) {
      const row = outbox.get(turn, pos);
      if (row === undefined) return;
      if ((row.owed & bit) === 0) continue;
      const extra = readExtra(row);
      const key = publicKeyOf(this.#core.journal, row);
      const address = row.address === null ? this.#core.address() : JSON.parse(row.address);
      const chatId = formatAddress(address);
      await this.#call(async (tools) => {
        const { bot } = this.#core;
        if (bit === OWES.ambiguous) {
          await bot.announce(
            "durability:ambiguous",
            { key, chatId, cause: extra.cause ?? "no_answer", action: extra.action ?? "held" },
            tools,
          );
        } else if (bit === OWES.dead) {
          await bot.announce(
            "durability:dead",
            {
              kind: "outbound",
              id: key,
              chatId,
              error: row.error ?? "",
              errorKind: row.error_kind ?? "unknown",
            },
            tools,
          );
        } else {
          await bot.afterSend({ key, address, receipt: receiptOf([row]) }, tools);
        }
      });
      this.#paid(turn, pos, bit);
    }
  }

  #paid(turn: number, pos: number, bit: number): void {
    this.#core.journal.commit("outbox.announced", () => {
      const { outbox } = this.#core.journal;
      const row = outbox.get(turn, pos);
      if (row === undefined) return;
      const owed = row.owed & ~bit;
      outbox.update(row, owed === 0 && !isOpen(row) ? { owed, due_at: null } : { owed });
    });
  }

  async #event(seq: number): Promise<void> {
    const row = this.#core.journal.inbox.get(seq);
    if (row === undefined || (row.owed & OWES.dead) === 0) return;
    const chatId = formatAddress(this.#core.address());
    await this.#call((tools) =>
      this.#core.bot.announce(
        "durability:dead",
        { kind: "inbound", id: row.id, chatId, error: row.error ?? "" },
        tools,
      ),
    );
    this.#core.journal.commit("inbox.announced", () => {
      const now = this.#core.journal.inbox.get(seq);
      // A replay asked for meanwhile has opened the record again, and that stays.
      if (now?.state === "dead") this.#core.journal.inbox.update(now, { owed: 0, open: 0 });
    });
  }

  async #call(listener: (tools: ListenerTools) => Promise<void>): Promise<void> {
    this.#core.host.probe("listener", "before");
    const done = await withDeadline(
      this.#core.host.clock,
      LISTENER_TIMEOUT_MS,
      listener(this.#tools()),
    );
    this.#core.host.probe("listener", "after");
    if (done === TIMED_OUT)
      throw new Error(`the listener took longer than ${LISTENER_TIMEOUT_MS} ms`);
  }

  /** The listener failed: again later, for as long as the record is kept. */
  #failed(name: string, item: Item, error: unknown): void {
    this.#core.host.log.error("a durability listener failed", {
      record: name,
      error: String(error),
    });
    try {
      this.#core.journal.commit("announce.retry", () => {
        const { inbox, outbox } = this.#core.journal;
        if (item.box === "in") {
          const row = inbox.get(item.seq);
          if (row?.state === "dead") inbox.update(row, { due_at: this.#retryAt(row.finished_at) });
          return;
        }
        const row = outbox.get(item.turn, item.pos);
        if (row !== undefined && !isOpen(row))
          outbox.update(row, { due_at: this.#retryAt(row.finished_at) });
      });
    } catch (failure) {
      this.#core.host.log.error("the journal could not be written", { error: String(failure) });
    }
  }

  /** The wait is the record's age, so it doubles each time with no counter to keep. */
  #retryAt(since: number | null): number {
    const now = this.#core.now();
    const wait = Math.min(Math.max(now - (since ?? now), MIN_WAIT_MS), MAX_WAIT_MS);
    const at = now + Math.ceil(wait / 2 + (wait / 2) * this.#core.host.random());
    this.#core.alarm.arm(at);
    return at;
  }
}
