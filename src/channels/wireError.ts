/** Errors as values: between objects, and in records, classes do not survive. @module */
import { ConfigError, deliveryErrorOf, type ErrorKind, HoldfastError } from "./errors.ts";

/** An error as JSON. */
export interface WireError {
  name: string;
  message: string;
  code?: string;
  kind?: string;
  retryable?: boolean;
  retryAfterMs?: number;
  key?: string;
  sentParts?: readonly string[];
}

/** An error as a value. */
export function wireError(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message } = error;
  const { code, kind, retryable, retryAfterMs, key, sentParts } = error as Partial<WireError>;
  // JSON leaves out what there is not.
  const more = { code, kind, retryable, retryAfterMs, key, sentParts } as Partial<WireError>;
  return { name, message, ...more };
}

/** An error value as the class it was. */
export function errorFrom(wire: WireError): Error {
  const { name, message, code, retryable, retryAfterMs, key, sentParts } = wire;
  const init = { code, retryable, retryAfterMs, key };
  const kind = (wire.kind ?? "unknown") as ErrorKind;
  if (name === "ConfigError") return new ConfigError(message, init);
  if (sentParts !== undefined) return deliveryErrorOf(message, { ...init, kind, sentParts });
  return code === undefined ? new Error(message) : new HoldfastError(message, { code, kind }, init);
}
