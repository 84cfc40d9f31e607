/**
 * Ports on the loopback interface.
 *
 * @module
 */
import { connect, createServer } from "node:net";

/** Whether something accepts connections there. Connects and hangs up; sends nothing. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port });
    const finish = (open: boolean) => {
      socket.destroy();
      done(open);
    };
    socket.setTimeout(1_000, () => finish(false));
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
  });
}

/**
 * A free port below the range from which the system draws ports for outgoing connections (32768 on Linux, 49152
 * on macOS), so that nobody takes it while the process is down.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await new Promise<boolean>((done) => {
      const server = createServer();
      server.once("error", () => done(false));
      server.listen({ host: "127.0.0.1", port }, () => server.close(() => done(true)));
    });
    if (free) return port;
  }
  throw new Error("no free port between 20000 and 32000");
}
