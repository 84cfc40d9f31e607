/**
 * What the platform reports of messages that it accepted: delivered, read, failed, or the message itself
 * come back. A report can settle a send whose answer was lost, and can be faster than the answer.
 *
 * @module
 */
import type { JsonObject } from "../channels/content.ts";
import type { DeliveryStatus, InboundEvent } from "../channels/events.ts";
import { type OutboxRow, OWES, readExtra, writeExtra } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { markedAt } from "./doubt.ts";
import { follow } from "./follow.ts";
import { placeOfMarker } from "./keys.ts";

/** Statuses for rows whose receipt is not there yet, kept in memory. */
const MAX_EARLY_STATUSES = 50;
/** Rows that an echo without marker and id is compared with. */
const ECHO_CANDIDATES = 50;

/**
 * How old a doubt may be that an echo settles by its text alone, in ms. Echoes come within seconds, and a
 * webhook that was refused comes again within minutes; bots say the same words every day.
 */
const ECHO_MS = 600_000;

/** The delivery statuses of one chat. */
export class Statuses {
  readonly #core: Core;
  readonly #isHeld: (row: OutboxRow) => boolean;
  readonly #inFlight: () => OutboxRow | undefined;
  readonly #early: DeliveryStatus[] = [];

  /**
   * @param isHeld whether a live turn delivers a part by itself
   * @param inFlight the row that is being sent right now
   */
  constructor(
    core: Core,
    isHeld: (row: OutboxRow) => boolean,
    inFlight: () => OutboxRow | undefined,
  ) {
    this.#core = core;
    this.#isHeld = isHeld;
    this.#inFlight = inFlight;
  }

  /** Applies a delivery status. Call inside the receive commit. Returns the row it was about. */
  apply(status: DeliveryStatus): OutboxRow | undefined {
    const row = this.#find(status.marker, status.platformId);
    if (row === undefined) {
      this.#keepEarly(status);
      return undefined;
    }
    this.#settle(row, status);
    return row;
  }

