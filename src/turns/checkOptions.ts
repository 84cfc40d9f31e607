/** The options of one send, checked before anything is decided. @module */
import { parseDuration } from "../time/duration.ts";
import { refuse } from "./options.ts";
import type { EnqueueOptions } from "./sends.ts";

/** @throws {ConfigError} for a date, a delay or a key that is none */
export function checkOptions(options: EnqueueOptions): EnqueueOptions {
  for (const name of ["at", "notAfter"] as const) {
    const value = options[name];
    if (value !== undefined && !Number.isFinite(Number(value))) {
      refuse(name, String(value), "a date, or epoch milliseconds");
    }
  }
  if (options.delay !== undefined && parseDuration(options.delay) === undefined) {
    refuse("delay", options.delay, 'a duration such as "15s" or "10m", or milliseconds');
  }
  const key = options.idempotencyKey;
  if (key !== undefined && (typeof key !== "string" || key === "")) {
    refuse("idempotencyKey", key, "a text");
  }
  return options;
}
