import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WorkerdProcess } from "./WorkerdProcess.ts";

const entry = join(import.meta.dirname, "toy.ts");
const namespaces = [{ bindingName: "TOY", className: "Toy", uniqueKey: "toy" }];

/** A server that records what reaches it. */
interface Peer {
  readonly server: Server;
  readonly url: string;
  readonly seen: { path: string; at: number }[];
  /** Calls whose connection is still open. */
  open: number;
  /** While set, calls are not answered. */
  hangs: boolean;
}

async function startPeer(): Promise<Peer> {
  const server = createServer((request, response) => {
    peer.seen.push({ path: request.url ?? "", at: Date.now() });
    peer.open++;
    response.once("close", () => peer.open--);
    if (!peer.hangs) response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const peer: Peer = { server, url: `http://127.0.0.1:${port}`, seen: [], open: 0, hangs: false };
  return peer;
}

/** Waits for something that must come, checking often and giving up late. */
function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 5_000, interval: 5 });
}

describe("WorkerdProcess", { timeout: 15_000 }, () => {
  let directory: string;
  let peer: Peer;
  let workerd: WorkerdProcess;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "holdfast-kill-"));
    peer = await startPeer();
    workerd = new WorkerdProcess({ entry, directory, namespaces, vars: { PEER: peer.url } });
    await workerd.start();
  });

  afterEach(async () => {
    await workerd.stop();
    peer.server.closeAllConnections();
    peer.server.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function call(path: string, ...args: unknown[]): Promise<unknown> {
    const url = new URL(path, workerd.url);
    for (const arg of args) url.searchParams.append("arg", JSON.stringify(arg));
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.json();
  }

  it("keeps answered rows over SIGKILL, on the same port", async () => {
    await call("/add/a", "one");
    await call("/add/a?via=exports", "two");
    const { url, pid } = workerd;

    await workerd.kill();
    expect(workerd.pid).toBeUndefined();
    await expect(fetch(url)).rejects.toThrow();

    await workerd.start();
    expect(workerd.url).toBe(url);
    expect(workerd.pid).not.toBe(pid);
    expect(await call("/entries/a")).toEqual(["one", "two"]);
  });

  it("fires an alarm that came due while it was down, without traffic", async () => {
    const armedFor = 300;
    await call("/add/a", "armed", armedFor);
    const due = Date.now() + armedFor;
    await workerd.kill();
    await eventually(() => expect(Date.now()).toBeGreaterThan(due));
    expect(peer.seen).toEqual([]);

    const restarted = Date.now();
    await workerd.start();
    await eventually(() => expect(peer.seen).toHaveLength(1));
    expect(peer.seen[0]?.path).toBe("/alarm");
    expect(peer.seen[0]?.at).toBeGreaterThanOrEqual(restarted);
    expect(await call("/entries/a")).toEqual(["armed", "alarm"]);
  });

  it("runs an alarm again that was killed half-way", async () => {
    peer.hangs = true;
    await call("/add/a", "armed", 0);
    await eventually(() => expect(peer.seen).toHaveLength(1));

    await workerd.restart();
    await eventually(() => expect(peer.seen).toHaveLength(2));
    expect(await call("/entries/a")).toEqual(["armed", "alarm", "alarm"]);
  });

  it("ends a handler in the middle of a call", async () => {
    peer.hangs = true;
    const handler = call("/callPeer/a");
    handler.catch(() => {});
    await eventually(() => expect(peer.open).toBe(1));

    await workerd.kill();
    await expect(handler).rejects.toThrow();
    await eventually(() => expect(peer.open).toBe(0));

    await workerd.start();
    // The call left only after the row before it was on disk.
    expect(await call("/entries/a")).toEqual(["before the call"]);
    expect(peer.seen).toHaveLength(1);
  });

  it("kills in the middle of a commit: neither its row nor its alarm is left", async () => {
    await call("/add/a", "whole");
    const handler = call("/spinInCommit/a", "half done");
    handler.catch(() => {});
    await workerd.killAt("half done");
    await expect(handler).rejects.toThrow();

    await workerd.start();
    expect(await call("/entries/a")).toEqual(["whole"]);
    expect(await call("/armedAt/a")).toBeNull();
  });

  it("refuses a second runtime on the same storage", async () => {
    const second = new WorkerdProcess({ entry, directory, namespaces });
    await expect(second.start()).rejects.toThrow("already uses");
    await second.stop();
    expect(await call("/entries/a")).toEqual([]);
  });

  it("shows the log of a Worker that does not start", async () => {
    await workerd.kill();
    await expect(workerd.restart({ entry: join(directory, "missing.ts") })).rejects.toThrow(
      "missing.ts",
    );
    const broken = { bindingName: "NONE", className: "Toy", uniqueKey: "toy" };
    const other = new WorkerdProcess({
      entry,
      directory,
      namespaces: [broken],
      compatibilityFlags: ["no_such_flag"],
    });
    await expect(other.start()).rejects.toThrow("no_such_flag");
  });

  it("does not outlive the process that started it", async () => {
    await workerd.stop();
    const script = `
      const { WorkerdProcess } = await import(${JSON.stringify(join(import.meta.dirname, "WorkerdProcess.ts"))});
      const options = JSON.parse(process.argv[1]);
      const workerd = new WorkerdProcess(options);
      await workerd.start();
      console.log(workerd.url);
      setInterval(() => {}, 1000);`;
    const options = JSON.stringify({ entry, directory, namespaces });
    const owner = spawn(process.execPath, ["--input-type=module", "-e", script, options], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(owner.stdout.setEncoding("utf8"), "data");
    const url = String(line).trim();
    expect((await fetch(`${url}/entries/a`)).status).toBe(200);

    owner.kill("SIGKILL");
    await once(owner, "exit");
    await vi.waitFor(() => expect(fetch(url)).rejects.toThrow(), { timeout: 5_000 });
  });
});
