/**
 * `/hooks/:token`: where third parties continue runs of flows. Success is answered once it is committed.
 *
 * @module
 */
import { HoldfastError } from "../channels/errors.ts";
import type { Client } from "../turns/Client.ts";
import { readBody } from "./body.ts";

/** The most that a third party may post, in bytes. */
const MAX_BYTES = 262_144;

/** Handles a call of a hook. */
export async function handleHook(
  client: Client,
  request: Request,
  token: string,
): Promise<Response> {
  if (request.method !== "POST")
    return new Response("post to this address\n", { status: 405, headers: { allow: "POST" } });
  const body = await readBody(request, MAX_BYTES);
  if (body === undefined) return Response.json({ error: "too large" }, { status: 413 });
  try {
    const { accepted } = await client.resume(token, payloadOf(request, body));
    return Response.json({ ok: true, accepted });
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code === "hook_invalid")
      return Response.json({ error: "forbidden" }, { status: 403 });
    if (error.code === "hook_gone") return Response.json({ error: "gone" }, { status: 410 });
    throw error;
  }
}

/** JSON and forms as what they say, anything else as text. */
function payloadOf(request: Request, body: Uint8Array): unknown {
  const text = new TextDecoder().decode(body);
  const type = request.headers.get("content-type") ?? "";
  if (type.includes("application/x-www-form-urlencoded"))
    return Object.fromEntries(new URLSearchParams(text));
  try {
    return text === "" ? null : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}
