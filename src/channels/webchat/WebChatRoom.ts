/**
 * One session of the web chat, over any `Host`: what the user and the bot said, in one order, and the
 * sockets that show it. It stands where a platform stands for other channels, so it makes the same two
 * promises: a message is acknowledged only when the bot's journal has it, and a send under a known
 * marker is not carried out again.
 *
 * Nothing here holds a timer: a timer would keep the object in memory, and on the bill, for as long as
 * a page is open (reference: channels-2 §15).
 *
 * @module
 */
import type { Host } from "../../host/Host.ts";
import { Forwarder, MAX_OPEN, RETRY_MS } from "./Forwarder.ts";
import type { LogTable } from "./LogTable.ts";
import {
  type ClientFrame,
  DRAFT_MS,
  encodeFrame,
  parseFrame,
  type RoomAnswer,
  type RoomCalls,
  type ServerFrame,
  type WebMessage,
} from "./protocol.ts";
import { RoomStore } from "./RoomStore.ts";
import { type UserBody, type UserRow, userEntry } from "./rows.ts";

/** The most characters of one recorded message; its texts alone are far below. */
const MAX_MESSAGE_CHARACTERS = 131_072;
/** How long a page shows that the bot is typing, in ms. */
const TYPING_MS = 6_000;

/** The sockets of this session that said `hello`. */
export interface SocketPort {
  /** Sends to all of them. Never throws. */
  send(text: string): void;
  /** How many there are. */
  count(): number;
}

/** The socket that a frame came from. */
export interface SocketReply {
  send(text: string): void;
  /** From now on the socket gets what {@link SocketPort.send} sends. */
  greet(): void;
}

/** The engine of one session. */
export class WebChatRoom {
  readonly #host: Host;
  readonly #sockets: SocketPort;
  readonly #store: RoomStore;
  readonly #log: LogTable;
  readonly #forwarder: Forwarder;
  /** What the bot is writing. In memory only: a room that lost it is told all of it again. */
  #writing: { id: string; message: WebMessage; at: number } | undefined;

