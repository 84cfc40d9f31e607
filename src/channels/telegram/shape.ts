/**
 * Checks of the fields that an event is made of. Telegram's types say what should be there; these say
 * what is.
 *
 * @module
 */

/** An update that is not what Telegram documents. */
export class Malformed extends Error {}

/** @throws {Malformed} unless the value is an object */
export function object(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Malformed(`${name} is no object`);
  }
  return value as Record<string, unknown>;
}

/** @throws {Malformed} unless the value is an integer (ids have at most 52 bits, so none is cut) */
export function integer(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) {
    throw new Malformed(`${name} is no integer`);
  }
  return value;
}

/** @throws {Malformed} unless the value is text */
export function text(value: unknown, name: string): string {
  if (typeof value !== "string") throw new Malformed(`${name} is no text`);
  return value;
}

/** @throws {Malformed} unless the value is text or absent */
export function optionalText(value: unknown, name: string): string | undefined {
  return value === undefined ? undefined : text(value, name);
}