  /**
   * Whether a self-authored event is our own message come back: by its marker, by its id, or, while a
   * send is in flight or in doubt, by its text. Settles an unknown send. Call inside the receive commit.
   */
  absorbEcho(event: InboundEvent): boolean {
    const row = this.#find(event.marker, event.messageId) ?? this.#inDoubtWith(event.text);
    if (row === undefined) return false;
    this.#settle(row, {
      status: "sent",
      at: event.at,
      chat: event.chat,
      ...(event.messageId === undefined ? {} : { platformId: event.messageId }),
    });
    return true;
  }

  /**
   * The send that may be out and says this: the one in flight, else the newest. An old doubt is not settled
   * by text: somebody would take a lost message for sent because the same was said again.
   */
  #inDoubtWith(text: string | undefined): OutboxRow | undefined {
    const { textOf } = this.#core.channel().outbound;
    const said = text === undefined ? "" : squeeze(text);
    if (textOf === undefined || said === "") return undefined;
    const { outbox } = this.#core.journal;
    const flying = this.#inFlight();
    const says = (row: OutboxRow): boolean => squeeze(readText(row, textOf) ?? "") === said;
    if (flying !== undefined && isInDoubt(flying) && says(flying)) return flying;
    const since = this.#core.now() - ECHO_MS;
    const { leaseMs } = this.#core.settings.outbox;
    const rows = [
      ...outbox.waiting(ECHO_CANDIDATES),
      ...outbox.list("unknown", { turn: Number.MAX_SAFE_INTEGER, pos: 0 }, ECHO_CANDIDATES),
    ];
    return rows
      .filter((row) => isInDoubt(row) && (row.first_maybe_at ?? markedAt(row, leaseMs)) >= since)
      .sort((a, b) => b.turn - a.turn || b.pos - a.pos)
      .find(says);
  }

  #find(marker: string | undefined, platformId: string | undefined): OutboxRow | undefined {
    const { outbox, side } = this.#core.journal;
    if (marker !== undefined) {
      const place = placeOfMarker(marker);
      const row = place && outbox.get(place.turn, place.pos);
      if (row?.marker === marker) return row;
    }
    const place = platformId === undefined ? undefined : side.receipt(platformId);
    return place && outbox.get(place.turn, place.pos);
  }

  #settle(row: OutboxRow, status: DeliveryStatus): void {
    const { outbox } = this.#core.journal;
    const extra = readExtra(row);
    if (status.status === "failed") {
      this.#applyFailure(row, status);
      return;
    }
    const rank = ["sent", "delivered", "read"];
    const delivery = status.status === "sent" ? undefined : status.status;
    if (row.state === "sent") {
      const known = rank.indexOf(extra.delivery ?? "sent");
      if (delivery === undefined || rank.indexOf(delivery) <= known) return;
      outbox.update(row, { extra: writeExtra({ ...extra, delivery }) });
      return;
    }
    if (row.state !== "sending" && row.state !== "unknown" && row.state !== "failed") return;
    // Proof of an attempt whose answer was lost, or is still on its way.
    const tell = this.#core.bot.hasAfterSend && row.origin !== "runtime";
    const owed = row.owed | (tell ? OWES.afterSend : 0);
    outbox.move(row, "sent", {
      receipt: JSON.stringify({
        id: status.platformId ?? row.marker ?? "",
        kind: "other",
        at: status.at,
      }),
      extra: writeExtra({ ...extra, ...(delivery === undefined ? {} : { delivery }) }),
      error: null,
      error_kind: null,
      finished_at: this.#core.now(),
      claim: null,
      ...this.#owing(owed),
    });
    follow(this.#core, row, this.#isHeld);
  }

  /** The platform could not deliver what it had accepted. */
  #applyFailure(row: OutboxRow, status: DeliveryStatus): void {
    if (row.state === "sending" || row.state === "failed") {
      // The answer that says what was accepted is still on its way.
      this.#keepEarly(status);
      return;
    }
    if (row.state !== "sent" && row.state !== "unknown") return;
    const tell = this.#core.bot.hasListener("durability:dead") && row.origin !== "runtime";
    const told = tell ? OWES.dead : 0;
    this.#core.journal.outbox.move(row, "dead", {
      error_kind: status.error?.kind ?? "unknown",
      error: status.error?.message ?? "the platform could not deliver it",
      extra: writeExtra({ ...readExtra(row), delivery: "failed" }),
      ...this.#owing(row.owed | told),
    });
    this.#core.metrics.count("outboxDead");
    follow(this.#core, row, this.#isHeld);
  }

  /** What a finished row owes to listeners, with the wake-up for it. Call inside a commit. */
  #owing(owed: number): { owed: number; due_at: number | null } {
    if (owed === 0) return { owed, due_at: null };
    const due_at = this.#core.now() + this.#core.settings.outbox.leaseMs;
    this.#core.alarm.arm(due_at);
    return { owed, due_at };
  }

  #keepEarly(status: DeliveryStatus): void {
    this.#early.push(status);
    if (this.#early.length > MAX_EARLY_STATUSES) this.#early.shift();
  }

  /** Applies what came before the answer did. */
  applyEarly(row: OutboxRow): void {
    const id = row.receipt === null ? undefined : (JSON.parse(row.receipt) as { id: string }).id;
    const mine = this.#early.filter(
      (status) =>
        (status.platformId !== undefined && status.platformId === id) ||
        (status.marker !== undefined && status.marker === row.marker),
    );
    if (mine.length === 0) return;
    this.#core.journal.commit("outbox.status", () => {
      for (const status of mine) this.#settle(row, status);
    });
    for (const status of mine) this.#early.splice(this.#early.indexOf(status), 1);
  }
}

/** Platforms change white space on the way. */
function squeeze(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function isInDoubt(row: OutboxRow): boolean {
  return row.state === "sending" || row.state === "unknown";
}

/** A request that cannot be read belongs to no echo, and must not stop what arrived with it. */
function readText(
  row: OutboxRow,
  textOf: (request: JsonObject) => string | undefined,
): string | undefined {
  try {
    return textOf(JSON.parse(row.request) as JsonObject);
  } catch {
    return undefined;
  }
}
