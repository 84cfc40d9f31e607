/**
 * Lists and operations across chats: the Registry names the chats, each chat answers for its records.
 *
 * @module
 */
import { ConfigError, type ErrorKind } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { addMetrics, type MetricValues, noMetrics } from "../objects/Metrics.ts";
import { encodePart } from "../objects/names.ts";
import { readRef } from "../objects/paging.ts";
import type { UnfinishedQuery } from "../objects/RegistryBook.ts";
import type { Having, UnfinishedRow } from "../objects/RegistryTable.ts";
import { AcrossPage, type Place, pageSize, readPlace, writePlace } from "./across.ts";
import type { ActorCalls } from "./actorCalls.ts";
import type {
  ChatCounts,
  DurabilityClient,
  InboxRecord,
  Listing,
  OutboxRecord,
  Page,
  RetriedDead,
  RetryDeadOptions,
  UnfinishedChat,
  UnfinishedChats,
} from "./Client.ts";

type Box = "listInbox" | "listOutbox";

/** Chats asked of the Registry at a time. */
const BATCH = 20;
/** How long one actor has to answer, in ms; a page goes on without it. */
const ANSWER_MS = 5_000;

/** Which of its counts says that a chat has records in a state. Others may be anywhere. */
const HAVING: Partial<Record<`${Box} ${string}`, Having>> = {
  "listInbox dead": "dead",
  "listInbox failed": "failed",
  "listOutbox dead": "dead",
  "listOutbox unknown": "unknown",
};

/** Deaths that may be tried again in bulk: all but what an operator discarded. */
const KINDS: readonly ErrorKind[] = [
  "transient",
  "rate_limit",
  "auth",
  "permission",
  "not_found",
  "invalid_payload",
  "payload_too_large",
  "unsupported_content",
  "outside_session_window",
  "recipient_unreachable",
  "conflict",
  "unknown",
];

interface Query extends Page {
  state: string;
  connection?: string | undefined;
}

/** The operators' part of the client. */
export class ActorDurability implements DurabilityClient {
  // Fields, not methods: people take them off the client by name.
  readonly inbox: DurabilityClient["inbox"];
  readonly outbox: DurabilityClient["outbox"];
  readonly chats: DurabilityClient["chats"] = (options) => this.#chats(options);
  readonly counts: DurabilityClient["counts"] = () => this.#counts();
  readonly record: DurabilityClient["record"] = (ref) => this.#record(ref);
  readonly replayInbound: DurabilityClient["replayInbound"] = (ref) =>
    this.#onRecord(ref, { in: "replay" });
  readonly retrySend: DurabilityClient["retrySend"] = (ref) =>
    this.#onRecord(ref, { out: "retry" });
  readonly discard: DurabilityClient["discard"] = (ref) =>
    this.#onRecord(ref, { in: "discardEvent", out: "discardSend" });
  readonly retryDead: DurabilityClient["retryDead"] = (options) => this.#retryDead(options);
  readonly metrics: DurabilityClient["metrics"] = () => this.#metrics();
  readonly #calls: ActorCalls;
  readonly #actorOf: (address: Address | string) => string;

  /** @param actorOf the actor of a chat; throws for a connection that the bot does not have */
  constructor(calls: ActorCalls, actorOf: (address: Address | string) => string) {
    this.#calls = calls;
    this.#actorOf = actorOf;
    this.inbox = { list: (options) => this.#list("listInbox", options) };
    this.outbox = { list: (options) => this.#list("listOutbox", options) };
  }

  async #chats(options: Page & { connection?: string | undefined } = {}): Promise<UnfinishedChats> {
    const limit = pageSize(options.limit);
    const rows: UnfinishedChat[] = [];
    const { shards } = this.#calls;
    let at = readPlace(options.cursor);
    for (let shard = shards[at.shard]; shard !== undefined; shard = shards[at.shard]) {
      const wanted = limit - rows.length;
      const found = await this.#unfinished(shard, at.chat, wanted, options.connection, undefined);
      rows.push(...found.map(shownChat));
      const last = found.at(-1);
      if (found.length === wanted && last !== undefined)
        return { rows, cursor: writePlace({ ...at, chat: last.name }) };
      at = { shard: at.shard + 1, chat: "", inner: "" };
    }
    return { rows };
  }

  async #counts(): Promise<ChatCounts> {
    const all = await Promise.all(
      this.#calls.shards.map((shard) => this.#calls.registry<ChatCounts>(shard, "counts", {})),
    );
    const sum = (name: keyof ChatCounts) => all.reduce((total, one) => total + one[name], 0);
    return { unfinished: sum("unfinished"), overdue: sum("overdue") };
  }

