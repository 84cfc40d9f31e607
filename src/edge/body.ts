/** Reading a request's body under a cap, before anything is parsed. @module */

/** The body, or `undefined` when it is larger than `maxBytes`. */
export async function readBody(
  request: Request,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const length = request.headers.get("content-length");
  if (Number(length ?? "0") > maxBytes) return undefined;
  if (request.body === null) return new Uint8Array();
  if (length !== null) {
    // HTTP itself ends the body where it was declared to end, so it can be taken in one piece.
    const whole = new Uint8Array(await request.arrayBuffer());
    return whole.byteLength > maxBytes ? undefined : whole;
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.byteLength;
  }
  return body;
}
