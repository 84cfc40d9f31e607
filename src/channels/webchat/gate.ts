/**
 * What one socket may send: how big, how often. What it has sent is kept in the socket's attachment,
 * because the memory of a room is gone after ten idle seconds.
 *
 * @module
 */
import type { Admission, GateState, SocketGate } from "../served.ts";

/** The most bytes of a frame. The platform takes 32 MiB. */
export const MAX_FRAME_BYTES = 65_536;

/** The most frames of a socket in one window. */
export const MAX_FRAMES = 20;

/** How long a window is, in ms. */
export const WINDOW_MS = 10_000;

/** The attachment of a new socket. */
function openGate(now: number): GateState {
  return { n: 0, from: now, greeted: false, since: now };
}

/** Reads an attachment; anything else than one of ours counts as new. */
function readGate(value: unknown, now: number): GateState {
  const state = value as Partial<GateState> | null | undefined;
  if (typeof state?.n !== "number" || typeof state.from !== "number") return openGate(now);
  const { n, from, greeted, since } = state;
  return { n, from, greeted: greeted === true, since: since ?? from };
}

const encoder = new TextEncoder();

/** Judges one frame. */
function admit(state: GateState, frame: string | ArrayBuffer, now: number): Admission {
  if (typeof frame !== "string") {
    return { ok: false, close: { code: 4400, reason: "frames are text" } };
  }
  // A UTF-16 unit has at most three bytes, so mostly nothing needs to be counted.
  const bytes = frame.length * 3 > MAX_FRAME_BYTES ? encoder.encode(frame).byteLength : 0;
  if (bytes > MAX_FRAME_BYTES) {
    return { ok: false, close: { code: 4413, reason: "the frame is too large" } };
  }
  const fresh = now - state.from >= WINDOW_MS || now < state.from;
  const next = fresh ? { ...state, n: 1, from: now } : { ...state, n: state.n + 1 };
  if (next.n > MAX_FRAMES) {
    return { ok: false, close: { code: 4429, reason: "too many messages at once" } };
  }
  return { ok: true, state: next };
}

/** The gate of every socket of a room. */
export const gate: SocketGate = { open: openGate, read: readGate, admit };
