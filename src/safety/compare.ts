/** Comparing secrets so that the time it takes says nothing about where they differ. @module */
// node:crypto hashes synchronously: WebCrypto costs a turn of the event loop for each digest.
import { createHash, timingSafeEqual } from "node:crypto";

/** Whether two texts are the same. Digests are compared, so that not even the length shows. */
export function sameSecret(given: string, secret: string): boolean {
  return timingSafeEqual(digest(given), digest(secret));
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
