/**
 * Sessions of visitors who are not signed in: 128 random bits in a cookie. The chat's id is a hash of
 * them, since ids are journaled, logged and shown to operators, and none of those may let anybody speak
 * as the visitor.
 *
 * @module
 */

/** The cookie's name. */
const COOKIE = "hf_session";
const YEAR_SECONDS = 31_536_000;
/** The longest id of a session, percent-encoded; names of objects hold 1,024 bytes with their scope. */
const MAX_ID_LENGTH = 512;

const encoder = new TextEncoder();

/** A new secret: 128 random bits in hex. */
export function newSecret(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

/** The secret in a request's cookies; anything that we did not make counts as none. */
export function readCookie(headers: Headers): string | undefined {
  return new RegExp(`(?:^|;\\s*)${COOKIE}=([0-9a-f]{32})(?:;|$)`).exec(
    headers.get("cookie") ?? "",
  )?.[1];
}

/**
 * The `Set-Cookie` value. Lax and not Strict: a visitor who follows a link to the page from a mail has
 * no Strict cookie on that first request, and would be given a new, empty session over the old one.
 */
export function sessionCookie(secret: string, at: { path: string; secure: boolean }): string {
  const path = at.path === "" ? "/" : at.path;
  const parts = [
    `${COOKIE}=${secret}`,
    `Path=${path}`,
    `Max-Age=${YEAR_SECONDS}`,
    "HttpOnly",
    "SameSite=Lax",
  ];
  if (at.secure) parts.push("Secure");
  return parts.join("; ");
}

/** The session's id, which names its objects: a hash that does not lead back to the secret. */
export function sessionOfSecret(secret: string): Promise<string> {
  return digest(`session|${secret}`, 32);
}

/**
 * A short name of a session for the page, which keeps unsent messages under it: what one user left
 * unsent must not be sent by the next who signs in in the same tab.
 */
export function tagOf(session: string): Promise<string> {
  return digest(`tag|${session}`, 16);
}

/** Whether an id from `identify` can name a session. */
export function isSessionId(id: unknown): id is string {
  if (typeof id !== "string" || id === "") return false;
  try {
    return encodeURIComponent(id).length <= MAX_ID_LENGTH;
  } catch {
    // Half a surrogate pair has no encoding.
    return false;
  }
}

async function digest(text: string, length: number): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return hex(new Uint8Array(bytes)).slice(0, length);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
