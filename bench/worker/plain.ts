/** The Worker of the comparisons: the bot as it is deployed, and the bare object beside it. @module */
import { bareFetch } from "./Bare.ts";
import { app } from "./bot.ts";
import type { BenchEnv } from "./env.ts";

export default {
  fetch(request: Request, env: BenchEnv, ctx: ExecutionContext): Promise<Response> | Response {
    if (request.url.includes("/bare/")) return bareFetch(request, env);
    return app.fetch(request, env, ctx);
  },
};

export { Bare } from "./Bare.ts";
export class ChatActor extends app.ChatActor {}
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
