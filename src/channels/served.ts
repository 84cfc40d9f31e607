/**
 * What a channel brings whose platform is this very Worker: its routes, the engine of its object, and what
 * one of its sockets may send.
 *
 * @module
 */
import type { Host } from "../host/Host.ts";

/** A socket's attachment. */
export interface GateState {
  /** Frames in the current window. */
  n: number;
  /** When the window began: epoch milliseconds. */
  from: number;
  /** Whether the page said `hello`; a socket gets nothing before. */
  greeted: boolean;
  /** When the socket was opened: epoch milliseconds. */
  since: number;
}

/** Why a socket is closed, with the code for it. */
export interface Closing {
  code: 4400 | 4413 | 4429;
  reason: string;
}

/** What to do with a frame. */
export type Admission = { ok: true; state: GateState } | { ok: false; close: Closing };

/** Judges what a socket sends. */
export interface SocketGate {
  /** The attachment of a new socket. */
  open(now: number): GateState;
  /** Reads an attachment; anything else than one of ours counts as new. */
  read(attachment: unknown, now: number): GateState;
  /** Judges one frame. */
  admit(state: GateState, frame: string | ArrayBuffer, now: number): Admission;
}

/**
 * For a channel whose platform is this very Worker (web chat): its routes and the engine of its object.
 * The channel brings them, so that a bot without it does not carry them.
 */
export interface ServedChannel {
  /** Makes the routes; `deps` are per request. */
  routes(deps: (env: unknown) => ServedDeps): {
    fetch(request: Request, env: unknown): Response | Promise<Response>;
  };
  /** The path under which the routes are. */
  path: string;
  readonly gate: SocketGate;
  /** Makes the engine of the object. */
  makeRoom(
    host: Host,
    name: string,
    sockets: { send(text: string): void; count(): number },
  ): ServedRoom;
}

/** What the routes of a served channel need of the Worker. */
export interface ServedDeps {
  env: unknown;
  /** Whether this is a developer's own machine. */
  local: boolean;
  /** The session's object. */
  room(sessionId: string): { fetch(request: Request): Promise<Response> };
  /** Local mode: the next time the bot's side has sent and not yet recorded, it dies. */
  crash(sessionId: string): Promise<unknown>;
}

/** The engine of a served channel's object. */
export interface ServedRoom {
  call(method: string, payload: string): Promise<string>;
  message(frame: string, socket: { send(text: string): void; greet(): void }): Promise<void>;
  alarm(): Promise<void>;
}
