/**
 * A chat platform in memory: it keeps a ledger of what it accepted, honours markers where it is keyed,
 * can be looked up where it is provable, and fails on request.
 *
 * @module
 */
import type {
  DeliveryClass,
  PartReceipt,
  ReconcileResult,
  SendResult,
} from "../channels/channel.ts";
import type { ErrorKind } from "../channels/errors.ts";
import { type Clock, sleep } from "../time/Clock.ts";

/** One accepted message. */
export interface LedgerEntry {
  id: string;
  chat: string;
  text: string;
  buttons: { text: string; value: string }[];
  marker: string;
  /** When it was accepted: epoch milliseconds. */
  at: number;
  deleted: boolean;
}

/** How one call fails. */
export type Fault =
  /** The platform says no. */
  | { type: "refuse"; kind: ErrorKind; retryAfterMs?: number; message?: string; fallback?: "plain" }
  /** The connection dies before the platform did anything. */
  | { type: "drop" }
  /** The platform does it, and the answer is lost. */
  | { type: "acceptThenDrop" }
  /** The platform does it, and never answers. */
  | { type: "acceptThenHang" }
  /** The platform never answers and does nothing. */
  | { type: "hang" }
  /** A server error that says nothing. */
  | { type: "serverError" }
  /** Accepted, but without an id. */
  | { type: "noId" }
  /** The chat has moved. */
  | { type: "moved"; to: string };

/** One call, as fault decisions see it. */
export interface PlatformCall {
  chat: string;
  text: string;
  marker: string;
  /** Counts calls of this platform from 1. */
  n: number;
  /** The message that it changes, or the draft that it shows; absent for a send. */
  changes?: string;
}

/** A text that a message, or a draft, was given later. */
export interface Revision {
  /** The message's id, or the draft's. */
  id: string;
  chat: string;
  text: string;
  at: number;
}

/** A platform in memory. */
export class MockPlatform {
  readonly class: DeliveryClass;
  readonly ledger: LedgerEntry[] = [];
  /** Every call that reached the platform, accepted or not. */
  readonly calls: PlatformCall[] = [];
  /** Every revision of a message that was accepted, as streamed answers make them. */
  readonly revisions: Revision[] = [];
  /** Every draft that was shown. */
  readonly drafts: Revision[] = [];
  /** Typing signals, by chat. */
  readonly typing: string[] = [];
  /** Files that the bot may download, by id. */
  readonly files = new Map<string, Uint8Array>();
  /** Decides how a call fails; undefined lets it pass. */
  fault: (call: PlatformCall) => Fault | undefined = () => undefined;
  /** Whether the platform answers the self test. */
  healthy: () => boolean = () => true;
  /** How long a call takes, in ms. */
  latency: () => number = () => 0;
  #clock: Clock;
  readonly #byMarker = new Map<string, LedgerEntry>();
  #ids = 0;

  constructor(clock: Clock, deliveryClass: DeliveryClass) {
    this.#clock = clock;
    this.class = deliveryClass;
  }

  /** Moves the platform into a test's time. */
  useClock(clock: Clock): void {
    this.#clock = clock;
  }

  /**
   * Puts a file on the platform. Returns what an event's media refers to it by:
   * `ann.send({ media: [{ kind: "image", ref: platform.addFile(bytes) }] })`.
   */
  addFile(bytes: Uint8Array): { fileId: string } {
    const fileId = `file-${this.files.size + 1}`;
    this.files.set(fileId, bytes.slice());
    return { fileId };
  }

  /** Fails the next call in this way. */
  failNext(...faults: Fault[]): void {
    const queue = [...faults];
    const before = this.fault;
    this.fault = (call) => {
      const next = queue.shift();
      if (queue.length === 0) this.fault = before;
      return next ?? before(call);
    };
  }

  send(
    chat: string,
    text: string,
    buttons: LedgerEntry["buttons"],
    marker: string,
  ): Promise<SendResult> {
    return this.#call({ chat, text, marker }, () => this.#accept(chat, text, buttons, marker));
  }

