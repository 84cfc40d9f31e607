/**
 * A platform renames a chat (a Telegram group becomes a supergroup). The old actor stays the one that
 * owns the chat: it says what the new address is, and the actor of the new name forwards to it.
 *
 * The forward is installed by whoever learns of the move first. Until it stands, it is owed by a row of
 * the old actor and tried again by its alarm.
 *
 * @module
 */
import { TIMED_OUT, withDeadline } from "../time/Clock.ts";
import type { ReceiveAnswer, ReceiveRequest } from "./Admission.ts";
import type { Core } from "./Core.ts";
import { chatActorName, chatKeyOf } from "./names.ts";

/** Meta keys: where this actor forwards to, and which actor has still to be told to forward here. */
const FORWARD = "forward";
const OWED = "forward_owed";
/** How long a call to the other actor may take, in ms. */
const CALL_MS = 10_000;
/** Between two tries to install the forward, in ms. */
const RETRY_MS = 5_000;
/** Actors that point at each other must end. */
const MAX_HOPS = 4;

/** Methods that go to the owner of the chat, whatever records are left here. */
const FORWARDED: ReadonlySet<string> = new Set([
  "send",
  "relay",
  "edit",
  "delete",
  "cancel",
  "readState",
  "writeState",
]);
/** Methods about records: they go to the owner once none are left here. */
const ABOUT_RECORDS: ReadonlySet<string> = new Set([
  "listInbox",
  "listOutbox",
  "getInbox",
  "getOutbox",
  "replay",
  "retry",
  "discardEvent",
  "discardSend",
  "log",
]);

/** The moves of one actor. */
export class Migration {
  readonly #core: Core;
  /** `null` until it was read. */
  #forward: string | undefined | null = null;
  #owed: string | undefined | null = null;
  #retryAt = 0;
  #installing = false;

  constructor(core: Core) {
    this.#core = core;
  }

