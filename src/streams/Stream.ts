/**
 * One answer while it is written: reads the source, and shows what is there so far, newest wins. Memory
 * only; the answer is recorded once it is whole, or when its turn ends. A look at it is never worth
 * waiting for: where the lane is busy or the platform wants silence, the next look shows more.
 *
 * @module
 */
import type { DraftView, RenderedPart, SendResult } from "../channels/channel.ts";
import type { JsonObject } from "../channels/content.ts";
import { isRetryableKind, PayloadTooLargeError, TurnEndedError } from "../channels/errors.ts";
import { isOpen, type OutboxRow } from "../journal/records.ts";
import type { Core } from "../objects/Core.ts";
import { byteLength } from "../outbox/content.ts";
import type { Drain } from "../outbox/Drain.ts";
import type { Draft, Shown } from "../outbox/draft.ts";
import type { Intents } from "../outbox/Intents.ts";
import { fingerprintOf, PREVIEW } from "../outbox/keys.ts";
import { type ChannelCall, callWithin } from "../outbox/platform.ts";
import { renderContent } from "../outbox/render.ts";
import type { OpenStream } from "../outbox/TurnSends.ts";
import { errorText } from "../safety/redact.ts";
import type { CancelTimer } from "../time/Clock.ts";
import { type Pieces, piecesOf } from "./source.ts";
import type { StreamOptions, StreamSource } from "./types.ts";

/** What a stream stands on. */
export interface StreamParts {
  core: Core;
  intents: Intents;
  drain: Drain;
  signal: AbortSignal;
  /** Whether this chat takes drafts; a refusal is remembered. */
  drafts: { refused: boolean };
}

/** One part of the answer, as the chat shows it. */
interface View {
  /** The row that sent it. */
  pos?: number;
  /** The request that it shows; absent where that is not known. */
  shown?: string;
  /** Shown as a draft: there is no message. */
  drafted?: boolean;
  /** An edit had no answer: it may land late. */
  late?: boolean;
  /** The platform takes no edits of it. */
  fixed?: boolean;
}

/** A draft that does not change is shown again after this, in ms: it may be gone after 30 s (`Outbound.draft`). */
const DRAFT_MS = 20_000;
const STOPPED = Symbol("stopped");

/** One streamed answer. */
export class Stream implements OpenStream {
  readonly slot: string;
  readonly #parts: StreamParts;
  readonly #draft: Draft;
  readonly #options: StreamOptions;
  readonly #everyMs: number;
  readonly #views: View[] = [];
  #text = "";
  #bytes = 0;
  /** What was shown last, as the hooks let it pass. */
  #passed: Draft["content"] | undefined;
  #over = false;
  #stop: (value: typeof STOPPED) => void = () => undefined;
  #wake: () => void = () => undefined;

  constructor(parts: StreamParts, draft: Draft, options: StreamOptions, everyMs: number) {
    this.slot = draft.slot;
    this.#parts = parts;
    this.#draft = draft;
    this.#options = options;
    this.#everyMs = everyMs;
    this.#adopt();
  }

