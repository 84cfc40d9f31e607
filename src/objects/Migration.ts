/**
 * A platform renames a chat (a Telegram group becomes a supergroup). The old actor stays the one that
 * owns the chat: it says what the new address is, and the actor of the new name forwards to it.
 *
 * The forward is installed by whoever learns of the move first. Until it stands, it is owed by a row of
 * the old actor and tried again by its alarm. Who owns the chat is one recorded fact: an actor that
 * forwards takes over no move, one that has taken over a move forwards to nobody.
 *
 * @module
 */

import { encodeKey } from "../outbox/keys.ts";
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
/** A chat may be renamed more than once; so many actors pass a call on. */
const MAX_HOPS = 4;
/** How long arrivals are asked to come back while this actor ends what it had, in ms. */
const FINISH_MS = 30_000;

/** Methods that go to the owner of the chat, whatever records are left here. */
const FORWARDED: ReadonlySet<string> = new Set([
  "relay",
  "edit",
  "delete",
  "readState",
  "writeState",
  "startFlow",
]);
/** Methods about one key: to the owner, unless the key is on record here. */
const BY_KEY: ReadonlySet<string> = new Set(["send", "cancel"]);
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
  "cancelFlow",
  "listFlows",
  "getFlow",
]);

/** What a call that was passed on carries: the actors that it came through. */
interface Passed {
  via?: string[];
}

/** The moves of one actor. */
export class Migration {
  readonly #core: Core;
  /** `null` until it was read. */
  #forward: string | undefined | null = null;
  #owed: string | undefined | null = null;
  #retryAt = 0;
  #installing = false;
  /** When something first arrived for the owner while this actor had work of its own. */
  #finishingSince: number | undefined;

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
    // What is left here goes to the new address; the move itself is the owner's.
    if (this.#target() !== undefined) return;
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
      const answer = await withDeadline(host.clock, CALL_MS, told);
      if (answer === TIMED_OUT) throw new Error("the actor of the new name did not answer");
      const { value } = JSON.parse(answer) as { value?: { owner?: boolean } | null };
      journal.commit("migration.installed", () => {
        // The chat may have been renamed once more meanwhile: that forward is still owed.
        if (journal.fact(OWED) !== other) return;
        journal.setFact(OWED, "");
        // It has taken over a move itself, and owns what both are now.
        if (value?.owner === true) journal.setFact(FORWARD, other);
      });
      this.#owed = null;
      this.#forward = null;
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

  /**
   * This actor has the new name of a chat that another owns. Returns whether it owns a chat itself, and so
   * forwards to nobody.
   */
  setForward(to: string): { owner: boolean } {
    if (to === this.#core.name || this.#target() === to) return { owner: false };
    if (this.#owns()) return { owner: true };
    this.#core.journal.commit("migration.forward", () => this.#core.journal.setFact(FORWARD, to));
    this.#forward = null;
    return { owner: false };
  }

  /** Whether this actor has taken over a move: its chat has another name than it has. */
  #owns(): boolean {
    const { journal, bot, name } = this.#core;
    const identity = journal.identity();
    const channel = identity && bot.channel(identity.connection);
    if (identity === undefined || channel === undefined || this.#target() !== undefined)
      return false;
    const { chat, thread } = identity;
    const key = chatKeyOf(channel, { chat, ...(thread === undefined ? {} : { thread }) });
    return chatActorName(bot.scope, identity.connection, key) !== name;
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

  /** The owner that a call goes to; `undefined`: it is answered here. */
  ownerFor(method: string, payload: string): string | undefined {
    const to = this.#target();
    if (to === undefined) return undefined;
    const { via } = JSON.parse(payload) as Passed;
    if (this.#isLoop(via)) return undefined;
    if (FORWARDED.has(method)) return to;
    if (BY_KEY.has(method)) return this.#isKeyKnown(payload) ? undefined : to;
    return ABOUT_RECORDS.has(method) && this.#core.journal.isBare() ? to : undefined;
  }

  /** A key that was used here is not used a second time there. */
  #isKeyKnown(payload: string): boolean {
    const { journal } = this.#core;
    const { key, options } = JSON.parse(payload) as {
      key?: string;
      options?: { idempotencyKey?: string };
    };
    const given = key ?? options?.idempotencyKey;
    if (given === undefined || !journal.exists()) return false;
    const { outbox } = journal;
    return outbox.byKey(encodeKey(given)) !== undefined || outbox.byKey(given) !== undefined;
  }

  /** What was passed on by this very actor has gone in a circle: it ends here, and the forward with it. */
  #isLoop(via: readonly string[] | undefined): boolean {
    const { name, journal, host } = this.#core;
    if (via?.includes(name) !== true) return false;
    host.log.error("two actors of a renamed chat pointed at each other: this one owns it now", {
      to: this.#target() ?? "",
    });
    journal.commit("migration.forward", () => journal.setFact(FORWARD, ""));
    this.#forward = null;
    return true;
  }

  /**
   * Passes a call on to the owner. A transport error stays one: the call may have run.
   * @throws past {@link MAX_HOPS}
   */
  pass(owner: string, method: string, payload: string): Promise<string> {
    const input = JSON.parse(payload) as Passed;
    const via = [...(input.via ?? []), this.#core.name];
    if (via.length > MAX_HOPS)
      throw new Error(`this chat was forwarded more than ${MAX_HOPS} times: ${via.join(", ")}`);
    const passed = JSON.stringify({ ...input, via });
    return this.#core.host.actors.call("ChatActor", owner, method, passed);
  }

  /**
   * Forwards what arrived, unless it is on record here. While this actor has work of its own, the platform
   * is asked to come back, so that order holds; not for ever, since that work may never end.
   */
  async forward(request: ReceiveRequest): Promise<string | undefined> {
    const to = this.#target();
    if (to === undefined || this.#isLoop(request.via)) return undefined;
    const { journal } = this.#core;
    const known = request.items.map(
      (item) => item.type === "event" && journal.inbox.byId(item.event.id) !== undefined,
    );
    const items = request.items.filter((_item, index) => known[index] !== true);
    if (items.length === 0) return undefined;
    if (journal.inbox.waiting() > 0 && !this.#isLate()) {
      const later: ReceiveAnswer = { ok: false, retryAfterSeconds: 1, reason: "moving" };
      return JSON.stringify(later);
    }
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

  /** Whether the owner has waited for this actor's own work for long enough. */
  #isLate(): boolean {
    const now = this.#core.now();
    this.#finishingSince ??= now;
    return now - this.#finishingSince >= FINISH_MS;
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
