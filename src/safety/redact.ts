/**
 * Keeps secrets out of journals, logs and errors: whatever text leaves through them is searched for the
 * values of secret-looking variables.
 *
 * @module
 */

const SECRET_NAME = /TOKEN|SECRET|KEY|PASSWORD|CREDENTIAL/i;
/** Shorter values would blank out ordinary words. */
const MIN_LENGTH = 8;

/** Replaces the values of secret-looking variables in `text`. */
export function redact(text: string, env: Record<string, unknown>): string {
  let clean = text;
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== "string" || value.length < MIN_LENGTH || !SECRET_NAME.test(name)) continue;
    for (const spelling of spellingsOf(value)) {
      if (clean.includes(spelling)) clean = clean.replaceAll(spelling, "[redacted]");
    }
  }
  return clean;
}

/** A secret as it may stand in a text: as it is, in an address, and without the public half before a colon. */
function spellingsOf(value: string): string[] {
  const half = value.slice(value.lastIndexOf(":") + 1);
  const values = half.length >= MIN_LENGTH && half !== value ? [value, half] : [value];
  return values.flatMap((one) => [one, encodeURIComponent(one)]);
}

/** The text of an error for the journal: redacted, at most 500 characters. */
export function errorText(error: unknown, env: Record<string, unknown>): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return redact(text, env).slice(0, 500);
}