  /** The chat has a new address. Call inside a commit; `install` goes on after it. */
  moved(to: { chat: string; thread?: string | undefined }): void {
    const { journal, bot, alarm, host } = this.#core;
    const { v: _version, thread: _thread, ...identity } = this.#core.identity();
    if (identity.chat === to.chat) return;
    const thread = to.thread === undefined ? {} : { thread: to.thread };
    journal.identify({ ...identity, chat: to.chat, ...thread });
    const channel = bot.channel(identity.connection);
    if (channel === undefined) return;
    const key = chatKeyOf(channel, { chat: to.chat, ...thread });
    const other = chatActorName(bot.scope, identity.connection, key);
    if (other === this.#core.name) return;
    journal.setFact(OWED, other);
    this.#owed = null;
    alarm.arm(this.#core.now() + RETRY_MS);
    host.keepAlive(Promise.resolve().then(() => this.install()));
  }

  /** When the alarm is needed for a forward that is not installed yet. */
  nextAt(): number | undefined {
    if (this.#owes() === undefined) return undefined;
    const now = this.#core.now();
    return this.#installing ? now + CALL_MS : Math.max(this.#retryAt, now);
  }

  /** Tells the actor of the new name to forward here, if it has still to be told. */
  async install(): Promise<void> {
    const other = this.#owes();
    if (other === undefined || this.#installing || this.#core.now() < this.#retryAt) return;
    const { host, journal } = this.#core;
    this.#installing = true;
    this.#retryAt = this.#core.now() + RETRY_MS;
    try {
      const { v: _version, name, ...identity } = this.#core.identity();
      const payload = JSON.stringify({ to: name, identity });
      const told = host.actors.call("ChatActor", other, "forward", payload);
      if ((await withDeadline(host.clock, CALL_MS, told)) === TIMED_OUT)
        throw new Error("the actor of the new name did not answer");
      journal.commit("migration.installed", () => {
        // The chat may have been renamed once more meanwhile: that forward is still owed.
        if (journal.fact(OWED) === other) journal.setFact(OWED, "");
      });
      this.#owed = null;
    } catch (error) {
      host.rethrowIfHalted(error);
      host.log.warn("the forward of a moved chat could not be installed yet", {
        to: other,
        error: String(error),
      });
      const at = this.#core.now() + RETRY_MS;
      if (this.#core.alarm.isLaterThan(at))
        journal.commit("migration.retry", () => this.#core.alarm.arm(at));
    } finally {
      this.#installing = false;
    }
  }

  /** This actor has the new name of a chat that another owns. */
  setForward(to: string): void {
    if (to === this.#core.name || this.#target() === to) return;
    this.#core.journal.commit("migration.forward", () => this.#core.journal.setFact(FORWARD, to));
    this.#forward = null;
  }

  /** Whether a request may belong to another actor. Cheap, since every webhook asks. */
  concerns(request: ReceiveRequest): boolean {
    if (this.#target() !== undefined) return true;
    return request.items.some((item) => {
      const move = item.type === "event" ? item.event.migration : undefined;
      // An old name that has a journal owns the chat, and need not ask.
      return move?.from !== undefined || (move !== undefined && !this.#core.journal.exists());
    });
  }

  /** The owner that a call of this method goes to; `undefined`: it is answered here. */
  ownerFor(method: string): string | undefined {
    const to = this.#target();
    if (to === undefined) return undefined;
    if (FORWARDED.has(method)) return to;
    return ABOUT_RECORDS.has(method) && this.#core.journal.isBare() ? to : undefined;
  }

  /**
   * Passes a call on to the owner. A transport error stays one: the call may have run.
   * @throws when actors that point at each other have passed it around too often
   */
  pass(owner: string, method: string, payload: string): Promise<string> {
    const input = JSON.parse(payload) as { hops?: number };
    const hops = (input.hops ?? 0) + 1;
    if (hops > MAX_HOPS)
      throw new Error(
        `this chat was forwarded more than ${MAX_HOPS} times: its actors point at each other`,
      );
    return this.#core.host.actors.call(
      "ChatActor",
      owner,
      method,
      JSON.stringify({ ...input, hops }),
    );
  }

  /**
   * Forwards what arrived, unless it is this actor's own: what it has on record, and everything while it
   * has work of its own, so that order holds.
   */
  async forward(request: ReceiveRequest): Promise<string | undefined> {
    const to = this.#target();
    if (to === undefined) return undefined;
    const { journal } = this.#core;
    if (journal.inbox.countOpen(1) > 0) return undefined;
    const known = request.items.map(
      (item) => item.type === "event" && journal.inbox.byId(item.event.id) !== undefined,
    );
    const items = request.items.filter((_item, index) => known[index] !== true);
    const passed = await this.pass(to, "receive", JSON.stringify({ ...request, items }));
    const answer = JSON.parse(passed) as ReceiveAnswer;
    if (!answer.ok) return JSON.stringify(answer);
    const rest = [...answer.results];
    const results = known.map((is) => (is ? "duplicate" : (rest.shift() ?? "duplicate")));
    return JSON.stringify({ ok: true, results });
  }

  /**
   * A notice of a move names the other name of the chat: asks that actor whether it owns the chat, and
   * forwards to it if so. The old name's actor owns it, unless it has never heard of the chat before.
   */
  async askOther(request: ReceiveRequest): Promise<void> {
    if (this.#target() !== undefined) return;
    const { host, bot, name } = this.#core;
    const channel = bot.channel(request.connection);
    const move = request.items.flatMap((item) =>
      item.type === "event" && item.event.migration !== undefined ? [item.event.migration] : [],
    )[0];
    const chat = move?.from ?? move?.to;
    if (chat === undefined || channel === undefined) return;
    const other = chatActorName(bot.scope, request.connection, chatKeyOf(channel, { chat }));
    if (other === name) return;
    const payload = JSON.stringify({ chat: request.chat.id, renamed: move?.from !== undefined });
    const asked = host.actors.call("ChatActor", other, "movedTo", payload);
    const answer = await withDeadline(host.clock, CALL_MS, asked);
    if (answer === TIMED_OUT) throw new Error("the actor of the chat's other name did not answer");
    const { value } = JSON.parse(answer) as { value?: { owner: boolean } };
    if (value?.owner === true) this.setForward(other);
  }

  /**
   * Answers whether this actor owns a chat of which another name is in use.
   *
   * @param chat the other name
   * @param renamed whether that is the new one
   */
  movedTo({ chat, renamed }: { chat: string; renamed: boolean }): { owner: boolean } {
    const { journal } = this.#core;
    if (!journal.exists() || journal.identity() === undefined) return { owner: false };
    if (this.#target() !== undefined) return { owner: false };
    if (!renamed) return { owner: !journal.isBare() };
    journal.commit("migration.moved", () => this.moved({ chat }));
    return { owner: true };
  }

  #target(): string | undefined {
    if (this.#forward === null) this.#forward = this.#core.journal.fact(FORWARD);
    return this.#forward;
  }

  #owes(): string | undefined {
    if (this.#owed === null) this.#owed = this.#core.journal.fact(OWED);
    return this.#owed;
  }
}
