/**
 * The Worker under test: `serve(bot)` twice, the second below `/quick`, with a meter in every object.
 *
 * @module
 */

import type { Content } from "../../src/channels/content.ts";
import { serve } from "../../src/cloudflare.ts";
import type { Client, EnqueueOptions } from "../../src/index.ts";
import { HoldfastError } from "../../src/index.ts";
import { beforeReport, plain, quick, type TestEnv } from "./bots.ts";
import { attachMeter, meterOf } from "./meter.ts";

/** What a test asks its own route to do with the client. */
export interface ClientCall {
  method: keyof typeof OPERATIONS;
  address?: string;
  key?: string;
  content?: Content;
  options?: EnqueueOptions;
  /** Milliseconds from now, as a `Date`: what JSON cannot carry. */
  inMs?: number;
  /** Base64 of an image, handed on as bytes. */
  bytes?: string;
  /** For lists. */
  state?: string;
  cursor?: string;
  limit?: number;
  value?: unknown;
}

/** What it answers. */
export type ClientAnswer =
  | { value: unknown }
  | { error: { name: string; code?: string; key?: string; message: string; ours: boolean } };

type Run = (client: Client, call: ClientCall) => Promise<unknown>;

const chatOf = (client: Client, call: ClientCall) => client.chat(call.address ?? "");
const pageOf = ({ cursor, limit }: ClientCall) => ({ cursor, limit });

const OPERATIONS = {
  send: (client, call) => chatOf(client, call).send(contentOf(call), call.options),
  enqueue: (client, call) => chatOf(client, call).enqueue(contentOf(call), optionsOf(call)),
  cancel: (client, call) => chatOf(client, call).cancel(call.key ?? ""),
  sendEvent: (client, call) =>
    chatOf(client, call).sendEvent({ type: "paid", id: call.key ?? "", data: call.value }),
  getState: (client, call) => chatOf(client, call).state.get(call.key ?? ""),
  setState: (client, call) => chatOf(client, call).state.set(call.key ?? "", call.value),
  log: (client, call) => chatOf(client, call).log({ limit: call.limit }),
  metrics: (client, call) => chatOf(client, call).metrics(),
  "outbox.get": (client, call) => chatOf(client, call).outbox.get(call.key ?? ""),
  "outbox.list": (client, call) =>
    chatOf(client, call).outbox.list({ ...pageOf(call), state: call.state as "sent" }),
  "outbox.retry": (client, call) => chatOf(client, call).outbox.retry(call.key ?? ""),
  "outbox.discard": (client, call) => chatOf(client, call).outbox.discard(call.key ?? ""),
  "inbox.get": (client, call) => chatOf(client, call).inbox.get(call.key ?? ""),
  "inbox.list": (client, call) =>
    chatOf(client, call).inbox.list({ ...pageOf(call), state: call.state as "done" }),
  "inbox.replay": (client, call) => chatOf(client, call).inbox.replay(call.key ?? ""),
  "all.outbox": (client, call) =>
    client.durability.outbox.list({ ...pageOf(call), state: call.state as "sent" }),
  "all.inbox": (client, call) =>
    client.durability.inbox.list({ ...pageOf(call), state: call.state as "done" }),
  "all.retry": (client, call) => client.durability.retrySend(call.key ?? ""),
  "all.replay": (client, call) => client.durability.replayInbound(call.key ?? ""),
  "all.discard": (client, call) => client.durability.discard(call.key ?? ""),
  "all.metrics": (client) => client.durability.metrics(),
} satisfies Record<string, Run>;

function contentOf(call: ClientCall): Content {
  if (call.bytes === undefined) return call.content ?? "";
  const bytes = Uint8Array.from(atob(call.bytes), (char) => char.charCodeAt(0));
  return { text: "a picture", media: [{ kind: "image", bytes, filename: "dot.png" }] };
}

function optionsOf(call: ClientCall): EnqueueOptions {
  return {
    ...call.options,
    ...(call.inMs === undefined ? {} : { at: new Date(Date.now() + call.inMs) }),
  };
}

/** A route of the bot's own: `POST /client`. */
async function ownRoute(client: Client, request: Request): Promise<Response> {
  if (new URL(request.url).pathname !== "/client") return new Response(null, { status: 404 });
  const call = (await request.json()) as ClientCall;
  const run: Run = OPERATIONS[call.method];
  try {
    return Response.json({ value: (await run(client, call)) ?? null } satisfies ClientAnswer);
  } catch (error) {
    const { name, message, code, key } = error as Error & { code?: string; key?: string };
    const ours = error instanceof HoldfastError;
    return Response.json({ error: { name, message, code, key, ours } });
  }
}

const plainApp = serve<TestEnv>(plain, {
  fetch: (request, env): Promise<Response> => ownRoute(plainApp.client(env), request),
});
const quickApp = serve<TestEnv>(quick, {
  fetch: (request, env): Promise<Response> => ownRoute(quickApp.client(env), request),
});

/** The quick bot's chats live in a class of their own. */
function quickEnv<E extends object>(env: E): E {
  return { ...env, CHAT_ACTOR: (env as Partial<TestEnv>).QUICK_ACTOR };
}

export default {
  fetch(request: Request, env: TestEnv, ctx: ExecutionContext): Promise<Response> {
    const url = new URL(request.url);
    if (!url.pathname.startsWith("/quick/")) return plainApp.fetch(request, env, ctx);
    url.pathname = url.pathname.slice("/quick".length);
    return quickApp.fetch(new Request(url, request), quickEnv(env), ctx);
  },
  scheduled: plainApp.handler.scheduled,
};

export class ChatActor extends plainApp.ChatActor {
  constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
    attachMeter(ctx);
    super(ctx, env);
  }
  override receive(payload: string): Promise<string> {
    meterOf(this.ctx.id.name ?? "").counted("receive");
    return super.receive(payload);
  }
  override call(method: string, payload: string): Promise<string> {
    meterOf(this.ctx.id.name ?? "").counted(method);
    return super.call(method, payload);
  }
  override alarm(): Promise<void> {
    meterOf(this.ctx.id.name ?? "").alarmRuns.push(Date.now());
    return super.alarm();
  }
}

export class QuickActor extends quickApp.ChatActor {
  constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
    attachMeter(ctx);
    super(ctx, quickEnv(env));
  }
  override call(method: string, payload: string): Promise<string> {
    meterOf(this.ctx.id.name ?? "").counted(method);
    return super.call(method, payload);
  }
  override alarm(): Promise<void> {
    meterOf(this.ctx.id.name ?? "").alarmRuns.push(Date.now());
    return super.alarm();
  }
}

export class Connection extends plainApp.Connection {}

export class Registry extends plainApp.Registry {
  constructor(ctx: DurableObjectState, env: Record<string, unknown>) {
    attachMeter(ctx);
    super(ctx, env);
  }
  override async call(method: string, payload: string): Promise<string> {
    meterOf(this.ctx.id.name ?? "").counted(method);
    if (method === "report") {
      const { name } = JSON.parse(payload) as { name: string };
      await beforeReport.get(name)?.();
    }
    return super.call(method, payload);
  }
}
