/**
 * A fetch handler behind a real socket, on loopback: for runtimes in another process, and for faults
 * that only a socket can have.
 *
 * @module
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { ConnectionDropped, isTorn } from "./faults.ts";

/** A running server. */
export interface Listening {
  /** `http://127.0.0.1:<port>`. */
  url: string;
  port: number;
  /** Stops it, with every connection that is still open. */
  close(): Promise<void>;
}

/** Answers a request. A {@link ConnectionDropped} that it throws destroys the socket. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/** Serves `handler` on 127.0.0.1; port 0 takes a free one. */
export function listen(handler: FetchHandler, port = 0): Promise<Listening> {
  const server = createServer((incoming, outgoing) => {
    void respond(handler, incoming, outgoing);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      resolve({
        url: `http://127.0.0.1:${actual}`,
        port: actual,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            // A hanging call never ends by itself.
            server.closeAllConnections();
          }),
      });
    });
  });
}

async function respond(
  handler: FetchHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const caller = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) caller.abort(new Error("the caller hung up"));
  });
  try {
    const response = await handler(await requestOf(incoming, caller.signal));
    const body = new Uint8Array(await response.arrayBuffer());
    const headers = Object.fromEntries(response.headers);
    if (isTorn(response)) {
      outgoing.writeHead(response.status, { ...headers, "content-length": body.byteLength * 2 });
      outgoing.write(body, () => outgoing.destroy());
      return;
    }
    outgoing.writeHead(response.status, { ...headers, "content-length": body.byteLength });
    outgoing.end(body);
  } catch (error) {
    if (error instanceof ConnectionDropped || caller.signal.aborted) outgoing.destroy();
    else {
      outgoing.writeHead(500, { "content-type": "text/plain" });
      outgoing.end(error instanceof Error ? error.stack : String(error));
    }
  }
}

async function requestOf(incoming: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Uint8Array);
  const method = incoming.method ?? "GET";
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const bodiless = method === "GET" || method === "HEAD";
  return new Request(`http://${incoming.headers.host ?? "127.0.0.1"}${incoming.url ?? "/"}`, {
    method,
    headers,
    signal,
    ...(bodiless ? {} : { body: Buffer.concat(chunks) }),
  });
}
