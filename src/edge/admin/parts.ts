/**
 * What the routes of the admin API share: the client, their errors, and reading what they are given.
 *
 * @module
 */
import type { Context } from "hono";
import { ConfigError } from "../../channels/errors.ts";
import type { Actors, Log } from "../../host/Host.ts";
import { type Clock, TIMED_OUT, withDeadline } from "../../time/Clock.ts";
import { ActorClient } from "../../turns/ActorClient.ts";
import type { BotRuntime } from "../../turns/BotRuntime.ts";
import type { Client, Page } from "../../turns/Client.ts";
import { readBody } from "../body.ts";

/** What the admin API is built from. */
export interface AdminParts {
  bot: BotRuntime;
  actors(env: Record<string, unknown>): Actors;
  log(env: Record<string, unknown>): Log;
  clock: Clock;
}

/** One request's tools. */
export interface AdminTools {
  bot: BotRuntime;
  client: Client;
  actors: Actors;
  log: Log;
  clock: Clock;
  env: Record<string, unknown>;
}

/** Types of the Hono app of these routes. */
export type AdminEnv = { Bindings: Record<string, unknown>; Variables: { tools: AdminTools } };

/** A request's context. */
export type AdminContext = Context<AdminEnv>;

/** How long an actor has to answer, in ms. */
const ANSWER_MS = 20_000;
/** A body holds a reference and a few names. */
const MAX_BODY_BYTES = 16_384;
/** Longer than any cursor, address or reference. */
const MAX_TEXT = 4_096;

/** An answer that is no success. */
export class AdminError extends Error {
  readonly status: 400 | 401 | 404 | 409 | 413 | 429 | 500 | 503;
  readonly code: string;

  constructor(status: AdminError["status"], code: string, message: string) {
    super(message);
    this.name = "AdminError";
    this.status = status;
    this.code = code;
  }
}

/** An actor did not answer in time. What was asked may have been done all the same. */
export class UnreachableError extends Error {
  constructor() {
    super("an actor did not answer in time");
    this.name = "UnreachableError";
  }
}

/** The tools for one request. */
export function toolsOf(parts: AdminParts, env: Record<string, unknown>): AdminTools {
  const { bot, clock } = parts;
  const inner = parts.actors(env);
  const actors: Actors = {
    async call(kind, name, method, payload) {
      const answer = await withDeadline(clock, ANSWER_MS, inner.call(kind, name, method, payload));
      if (answer === TIMED_OUT) throw new UnreachableError();
      return answer;
    },
  };
  // What an operator sends, retries included, is the bot's own.
  const client = new ActorClient(actors, bot, () => crypto.randomUUID(), "bot", clock);
  return { bot, client, actors, log: parts.log(env), clock, env };
}

/** The body as an object. @throws {AdminError} when it is too large, or none */
export async function bodyOf(c: AdminContext): Promise<Record<string, unknown>> {
  const bytes = await readBody(c.req.raw, MAX_BODY_BYTES);
  if (bytes === undefined)
    throw new AdminError(413, "too_large", `the body is larger than ${MAX_BODY_BYTES} bytes`);
  if (bytes.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new AdminError(400, "bad_request", "the body is no JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AdminError(400, "bad_request", "the body must be a JSON object");
  return value as Record<string, unknown>;
}

/** A text that may be missing. @throws {AdminError} when it is something else, or too long */
export function optional(input: Record<string, unknown>, name: string): string | undefined {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "" || value.length > MAX_TEXT)
    throw new AdminError(
      400,
      "bad_request",
      `${name} must be a text of 1 to ${MAX_TEXT} characters`,
    );
  return value;
}

/** A text that must be there. */
export function required(input: Record<string, unknown>, name: string): string {
  const value = optional(input, name);
  if (value === undefined) throw new AdminError(400, "bad_request", `${name} is missing`);
  return value;
}

/** One of a list of texts, or `undefined`. */
export function choice<T extends string>(
  input: Record<string, unknown>,
  name: string,
  allowed: readonly T[],
): T | undefined {
  const value = optional(input, name);
  if (value === undefined) return undefined;
  const found = allowed.find((one) => one === value);
  if (found === undefined)
    throw new AdminError(
      400,
      "bad_request",
      `${name} is "${value.slice(0, 40)}", but must be one of: ${allowed.join(", ")}`,
    );
  return found;
}

/** `cursor` and `limit`. */
export function pageOf(input: Record<string, unknown>): Page {
  const cursor = optional(input, "cursor");
  const { limit } = input;
  return {
    ...(cursor === undefined ? {} : { cursor }),
    // Checked where it is used, with the bounds in the message.
    ...(limit === undefined ? {} : { limit: Number(limit) }),
  };
}

/**
 * The connection that a request is about; a bot with one need not name it.
 * @throws {AdminError} naming what there is
 */
export function connectionIn(bot: BotRuntime, input: Record<string, unknown>): string {
  const known = bot.channels.map((channel) => channel.connection);
  const [first, ...more] = known;
  const connection = optional(input, "connection") ?? (more.length === 0 ? first : undefined) ?? "";
  if (known.includes(connection)) return connection;
  throw new AdminError(
    connection === "" ? 400 : 404,
    connection === "" ? "bad_request" : "not_found",
    `connection must be one of: ${known.join(", ")}`,
  );
}

/** An error as the answer that it is. Unexpected ones say nothing of their inside. */
export function answerOf(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof ConfigError) return new AdminError(400, "bad_request", error.message);
  const { kind, retryable, overloaded, durableObjectReset, remote } = error as {
    [flag: string]: unknown;
  };
  if (kind === "rate_limit") return new AdminError(429, "busy", (error as Error).message);
  const away = [retryable, overloaded, durableObjectReset, remote].includes(true);
  if (away || error instanceof UnreachableError)
    return new AdminError(
      503,
      "unreachable",
      "the chat's actor did not answer; what was asked may have been done: look, then ask again",
    );
  return new AdminError(500, "internal", "internal error; the log has the cause");
}
