/**
 * The simulated Bot API of the benchmark: accepts every message at once and says when it came. No checks
 * and no ledger, so that its own work does not hide what is measured.
 *
 * @module
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** When a message came: by the clock of `performance.now()`, and in whole epoch milliseconds. */
export interface Arrival {
  at: number;
  epochMs: number;
}

/** How long a message is waited for, in ms. */
const PATIENCE_MS = 20_000;

/** A Bot API on loopback. */
export class Platform {
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly #waiting = new Map<string, (arrival: Arrival) => void>();
  #accepted = 0;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.close = close;
  }

  static async open(): Promise<Platform> {
    const server = createServer();
    server.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const platform = new Platform(
      `http://127.0.0.1:${port}`,
      () =>
        new Promise((closed) => {
          server.close(() => closed());
          server.closeAllConnections();
        }),
    );
    server.on("request", (request, response) => platform.#take(request, response));
    return platform;
  }

  /** How many messages it has accepted. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Resolves when a message with this text comes. Ask before it is caused. */
  arrival(text: string): Promise<Arrival> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`"${text}" did not come within ${PATIENCE_MS} ms`)),
        PATIENCE_MS,
      );
      this.#waiting.set(text, (arrival) => {
        clearTimeout(timer);
        resolve(arrival);
      });
    });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const arrival = { at: performance.now(), epochMs: Date.now() };
      const { chat_id: id, text } = JSON.parse(Buffer.concat(chunks).toString()) as {
        chat_id: number;
        text: string;
      };
      this.#accepted += 1;
      const result = { message_id: this.#accepted, date: 0, chat: { id, type: "private" }, text };
      const body = JSON.stringify({ ok: true, result });
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      });
      response.end(body);
      this.#waiting.get(text)?.(arrival);
      this.#waiting.delete(text);
    });
  }
}
