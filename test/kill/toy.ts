/**
 * The smallest Worker that shows what a kill does: one Durable Object with rows and an alarm, which
 * calls a peer so that a test sees it act without asking it.
 *
 * @module
 */
import { DurableObject, exports } from "cloudflare:workers";

export interface ToyEnv {
  readonly TOY: DurableObjectNamespace<Toy>;
  /** Base URL of a server that the test owns. */
  readonly PEER: string;
}

export class Toy extends DurableObject<ToyEnv> {
  constructor(ctx: DurableObjectState, env: ToyEnv) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log (entry TEXT NOT NULL) STRICT");
  }

  /** A row and, with `alarmInMs`, an alarm in the same commit. */
  add(entry: string, alarmInMs?: number): void {
    this.ctx.storage.transactionSync(() => {
      this.#log(entry);
      if (alarmInMs !== undefined) void this.ctx.storage.setAlarm(Date.now() + alarmInMs);
    });
  }

  entries(): string[] {
    return this.ctx.storage.sql
      .exec<{ entry: string }>("SELECT entry FROM log ORDER BY rowid")
      .toArray()
      .map((row) => row.entry);
  }

  armedAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }

  /** Logs, calls a peer that may never answer, logs again. */
  async callPeer(): Promise<void> {
    this.#log("before the call");
    await fetch(`${this.env.PEER}/call`);
    this.#log("after the call");
  }

  /** Stops for good in the middle of a commit; `killAt` waits for the mark. */
  spinInCommit(mark: string): void {
    this.ctx.storage.transactionSync(() => {
      this.#log("half");
      void this.ctx.storage.setAlarm(Date.now() + 60_000);
      console.log(mark);
      for (;;);
    });
  }

  override async alarm(): Promise<void> {
    this.#log("alarm");
    await fetch(`${this.env.PEER}/alarm`);
  }

  #log(entry: string): void {
    this.ctx.storage.sql.exec("INSERT INTO log (entry) VALUES (?)", entry);
  }
}

/** `/<method>/<object's name>?arg=…&via=exports`, arguments in JSON. */
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [method = "", name = ""] = url.pathname.slice(1).split("/");
    const args = url.searchParams.getAll("arg").map((arg): unknown => JSON.parse(arg));
    // Both ways lead to the same object.
    const loopback: { Toy?: DurableObjectNamespace<Toy> } = exports;
    const toys = url.searchParams.get("via") === "exports" ? loopback.Toy : env.TOY;
    if (toys === undefined) return new Response("no such namespace", { status: 500 });
    const toy = toys.getByName(name);
    const [first, second] = args;
    switch (method) {
      case "add":
        await toy.add(String(first), typeof second === "number" ? second : undefined);
        return Response.json(null);
      case "entries":
        return Response.json(await toy.entries());
      case "armedAt":
        return Response.json(await toy.armedAt());
      case "callPeer":
        await toy.callPeer();
        return Response.json(null);
      case "spinInCommit":
        await toy.spinInCommit(String(first));
        return Response.json(null);
      default:
        return new Response("no such method", { status: 404 });
    }
  },
} satisfies ExportedHandler<ToyEnv>;
