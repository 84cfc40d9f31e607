/**
 * The client: HTTP/1.1 over kept connections, requests made before the clock runs. It does as little as
 * possible, since it shares the machine with what it measures.
 *
 * @module
 */
import { connect, type Socket } from "node:net";

/** A request, ready to be written. */
export type Wire = Buffer;

/** Makes a POST with a JSON body. */
export function postOf(path: string, headers: Record<string, string>, body: string): Wire {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = Buffer.byteLength(body);
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `${lines.join("")}content-length: ${length}\r\n\r\n${body}`,
  );
}

/** One connection, one request at a time. */
export class Wired {
  readonly #socket: Socket;
  #waiting: { resolve(status: number): void; reject(error: Error): void } | undefined;
  #received = "";

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    // Headers and empty bodies only: one character for each byte is enough.
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => this.#take(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the connection was closed")));
  }

  static open(port: number): Promise<Wired> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Wired(socket));
      });
    });
  }

  /** Resolves to the status. @throws when the connection ends first */
  send(request: Wire): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: string): void {
    this.#received += chunk;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? "0");
    if (this.#received.length < end + 4 + length) return;
    this.#received = this.#received.slice(end + 4 + length);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(Number(head.slice(9, 12)));
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}

/**
 * Sends all requests over some connections, each as fast as it is answered. Resolves to the time that
 * it took, in ms.
 * @throws unless every answer is 200
 */
export async function flood(
  port: number,
  requests: readonly Wire[],
  connections: number,
): Promise<number> {
  const wires = await Promise.all(Array.from({ length: connections }, () => Wired.open(port)));
  let next = 0;
  const work = async (wire: Wired): Promise<void> => {
    for (;;) {
      const request = requests[next];
      next += 1;
      if (request === undefined) return;
      const status = await wire.send(request);
      if (status !== 200) throw new Error(`a request was answered ${status}`);
    }
  };
  try {
    const began = performance.now();
    await Promise.all(wires.map(work));
    return performance.now() - began;
  } finally {
    for (const wire of wires) wire.close();
  }
}
