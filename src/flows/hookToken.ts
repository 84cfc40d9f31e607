/**
 * Tokens of hooks: which actor, run and hook one continues, sealed with `HOLDFAST_SEAL_KEY`, so that nobody
 * can make or read one. The same hook has the same token each time its run is executed.
 *
 * @module
 */
import { createCipheriv, createDecipheriv, createHash, createHmac } from "node:crypto";
import { ConfigError } from "../channels/errors.ts";

/** What a token names. */
export interface HookTarget {
  actor: string;
  run: string;
  hook: number;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Longer ones are not ours. */
const MAX_TOKEN = 4_096;

/** Seals a token. @throws {ConfigError} without a key */
export function sealHook(target: HookTarget, env: Record<string, unknown>): string {
  const key = keyOf(env);
  const text = JSON.stringify([target.actor, target.run, target.hook]);
  // Made of what is sealed: no two texts share one, and one text has always the same.
  const iv = createHmac("sha256", key).update(`hook ${text}`).digest().subarray(0, IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString("base64url");
}

/** Opens a token; `undefined` where it is not one of ours. @throws {ConfigError} without a key */
export function openHook(token: string, env: Record<string, unknown>): HookTarget | undefined {
  const key = keyOf(env);
  if (token.length > MAX_TOKEN) return undefined;
  const bytes = Buffer.from(token, "base64url");
  if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const sealed = bytes.subarray(IV_BYTES, -TAG_BYTES);
    const text = Buffer.concat([decipher.update(sealed), decipher.final()]).toString("utf8");
    const [actor, run, hook] = JSON.parse(text) as [string, string, number];
    return { actor, run, hook };
  } catch {
    return undefined;
  }
}

function keyOf(env: Record<string, unknown>): Buffer {
  const key = env.HOLDFAST_SEAL_KEY;
  if (typeof key !== "string" || key.length < 16) {
    throw new ConfigError(
      "hooks need the variable HOLDFAST_SEAL_KEY, a secret of at least 16 characters; `npm start` makes one, a deployed Worker gets it with `wrangler secret put HOLDFAST_SEAL_KEY`",
    );
  }
  return createHash("sha256").update(key).digest();
}
