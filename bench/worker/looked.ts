/**
 * The Worker of what is looked into: the same bot, with the time of each step, a meter of rows where it
 * is asked for, and a way to fill a chat. Never compared with the bare object.
 *
 * @module
 */
import { attachMeter, meterOf } from "../../test/workerd/meter.ts";
import { age } from "./age.ts";
import { app } from "./bot.ts";
import type { BenchEnv } from "./env.ts";
import { mark, markProbes, ORIGIN, settled, takeMarks } from "./marks.ts";

markProbes();

/** The longest that settling is waited for, in ms. */
const SETTLE_MS = 10_000;

interface LookedEnv extends BenchEnv {
  BENCH_METER?: string;
  CHAT_ACTOR: DurableObjectNamespace<ChatActor>;
}

export class ChatActor extends app.ChatActor {
  constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
    if (env.BENCH_METER === "1") attachMeter(ctx);
    super(ctx, env);
  }

  override call(method: string, payload: string): Promise<string> {
    if (method === "receive") mark("actor in");
    return super.call(method, payload);
  }

  /** Fills the chat with old records. */
  async age(count: number): Promise<void> {
    age(this.ctx.storage.sql, count);
  }

  /** Waits until this process has settled so many turns. */
  async settled(count: number): Promise<void> {
    const deadline = Date.now() + SETTLE_MS;
    while (settled() < count) {
      if (Date.now() > deadline) throw new Error(`${settled()} of ${count} turns have settled`);
      await scheduler.wait(1);
    }
  }

  /** Rows that statements have read since the last call. */
  async rowsRead(): Promise<number> {
    const meter = meterOf(this.ctx.id.name ?? "");
    meter.flush();
    const { rowsRead } = meter;
    meter.reset();
    return rowsRead;
  }
}

/** `/bench/<what>?name=<actor>&count=`: what the benchmark asks. */
async function bench(url: URL, env: LookedEnv): Promise<unknown> {
  const object = env.CHAT_ACTOR.getByName(url.searchParams.get("name") ?? "");
  const count = Number(url.searchParams.get("count"));
  switch (url.pathname) {
    case "/bench/age":
      return object.age(count);
    case "/bench/settled":
      return object.settled(count);
    case "/bench/rows":
      return object.rowsRead();
    case "/bench/marks":
      return takeMarks();
    default:
      throw new Error(`unknown: ${url.pathname}`);
  }
}

export default {
  async fetch(request: Request, env: LookedEnv, ctx: ExecutionContext): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname.startsWith("/bench/")) {
      return Response.json((await bench(url, env)) ?? null);
    }
    mark(ORIGIN);
    const response = await app.fetch(request, env, ctx);
    mark("edge out");
    return response;
  },
};

export { Bare } from "./Bare.ts";
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