  /**
   * Never throws and touches no storage.
   * @param name the object's name: the scope and the session, the same as the chat actor's
   */
  constructor(host: Host, name: string, sockets: SocketPort) {
    this.#host = host;
    this.#sockets = sockets;
    this.#store = new RoomStore(host);
    this.#log = this.#store.log;
    this.#forwarder = new Forwarder(host, name, this.#store, {
      accepted: ({ cid, seq }) => this.#show({ t: "ack", cid, seq }),
      refused: ({ cid }, afterMs) => this.#show(nack(cid, afterMs, true)),
    });
  }

  /**
   * What the bot's channel calls. JSON both ways.
   * @throws {Error} for a method that there is not
   */
  async call(method: string, payload: string): Promise<string> {
    const input: unknown = JSON.parse(payload);
    switch (method as keyof RoomCalls) {
      case "deliver":
        return JSON.stringify(this.deliver(input as RoomCalls["deliver"]));
      case "edit":
        return JSON.stringify(this.edit(input as RoomCalls["edit"]));
      case "remove":
        return JSON.stringify(this.remove(input as RoomCalls["remove"]));
      case "typing":
        return JSON.stringify(this.typing());
      case "draft":
        return JSON.stringify(this.draft(input as RoomCalls["draft"]));
      default:
        throw new Error(`a web chat has no method "${method}"`);
    }
  }

  /** Records a message of the bot once per marker, and shows it. */
  deliver({ marker, message }: RoomCalls["deliver"]): RoomAnswer {
    const refusal = refusalOf(marker, message);
    if (refusal !== undefined) return refusal;
    const now = this.#host.clock.now();
    const { seq, fresh } = this.#store.commit("webchat.deliver", () => {
      const added = this.#log.addBot(marker, message, now);
      if (added.fresh) this.#store.grown(now);
      return added;
    });
    if (fresh) {
      this.#writing = undefined;
      const entry = { seq, at: now, kind: "bot" as const, mid: marker, message };
      this.#show({ t: "log", entries: [entry] });
    } else {
      this.#show({ t: "repeat", mid: marker });
    }
    return { ok: true, id: marker, seq };
  }

  /** Replaces a message of the bot. A repeat changes nothing. */
  edit({ id, message }: RoomCalls["edit"]): RoomAnswer {
    return refusalOf(id, message) ?? this.#change(id, message);
  }

  /** Removes a message of the bot. Its marker stays, so that a late repeat does not bring it back. */
  remove({ id }: RoomCalls["remove"]): RoomAnswer {
    return this.#change(id, null);
  }

  /** Shows that the bot is typing. Nothing is recorded. */
  typing(): RoomAnswer {
    if (this.#sockets.count() > 0) this.#show({ t: "typing", ms: TYPING_MS });
    return { ok: true, id: "", seq: 0 };
  }

  /** Shows what the bot is writing: only what is new of it. Nothing is recorded. */
  draft({ id, message }: RoomCalls["draft"]): RoomAnswer {
    const refusal = refusalOf(id, message);
    if (refusal !== undefined) return refusal;
    const before = this.#writing?.id === id ? (this.#writing.message.text ?? "") : "";
    this.#writing = { id, message, at: this.#host.clock.now() };
    if (this.#sockets.count() > 0) this.#show(draftFrame(id, message, before));
    return { ok: true, id, seq: 0 };
  }

  /** One frame of a page, admitted by the gate. */
  async message(text: string, socket: SocketReply): Promise<void> {
    const frame = parseFrame(text);
    switch (frame.t) {
      case "hello":
        this.resume(frame.lastSeq, socket);
        // Whoever sent what is still open may be gone for good: closed tabs send nothing again.
        if (this.#log.hasOpen(1)) await this.#forwarder.flush();
        break;
      case "error":
        socket.send(encodeFrame(frame));
        break;
      default:
        await this.#admit(frame, socket);
    }
  }

  /** Sends a page everything after the last entry that it has. No await: nothing comes in between. */
  resume(lastSeq: number, socket: SocketReply): void {
    const end = this.#log.lastSeq();
    // Numbers only rise, so a page that is ahead has seen entries that a restore took back.
    const reset = lastSeq > end;
    if (reset) socket.send(encodeFrame({ t: "log", entries: [], replay: true, reset: true }));
    for (const entries of this.#log.after(reset ? 0 : lastSeq)) {
      socket.send(encodeFrame({ t: "log", entries, replay: true }));
    }
    socket.send(encodeFrame({ t: "ready", seq: end }));
    const draft = this.#writing;
    if (draft !== undefined && this.#host.clock.now() - draft.at < DRAFT_MS)
      socket.send(encodeFrame(draftFrame(draft.id, draft.message)));
    socket.greet();
  }

  /** The object's alarm: hands over what the bot has not got, and deletes what is too old. */
  async alarm(): Promise<void> {
    this.#store.fired();
    if (!this.#log.exists()) return;
    await this.#forwarder.flush();
    const lost = await this.#store.purge();
    if (lost > 0) this.#host.log.error("messages expired that the bot could not take", { lost });
  }

  /** Stores a message, then hands it to the bot. */
  async #admit(frame: Exclude<ClientFrame, { t: "hello" }>, socket: SocketReply): Promise<void> {
    const now = this.#host.clock.now();
    let stored: { row: UserRow; fresh: boolean } | undefined;
    try {
      stored = this.#store.commit("webchat.store", () => {
        if (this.#log.hasOpen(MAX_OPEN)) return undefined;
        const kind = frame.t === "msg" ? "user" : "press";
        const added = this.#log.addUser(frame.cid, kind, bodyOf(frame), now);
        if (added.fresh) this.#store.grown(now);
        return added;
      });
    } catch (error) {
      this.#host.rethrowIfHalted(error);
      this.#host.log.error("a message could not be stored", { error: String(error) });
      socket.send(encodeFrame(nack(frame.cid, RETRY_MS, false)));
      return;
    }
    if (stored === undefined) {
      socket.send(encodeFrame(nack(frame.cid, RETRY_MS, false)));
    } else if (!stored.row.open) {
      socket.send(encodeFrame({ t: "ack", cid: frame.cid, seq: stored.row.seq }));
      return;
    } else if (stored.fresh) {
      this.#show({ t: "log", entries: [userEntry(stored.row)] });
    }
    await this.#forwarder.flush();
  }

  #change(id: string, message: RoomCalls["edit"]["message"] | null): RoomAnswer {
    const now = this.#host.clock.now();
    const done = this.#log.exists()
      ? this.#store.commit("webchat.change", () => {
          const changed = this.#log.change(id, message, now);
          if (changed?.changed) this.#store.grown(now);
          return changed;
        })
      : undefined;
    if (done === undefined) {
      return { ok: false, kind: "not_found", message: "the session has no such message" };
    }
    if (done.changed) {
      const entry = { seq: done.seq, at: now, mid: id };
      this.#show({
        t: "log",
        entries: [
          message === null
            ? { ...entry, kind: "remove" as const }
            : { ...entry, kind: "edit" as const, message },
        ],
      });
    }
    return { ok: true, id, seq: done.seq };
  }

  #show(frame: ServerFrame): void {
    this.#sockets.send(encodeFrame(frame));
  }
}

function bodyOf(frame: Exclude<ClientFrame, { t: "hello" }>): UserBody {
  if (frame.t === "msg") return { text: frame.text };
  const { mid, value, label } = frame;
  return label === undefined ? { mid, value } : { mid, value, label };
}

function draftFrame(id: string, message: WebMessage, before = ""): ServerFrame {
  const { text = "", spans } = message;
  let keep = 0;
  while (keep < text.length && text[keep] === before[keep]) keep += 1;
  return {
    t: "draft",
    id,
    keep,
    text: text.slice(keep),
    ...(spans === undefined ? {} : { spans }),
  };
}

function nack(cid: string, afterMs: number, stored: boolean): ServerFrame {
  return { t: "nack", cid, retry: true, afterMs, stored };
}

function refusalOf(id: unknown, message: unknown): RoomAnswer | undefined {
  if (typeof id !== "string" || id === "" || typeof message !== "object" || message === null) {
    return { ok: false, kind: "invalid_payload", message: "the message has no form" };
  }
  if (JSON.stringify(message).length <= MAX_MESSAGE_CHARACTERS) return undefined;
  return {
    ok: false,
    kind: "payload_too_large",
    message: `a message holds at most ${MAX_MESSAGE_CHARACTERS} characters with its formatting`,
  };
}