  /** Gives a message another text, or refuses as it would a send. */
  revise(
    chat: string,
    id: string,
    text: string,
    buttons: LedgerEntry["buttons"],
  ): Promise<SendResult> {
    return this.#call({ chat, text, marker: "", changes: id }, () => {
      const entry = this.ledger.find((one) => one.id === id && !one.deleted);
      if (entry === undefined) return undefined;
      entry.text = text;
      entry.buttons = buttons;
      this.revisions.push({ id, chat, text, at: this.#clock.now() });
      return { id, kind: "text" };
    });
  }

  /** Shows a draft. */
  draft(chat: string, id: string, text: string): Promise<SendResult> {
    return this.#call({ chat, text, marker: "", changes: id }, () => {
      this.drafts.push({ id, chat, text, at: this.#clock.now() });
      return { id, kind: "text" };
    });
  }

  /** A call, as the fault of the moment has it. */
  async #call(
    about: Omit<PlatformCall, "n">,
    accept: () => PartReceipt | undefined,
  ): Promise<SendResult> {
    const call = { ...about, n: this.calls.length + 1 };
    this.calls.push(call);
    const fault = this.fault(call);
    const latency = this.latency();
    if (latency > 0) await sleep(this.#clock, latency);
    switch (fault?.type) {
      case undefined: {
        const receipt = accept();
        return receipt === undefined
          ? { ok: false, kind: "not_found", evidence: "not_sent", message: "no such message" }
          : { ok: true, receipt };
      }
      case "refuse":
        return {
          ok: false,
          kind: fault.kind,
          evidence: "not_sent",
          message: fault.message ?? `refused: ${fault.kind}`,
          ...(fault.retryAfterMs === undefined ? {} : { retryAfterMs: fault.retryAfterMs }),
          ...(fault.fallback === undefined ? {} : { fallback: fault.fallback }),
        };
      case "moved":
        return {
          ok: false,
          kind: "conflict",
          evidence: "not_sent",
          message: "the chat has moved",
          migratedTo: { channel: "mock", chat: fault.to },
        };
      case "drop":
        throw new Error("connection reset");
      case "acceptThenDrop":
        accept();
        throw new Error("connection reset");
      case "acceptThenHang":
        accept();
        return new Promise(() => {});
      case "hang":
        return new Promise(() => {});
      case "serverError":
        return { ok: false, kind: "transient", evidence: "maybe_sent", message: "502 bad gateway" };
      case "noId":
        accept();
        return { ok: true, receipt: { id: "", kind: "text" } };
    }
  }

  async reconcile(marker: string): Promise<ReconcileResult> {
    if (!this.healthy()) return { result: "unresolved" };
    const found = this.#byMarker.get(marker);
    return found === undefined
      ? { result: "not_sent" }
      : { result: "sent", receipt: { id: found.id, kind: "text" } };
  }

  edit(id: string, text: string): boolean {
    const entry = this.ledger.find((one) => one.id === id);
    if (entry !== undefined) entry.text = text;
    return entry !== undefined;
  }

  remove(id: string): boolean {
    const entry = this.ledger.find((one) => one.id === id);
    if (entry !== undefined) entry.deleted = true;
    return entry !== undefined;
  }

  /** What a chat shows now, oldest first. */
  screen(chat: string): string[] {
    return this.ledger
      .filter((entry) => entry.chat === chat && !entry.deleted)
      .map((entry) => entry.text);
  }

  #accept(
    chat: string,
    text: string,
    buttons: LedgerEntry["buttons"],
    marker: string,
  ): PartReceipt {
    const known = this.#byMarker.get(marker);
    if (known !== undefined && this.class === "keyed") return { id: known.id, kind: "text" };
    this.#ids += 1;
    const entry = {
      id: `m${this.#ids}`,
      chat,
      text,
      buttons,
      marker,
      at: this.#clock.now(),
      deleted: false,
    };
    this.ledger.push(entry);
    this.#byMarker.set(marker, entry);
    return { id: entry.id, kind: "text" };
  }
}
