/** The refusal of values that a row cannot hold. @module */
import { PayloadTooLargeError } from "../channels/errors.ts";
import { MAX_VALUE_LENGTH, tooLarge } from "../journal/limits.ts";

/** @throws {PayloadTooLargeError} when `text` is over the journal's limit */
export function refuseTooLarge(what: string, text: string): void {
  if (tooLarge(text)) throw new PayloadTooLargeError(`${what} is over ${MAX_VALUE_LENGTH} bytes`);
}
