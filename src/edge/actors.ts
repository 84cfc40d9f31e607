/**
 * Calls to actors from a Worker: a fresh stub for each attempt, and one retry where the platform says
 * that the call was cut off by a reset. Calls are safe to repeat: admission is deduplicated by row.
 *
 * @module
 */
import { ConfigError } from "../channels/errors.ts";
import type { ActorKind, Actors } from "../host/Host.ts";

interface Callable {
  call(method: string, payload: string): Promise<string>;
}

interface Namespace {
  getByName(name: string): Callable & { fetch(request: Request): Promise<Response> };
}

/** Binding names that are looked at, besides the class's own. */
const BINDINGS: Record<ActorKind, string> = {
  ChatActor: "CHAT_ACTOR",
  Connection: "CONNECTION",
  Registry: "REGISTRY",
  WebChat: "WEB_CHAT",
};

/** The TOML that declares the objects; printed by the error that says they are missing. */
export const OBJECTS_TOML = `[[migrations]]
tag = "holdfast-1"
new_sqlite_classes = ["ChatActor", "Connection", "Registry", "WebChat"]

[[durable_objects.bindings]]
name = "CHAT_ACTOR"
class_name = "ChatActor"

[[durable_objects.bindings]]
name = "CONNECTION"
class_name = "Connection"

[[durable_objects.bindings]]
name = "REGISTRY"
class_name = "Registry"

[[durable_objects.bindings]]
name = "WEB_CHAT"
class_name = "WebChat"`;

function isNamespace(value: unknown): value is Namespace {
  return (
    (typeof value === "object" || typeof value === "function") &&
    value !== null &&
    typeof (value as Partial<Namespace>).getByName === "function"
  );
}

/**
 * The namespace of a kind of actor: a binding, or the class that the Worker exports.
 * @throws {ConfigError} with the TOML to paste
 */
export function namespaceOf(
  kind: ActorKind,
  env: Record<string, unknown>,
  exported: Record<string, unknown>,
): Namespace {
  for (const found of [env[BINDINGS[kind]], env[kind], exported[kind]])
    if (isNamespace(found)) return found;
  throw new ConfigError(
    `the Durable Object class "${kind}" is not declared. Export it from the Worker's main module and put this in wrangler.toml:\n\n${OBJECTS_TOML}`,
  );
}

/** Whether one more attempt is right: the platform cut the call off and is not overloaded. */
function isRetryable(error: unknown): boolean {
  const flags = error as {
    retryable?: unknown;
    overloaded?: unknown;
    durableObjectReset?: unknown;
  } | null;
  return (
    (flags?.retryable === true || flags?.durableObjectReset === true) && flags.overloaded !== true
  );
}

/** Calls to actors through their namespaces. */
export function actorsFrom(
  env: Record<string, unknown>,
  exported: Record<string, unknown>,
): Actors {
  return {
    async call(kind, name, method, payload) {
      const namespace = namespaceOf(kind, env, exported);
      try {
        return await namespace.getByName(name).call(method, payload);
      } catch (error) {
        // A stub that threw may stay broken, so the second attempt gets its own (durable-objects §1.6).
        if (!isRetryable(error)) throw error;
        return namespace.getByName(name).call(method, payload);
      }
    },
  };
}
