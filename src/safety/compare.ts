/** Comparing secrets so that the time it takes says nothing about where they differ. @module */

/**
 * Whether two texts are the same. Every character of `given` is looked at, whatever the others say, so the
 * time depends on the length of what was given alone.
 */
export function sameSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length;
  for (let at = 0; at < given.length; at += 1) {
    // A secret is never empty: a connection without one is not configured.
    difference |= given.charCodeAt(at) ^ secret.charCodeAt(at % secret.length);
  }
  return difference === 0;
}
