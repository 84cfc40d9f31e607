/** The Worker of the orders example: the bot, and the route that the payment provider calls. @module */
import { serve } from "holdfast/cloudflare";
import { bot } from "./bot.ts";
import { takePayment } from "./payments.ts";

const app = serve(bot, {
  fetch: async (request, env): Promise<Response> =>
    new URL(request.url).pathname === "/payments"
      ? takePayment(request, env, app.client(env))
      : new Response("not found\n", { status: 404 }),
});

export default app.handler;
export class ChatActor extends app.ChatActor {}
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
export class WebChat extends app.WebChat {}
