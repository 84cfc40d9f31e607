/** Ports of this machine. @module */
import { connect, createServer } from "node:net";

/** How many ports are tried from the usual one on. */
const TRIES = 20;

/** Whether something accepts connections there. Connects and hangs up; sends nothing. */
export function accepts(port: number, host = "127.0.0.1"): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host, port });
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
 * Whether a port can be used on a host. A listener on IPv6 counts as well: a browser that is given
 * `localhost` may ask there first, and would talk to somebody else.
 */
export async function isFree(port: number, host: string): Promise<boolean> {
  if (!(await canListen(port, host))) return false;
  return !(await accepts(port, "::1"));
}

/** The first free port from `from` on. */
export async function freePortFrom(from: number, host: string): Promise<number | undefined> {
  for (let port = from; port < from + TRIES && port <= 65_535; port += 1) {
    if (await isFree(port, host)) return port;
  }
  return undefined;
}

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", () => done(false));
    server.listen({ host, port }, () => server.close(() => done(true)));
  });
}
