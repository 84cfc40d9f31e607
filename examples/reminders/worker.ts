/** The Worker of the reminders example. @module */
import { serve } from "holdfast/cloudflare";
import { bot } from "./bot.ts";

const app = serve(bot);

export default app.handler;
export class ChatActor extends app.ChatActor {}
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
export class WebChat extends app.WebChat {}