  async #record(ref: string): Promise<InboxRecord | OutboxRecord | undefined> {
    const { actor, box, id } = this.#read(ref);
    const found =
      box === "in"
        ? await this.#calls.chat<InboxRecord | null>(actor, "getInbox", { id })
        : await this.#calls.chat<OutboxRecord | null>(actor, "getOutbox", { key: id });
    return found ?? undefined;
  }

  async #retryDead(options: RetryDeadOptions): Promise<RetriedDead> {
    const { connection, cursor, limit } = options;
    if (typeof connection !== "string" || connection === "")
      throw new ConfigError(
        "connection is missing: name the connection whose sends shall go again",
      );
    const kinds = kindsOf(options.kinds);
    const page = await this.#across("listOutbox", { state: "dead", connection, cursor, limit });
    const { rows, ...rest } = page;
    const wanted = rows.filter((row) => kinds.includes(row.kind as ErrorKind));
    const done: RetriedDead = { retried: 0, skipped: rows.length - wanted.length, failed: [] };
    for (const { ref } of wanted) {
      try {
        // A part revives its whole message; the next part of it finds nothing dead any more.
        if (await this.#calls.within(ANSWER_MS, this.retrySend(ref))) done.retried += 1;
        else done.skipped += 1;
      } catch (error) {
        done.failed.push({ ref, error: textOf(error) });
      }
    }
    return { ...done, ...rest };
  }

  async #metrics(): Promise<MetricValues> {
    const all = await Promise.all(
      this.#calls.shards.map((shard) =>
        this.#calls.registry<Partial<MetricValues>>(shard, "metrics", {}),
      ),
    );
    return all.reduce<MetricValues>((sum, one) => addMetrics(sum, one), noMetrics());
  }

  async #list(
    box: Box,
    options: Page & { state: string; chat?: Address | string | undefined },
  ): Promise<Listing<never>> {
    const { chat, ...page } = options;
    if (chat === undefined) return this.#across(box, page);
    return this.#calls.chat(this.#actorOf(chat), box, page);
  }

  /** Chat by chat, in order of shard and name, so that what changes on the way moves no other row. */
  async #across(box: Box, query: Query): Promise<Listing<never>> {
    const page = new AcrossPage(pageSize(query.limit), this.#calls.now());
    const { shards } = this.#calls;
    let at = readPlace(query.cursor);
    // A cursor is text from outside: it must not lead into another bot's chat.
    if (at.chat !== "" && !at.chat.startsWith(`${this.#calls.prefix}/`))
      throw new ConfigError("this cursor belongs to another bot");
    if (at.inner !== "") at = await this.#readChat(box, query.state, at, page);
    for (let shard = shards[at.shard]; shard !== undefined; shard = shards[at.shard]) {
      if (at.inner !== "" || page.isFull(this.#calls.now())) return page.end(at);
      const { connection, state } = query;
      let chats: UnfinishedRow[];
      try {
        chats = await this.#unfinished(
          shard,
          at.chat,
          BATCH,
          connection,
          HAVING[`${box} ${state}`],
        );
      } catch (error) {
        if (error instanceof ConfigError) throw error;
        // The other shards answer for theirs.
        page.unreachable.push(`registry ${shard}`);
        chats = [];
      }
      for (const { name, address } of chats) {
        at = await this.#readChat(
          box,
          state,
          { shard: at.shard, chat: name, inner: "" },
          page,
          address,
        );
        if (at.inner !== "" || page.isFull(this.#calls.now())) return page.end(at);
      }
      if (chats.length < BATCH) at = { shard: at.shard + 1, chat: "", inner: "" };
    }
    return page.end(undefined);
  }

  /** Reads one chat's records onto the page. A chat that does not answer is named, and passed. */
  async #readChat(
    box: Box,
    state: string,
    at: Place,
    page: AcrossPage,
    address = "",
  ): Promise<Place> {
    page.asked += 1;
    const cursor = at.inner === "" ? {} : { cursor: at.inner };
    try {
      const input = { state, limit: page.left, ...cursor };
      const call = this.#calls.chat<Listing<never>>(at.chat, box, input);
      const found = await this.#calls.within(ANSWER_MS, call);
      page.rows.push(...found.rows);
      return { ...at, inner: found.cursor ?? "" };
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      page.unreachable.push(address === "" ? at.chat : address);
      return { ...at, inner: "" };
    }
  }

  async #unfinished(
    shard: string,
    after: string,
    limit: number,
    connection: string | undefined,
    having: Having | undefined,
  ): Promise<UnfinishedRow[]> {
    const query: UnfinishedQuery = {
      after,
      limit,
      ...(connection === undefined
        ? {}
        : { prefix: `${this.#calls.prefix}/${encodePart(connection)}/` }),
      ...(having === undefined ? {} : { having }),
    };
    const call = this.#calls.registry<{ chats: UnfinishedRow[] }>(shard, "unfinished", query);
    return (await this.#calls.within(ANSWER_MS, call)).chats;
  }

  async #onRecord(ref: string, methods: { in?: string; out?: string }): Promise<boolean> {
    const { actor, box, id } = this.#read(ref);
    const method = methods[box];
    if (method === undefined) {
      throw new ConfigError(
        box === "in"
          ? "this `ref` is of an inbound event; use replayInbound"
          : "this `ref` is of a send; use retrySend",
      );
    }
    return this.#calls.chat(actor, method, box === "in" ? { id } : { key: id });
  }

  #read(ref: string): ReturnType<typeof readRef> {
    const record = readRef(ref);
    if (!record.actor.startsWith(`${this.#calls.prefix}/`))
      throw new ConfigError("this `ref` belongs to another bot");
    return record;
  }
}

function shownChat(row: UnfinishedRow): UnfinishedChat {
  const { name, address, dead, unknown, failed, due_at, at } = row;
  return {
    address: address === "" ? name : address,
    dead,
    unknown,
    failed,
    ...(due_at === null ? {} : { dueAt: due_at }),
    at,
  };
}

function kindsOf(kinds: readonly ErrorKind[] | undefined): readonly ErrorKind[] {
  const wanted = kinds ?? ["auth", "permission"];
  if (!Array.isArray(wanted) || wanted.length === 0 || wanted.some((one) => !KINDS.includes(one)))
    throw new ConfigError(
      `kinds is ${JSON.stringify(kinds).slice(0, 80)}, but must be a list of: ${KINDS.join(", ")}`,
    );
  return wanted;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
