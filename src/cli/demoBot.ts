/**
 * The Worker of `npm run demo`: a bot as somebody would write it. It counts the messages of a chat and
 * answers each; what it announces goes to the demo's own ledger.
 *
 * @module
 */
import { serve } from "../cloudflare.ts";
import { Bot, telegram } from "../index.ts";

/** What the demo gives it. */
interface DemoEnv {
  /** Where announcements are posted. */
  LEDGER: string;
}

interface Shape {
  state: { count: number };
}

const bot = new Bot<DemoEnv, Shape>({
  id: "demo",
  channels: [telegram()],
  durability: {
    // A second instead of a minute, so that nobody has to wait for what a kill left behind; and kills by
    // the dozen hit one message more often than bad luck would.
    inbox: { leaseMs: 1_000, maxAttempts: 100, backoff: { baseMs: 100, capMs: 1_000 } },
    outbox: { leaseMs: 1_000 },
  },
});

bot.otherwise(async (ctx) => {
  const count = ctx.state.update("count", (n) => (n ?? 0) + 1);
  await ctx.reply(`You said: ${ctx.text}, message ${count} of this chat`);
});

/** @throws when the ledger does not answer: the announcement is then made again */
async function tell(env: DemoEnv, what: string, about: unknown): Promise<void> {
  const response = await fetch(`${env.LEDGER}/${what}`, {
    method: "POST",
    body: JSON.stringify(about),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`the ledger answered ${response.status}`);
}

bot.on("durability:ambiguous", (event, { env }) => tell(env, "ambiguous", event));
bot.on("durability:dead", (event, { env }) => tell(env, "dead", event));

const app = serve<DemoEnv>(bot);

export default app.handler;
export class ChatActor extends app.ChatActor {}
export class Connection extends app.Connection {}
export class Registry extends app.Registry {}
