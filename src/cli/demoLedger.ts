/**
 * The demo's bookkeeping: what was sent, what the platform accepted and what the bot announced, compared
 * message by message. It trusts none of the runtime's own figures.
 *
 * @module
 */

/** A message that has waited so long for its reply counts as lost while the demo runs, in ms. */
const PATIENCE_MS = 15_000;

/** One message and what came of it. */
interface Entry {
  /** Its number in its chat, from 1. */
  number: number;
  admittedAt: number | undefined;
  /** How often the platform accepted its reply. */
  replies: number;
  announced: boolean;
}

/** Figures of the demo. */
export interface Totals {
  /** Messages that users wrote. */
  sent: number;
  /** Of them, taken by the runtime: the webhook was answered with success. */
  admitted: number;
  /** Messages whose reply the platform accepted. */
  replied: number;
  /** Admitted and neither replied nor announced, yet. */
  waiting: number;
  /** Of them, those that waited too long; once the demo is over, all. */
  lost: number;
  /** Replies that the platform accepted once more, and nobody announced. */
  doubled: number;
  /** Messages whose reply was announced as unknown or given up. */
  announced: number;
  /** Of them, those that the platform never accepted. */
  held: number;
  /** Of them, replies that were accepted once more. */
  repeated: number;
}

/** What is said in a chat is `You said: <text>, message <count> of this chat`. */
const REPLY = /^You said: (\S+), message (\d+) of this chat$/;

/** The ledger. */
export class DemoLedger {
  /** By update id. */
  readonly #entries = new Map<string, Entry>();
  readonly #byText = new Map<string, string>();
  readonly #lastSaid = new Map<string, number>();
  readonly #wrong: string[] = [];
  readonly #now: () => number;
  #over = false;
  /** When something last happened: epoch ms. */
  lastAt: number;

  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
    this.lastAt = now();
  }

  /** A user wrote; `text` is unique. */
  sent(updateId: string, text: string, number: number): void {
    const entry = { number, admittedAt: undefined, replies: 0, announced: false };
    this.#entries.set(updateId, entry);
    this.#byText.set(text, updateId);
    this.lastAt = this.#now();
  }

  /** The runtime took it. */
  admitted(updateId: string): void {
    const entry = this.#entries.get(updateId);
    if (entry !== undefined) entry.admittedAt = this.#now();
    this.lastAt = this.#now();
  }

  /** The platform accepted something in a chat. */
  accepted(chatId: string, text: string): void {
    this.lastAt = this.#now();
    const [, said = "", count = ""] = REPLY.exec(text) ?? [];
    const entry = this.#entries.get(this.#byText.get(said) ?? "");
    if (entry === undefined) {
      this.#wrong.push(`chat ${chatId} was told what answers no message: ${text}`);
      return;
    }
    entry.replies += 1;
    if (Number(count) !== entry.number) {
      this.#wrong.push(`${said}: the bot's state counted ${count}, not ${entry.number}`);
    }
    const last = this.#lastSaid.get(chatId) ?? 0;
    if (entry.replies === 1 && entry.number < last) {
      this.#wrong.push(`${said}: replied after message ${last} of its chat`);
    }
    this.#lastSaid.set(chatId, Math.max(last, entry.number));
  }

  /** The bot announced a send (`key`: `<update id>:<n>`) or an event (`key`: the update id). */
  announced(key: string): void {
    this.lastAt = this.#now();
    const entry = this.#entries.get(key.split(":")[0] ?? "");
    if (entry === undefined) this.#wrong.push(`${key} was announced, and nobody asked for it`);
    else entry.announced = true;
  }

  /** Nothing more is expected: whoever is without a reply is so for good. */
  finish(): void {
    this.#over = true;
  }

  /** The figures as they stand. */
  totals(): Totals {
    const entries = [...this.#entries.values()];
    const count = (holds: (entry: Entry) => boolean) => entries.filter(holds).length;
    const repeats = (announced: boolean) =>
      entries
        .filter((entry) => entry.announced === announced)
        .reduce((sum, entry) => sum + Math.max(0, entry.replies - 1), 0);
    const overdueAt = this.#over ? Number.POSITIVE_INFINITY : this.#now() - PATIENCE_MS;
    return {
      sent: entries.length,
      admitted: count((entry) => entry.admittedAt !== undefined),
      replied: count((entry) => entry.replies > 0),
      waiting: count(isWaiting),
      lost: count((entry) => isWaiting(entry) && (entry.admittedAt ?? 0) <= overdueAt),
      doubled: repeats(false),
      announced: count((entry) => entry.announced),
      held: count((entry) => entry.announced && entry.replies === 0),
      repeated: repeats(true),
    };
  }

  /** At the end: a line for each message that is not as it must be. None is what the demo wants. */
  differences(): string[] {
    const lines = [...this.#wrong];
    for (const [id, entry] of this.#entries) {
      if (isWaiting(entry)) lines.push(`update ${id}: admitted, no reply, not announced`);
      if (entry.replies > 1 && !entry.announced)
        lines.push(`update ${id}: replied ${entry.replies} times, not announced`);
      if (entry.admittedAt === undefined && entry.replies === 0)
        lines.push(`update ${id}: never taken by the runtime`);
    }
    return lines;
  }
}

function isWaiting(entry: Entry): boolean {
  return entry.admittedAt !== undefined && entry.replies === 0 && !entry.announced;
}