  /** Takes over what an earlier run of the turn has shown. */
  #adopt(): void {
    for (;;) {
      const slot = `${this.slot}${PREVIEW}p${this.#views.length}`;
      const row = this.#draft.intent.sends?.recorded(slot);
      if (row === undefined) return;
      // Once it was sent it may have been edited, and the last edit be on its way still.
      this.#views.push(
        row.state === "sent" ? { pos: row.pos, late: true } : { pos: row.pos, shown: row.request },
      );
      if (isOpen(row)) this.#parts.drain.hold(row);
    }
  }

  /**
   * Reads the source to its end, and resolves to the draft of the whole answer.
   * @throws what the source threw, and why the turn was stopped
   */
  async read(source: StreamSource): Promise<Draft> {
    const { core, signal } = this.#parts;
    const pieces = piecesOf(source);
    const stopped = new Promise<typeof STOPPED>((resolve) => {
      this.#stop = resolve;
    });
    const abort = () => this.#stop(STOPPED);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    const showing = this.#everyMs === Number.POSITIVE_INFINITY ? undefined : this.#show();
    // Where the process is gone, so is whoever awaits it below.
    showing?.catch(() => undefined);
    try {
      await this.#take(pieces, stopped);
    } catch (error) {
      core.host.rethrowIfHalted(error);
      pieces.cancel(error);
      // What only a draft shows becomes a message, before anything is said of the error.
      if (!signal.aborted) await this.#keep(showing);
      throw error;
    } finally {
      this.#end();
      signal.removeEventListener("abort", abort);
      await showing;
    }
    return this.#whole({ ...this.#draft.content, text: this.#text });
  }

  async #take(pieces: Pieces, stopped: Promise<typeof STOPPED>): Promise<void> {
    const { core, signal } = this.#parts;
    const limit = core.settings.outbox.maxPayloadBytes;
    for (;;) {
      const next = await Promise.race([pieces.next(), stopped]);
      if (next === STOPPED) throw signal.reason ?? new TurnEndedError("this turn is over");
      if (next.done) return;
      this.#bytes += byteLength(next.value);
      if (this.#bytes > limit)
        throw new PayloadTooLargeError(
          `a streamed answer holds at most ${limit} bytes (outbox.maxPayloadBytes)`,
        );
      this.#text += next.value;
      this.#wake();
    }
  }

  stop(): void {
    this.#end();
    this.#stop(STOPPED);
  }

  remains(): Draft | "keep" | "remove" {
    const { core } = this.#parts;
    const { onInterrupt = "keep" } = this.#options;
    if (onInterrupt === "remove") return "remove";
    // What no hook has seen is not said, where there are hooks.
    const hooked = core.bot.hasBeforeSend;
    const said = hooked ? this.#passed : { ...this.#draft.content, text: this.#text };
    // An earlier run may have shown something: that was said.
    if (said?.text === undefined || said.text.trim() === "") return "keep";
    const text = typeof onInterrupt === "function" ? onInterrupt(said.text) : said.text;
    return text.trim() === "" ? "remove" : this.#whole({ ...said, text });
  }

  #end(): void {
    this.#over = true;
    this.#wake();
  }

  /** The draft of the answer as it stands, with what the chat shows of it. */
  #whole(content: Draft["content"]): Draft {
    const { core } = this.#parts;
    this.#draft.content = content;
    this.#draft.intent = { ...this.#draft.intent, content };
    this.#draft.intendedAt = core.now();
    this.#draft.shown = (parts) => this.#shown(parts);
    return this.#draft;
  }

  #shown(rendered: readonly RenderedPart[]): Shown {
    const { core } = this.#parts;
    const posted = this.#views.filter((view) => view.pos !== undefined);
    const inPlace = core.channel().capabilities.finalizeInPlace;
    if (posted.length === 0 || !inPlace)
      return { parts: [], strays: posted.map((view) => view.pos as number) };
    const parts = rendered.map(({ request }, index) => {
      const { pos, shown, late } = this.#views[index] ?? {};
      if (pos === undefined) return undefined;
      const same = shown === JSON.stringify(request) && late !== true;
      return { edits: pos, ...(same ? { same } : {}), ...(late ? { late } : {}) };
    });
    const strays = this.#views.slice(parts.length).flatMap((view) => view.pos ?? []);
    return { parts, strays };
  }

  /** Look after look, until the end. */
  async #show(): Promise<void> {
    const { core } = this.#parts;
    let seen = "";
    let at: number | undefined;
    try {
      while (!this.#over) {
        const news = this.#text !== seen && this.#text.trim() !== "";
        // An answer that is short is there before its first look, and costs no more than a reply.
        if (news) at ??= core.now() + this.#everyMs;
        const drafted = this.#views.at(-1)?.drafted === true;
        const next = news ? at : drafted ? (at ?? 0) + DRAFT_MS : undefined;
        if (next === undefined || next > core.now()) {
          await this.#rest(next, !news);
          continue;
        }
        const text = this.#text;
        if (await this.#look(text)) seen = text;
        at = core.now() + this.#everyMs;
      }
    } catch (error) {
      core.host.rethrowIfHalted(error);
      // The answer itself is still to come: what is lost is the sight of it being written.
      const { env, log } = core.host;
      log.warn("an answer is not shown while it is written", { error: errorText(error, env) });
    }
  }

  /** Waits until then, until the end, and where `early` until the next piece. */
  #rest(until: number | undefined, early: boolean): Promise<void> {
    const { clock } = this.#parts.core.host;
    return new Promise((resolve) => {
      let cancel: CancelTimer | undefined;
      this.#wake = () => {
        if (!early && !this.#over) return;
        cancel?.();
        resolve();
      };
      if (until !== undefined) cancel = clock.setTimer(until - clock.now(), resolve);
    });
  }

  /** After the source has failed. */
  async #keep(showing: Promise<void> | undefined): Promise<void> {
    this.#end();
    await showing;
    if (showing === undefined || this.#options.onInterrupt === "remove") return;
    this.#parts.drafts = { refused: true };
    for (let n = 0; n <= this.#views.length; n += 1) if (await this.#look(this.#text)) return;
  }

  /** One look: at most one call. Resolves to whether the chat shows all of it. */
  async #look(text: string): Promise<boolean> {
    const { core, intents, drain } = this.#parts;
    const look: Draft = { ...this.#draft, content: { ...this.#draft.content, text } };
    look.intent = { ...look.intent, content: look.content };
    if (core.bot.hasBeforeSend) await intents.askHooks(look, true);
    if (look.vetoed !== undefined || this.#draft.intent.sends?.closed) return true;
    const parts = this.#render(look.content);
    if (parts === undefined) return true;
    for (const [index, part] of parts.entries()) {
      const request = JSON.stringify(part.request);
      this.#views[index] ??= {};
      const view = this.#views[index];
      const last = index === parts.length - 1;
      const row = view.pos === undefined ? undefined : this.#rowAt(view.pos);
      const message = row?.state === "sent" ? row : undefined;
      if (row !== undefined && isOpen(row)) return false;
      const stale = view.drafted === true && !last;
      if (view.shown === request && !stale && view.drafted !== true) continue;
      // Its fate is not known, or it takes no edits: the answer comes by itself, and no part before it.
      if ((row !== undefined && message === undefined) || view.fixed) return true;
      if (!drain.idle) return false;
      this.#passed = look.content;
      if (message !== undefined) {
        await this.#edit(view, message, request);
      } else if (last && this.#takesDrafts()) {
        await this.#drafting(view, part.request, request);
      } else {
        const remove = this.#options.onInterrupt === "remove";
        view.pos = intents.preview(this.#draft, index, part, remove).pos;
        view.shown = request;
        view.drafted = false;
      }
      return last && view.shown === request;
    }
    return true;
  }

  #rowAt(pos: number): OutboxRow | undefined {
    return this.#parts.core.journal.outbox.get(this.#turn, pos);
  }

  get #turn(): number {
    return this.#draft.intent.sends?.seq ?? 0;
  }

  get #place(): string {
    return `${this.#turn}/${this.slot}`;
  }

  async #edit(view: View, message: OutboxRow, request: string): Promise<void> {
    const { id } = JSON.parse(message.receipt ?? "{}") as { id: string };
    const { late, shown } = view;
    // The turn may end while this is on its way, and what is on its way may come after the answer.
    view.late = true;
    delete view.shown;
    const result = await this.#call((outbound, io) =>
      outbound.revise?.({ id, address: io.address }, JSON.parse(request) as JsonObject, io),
    );
    if (result !== undefined && !result.ok && result.evidence === "maybe_sent") return;
    view.late = late === true;
    const reads = result?.ok ? request : shown;
    if (reads !== undefined) view.shown = reads;
    view.fixed = result?.ok === false && !isRetryableKind(result.kind, result.evidence);
  }

  async #drafting(view: View, part: JsonObject, request: string): Promise<void> {
    const { core, drafts } = this.#parts;
    const draft: DraftView = {
      id: fingerprintOf(core.name, this.#place),
      address: this.#draft.address,
      request: part,
    };
    const result = await this.#call((outbound, io) => outbound.draft?.(draft, io));
    if (result === undefined) return;
    if (result.ok) {
      view.drafted = true;
      view.shown = request;
    } else if (result.evidence === "not_sent" && !isRetryableKind(result.kind, result.evidence)) {
      drafts.refused = true;
    }
  }

  /** A call that shows something; nothing where the lane is taken. */
  #call(call: ChannelCall): Promise<SendResult | undefined> {
    const { core, drain } = this.#parts;
    return drain.show(() => callWithin(core, this.#draft.address, "", call));
  }

  #takesDrafts(): boolean {
    const { core, drafts } = this.#parts;
    const where = core.channel().capabilities.streaming?.draft;
    return (
      !drafts.refused &&
      (where === "all" || (where === "direct" && core.identity().kind !== "group"))
    );
  }

  /** The parts of a text; nothing where it cannot be shown as it stands. */
  #render(content: Draft["content"]): RenderedPart[] | undefined {
    const { core } = this.#parts;
    // Buttons come with the whole.
    const { buttons: _buttons, ...shown } = content;
    try {
      return renderContent(core, shown, this.#draft.address, this.#place).parts;
    } catch {
      return undefined;
    }
  }
}
