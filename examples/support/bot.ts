/**
 * Support by people: what customers write comes up in a staff chat, and what staff answer there, by replying, goes
 * back to the customer.
 *
 * @module
 */
import { Bot, DIRECT, formatAddress, telegram, webchat } from "holdfast";

export interface Env {
  /** The staff's chat: an address, as `/whoami` says it there. */
  STAFF_CHAT: string;
}

/** An open case, as the staff's chat keeps it. */
interface Case {
  number: number;
  /** The customer's address. */
  chat: string;
  name: string;
  /** Ids of the messages in the staff's chat that show it, the newest last. */
  messages: string[];
}

interface Shape {
  state: {
    /** In a customer's chat: whether a case is open. */
    open: boolean;
    /** In the staff's chat. A closed case is gone. */
    cases: Case[];
    lastNumber: number;
  };
}

/** What a customer's chat hands to the staff's. */
interface Question {
  chat: string;
  name: string;
  text: string;
}

/** How many messages of one case staff can reply to. */
const MAX_MESSAGES = 50;

export const bot = new Bot<Env, Shape>({
  id: "support",
  channels: [webchat(), telegram()],
  // Two bots that answer each other would never stop.
  allowBots: false,
  // Every handler here may run again: what it says and hands on is keyed. So nothing is lost to a bad moment.
  durability: { inbox: { retryHandlers: true } },
});

/** Whether something is the staff's chat. */
function isStaff({ address, env }: { address: Parameters<typeof formatAddress>[0]; env: Env }) {
  return formatAddress(address) === env.STAFF_CHAT;
}

/** Monday to Friday, 9 to 17 UTC. */
function isWorkingHour(at: number): boolean {
  const date = new Date(at);
  const [day, hour] = [date.getUTCDay(), date.getUTCHours()];
  return day >= 1 && day <= 5 && hour >= 9 && hour < 17;
}

function caseOf(cases: readonly Case[], number: string | undefined, replyTo: string | undefined) {
  return cases.find((one) =>
    number === undefined
      ? replyTo !== undefined && one.messages.includes(replyTo)
      : one.number === Number(number),
  );
}

/** For `STAFF_CHAT`. */
bot.command("whoami", (ctx) => ctx.reply(`This chat is ${formatAddress(ctx.address)}`));

bot.command("start", (ctx) => ctx.reply("Write what it is about, and a person answers."));

/** Ends a case: staff as a reply to it or with its number, customers in their own chat. */
bot.command("done", async (ctx) => {
  const closed = { type: "closed", id: `${formatAddress(ctx.address)} ${ctx.ref.id}` };
  if (!isStaff(ctx)) {
    const data = formatAddress(ctx.address);
    if (ctx.state.get("open"))
      await ctx.client.chat(ctx.env.STAFF_CHAT).sendEvent({ ...closed, data });
    ctx.state.set("open", false);
    await ctx.reply("Done. Write again whenever you like.");
    return;
  }
  const cases = ctx.state.get("cases") ?? [];
  const number = /^#?(\d+)$/.exec((ctx.match[1] ?? "").trim())?.[1];
  const found = caseOf(cases, number, ctx.event.replyTo);
  if (found === undefined) {
    await ctx.reply("Which case? Reply to it with /done, or say /done and its number.");
    return;
  }
  await ctx.client.chat(found.chat).sendEvent(closed);
  ctx.state.set(
    "cases",
    cases.filter((one) => one !== found),
  );
  await ctx.reply(`#${found.number} is closed.`);
});

bot.on("event:closed", async (ctx) => {
  if (!isStaff(ctx)) {
    ctx.state.set("open", false);
    await ctx.reply("We think that this is done. Write again whenever you like.");
    return;
  }
  const cases = ctx.state.get("cases") ?? [];
  const found = cases.find(({ chat }) => chat === ctx.event.data);
  if (found === undefined) return;
  ctx.state.set(
    "cases",
    cases.filter((one) => one !== found),
  );
  await ctx.reply(`#${found.number} was closed by ${found.name}.`);
});

/** The staff's chat shows a question. A turn of that chat: it learns the message's id, which replies name. */
bot.on("event:question", async (ctx) => {
  if (!isStaff(ctx)) return;
  // Sent by the handler below, and by nobody else: external events come from the bot's own code.
  const { chat, name, text } = ctx.event.data as Question;
  const cases = ctx.state.get("cases") ?? [];
  const known = cases.find((one) => one.chat === chat);
  const number = known?.number ?? ctx.state.update("lastNumber", (last) => (last ?? 0) + 1);
  // Does not throw where the platform refuses it or is away: then there is no id, and the number is the way.
  const { receipts } = await ctx.sendBatch([`#${number} ${name}: ${text}`]);
  const ids = receipts.flatMap(({ platformMessageIds }) => platformMessageIds);
  const messages = [...(known?.messages ?? []), ...ids].slice(-MAX_MESSAGES);
  ctx.state.set("cases", [
    ...cases.filter((one) => one !== known),
    { number, chat, name, messages },
  ]);
});

/** Staff answer: as a reply, or with the number, as in `#3 Hello`. Other talk among staff is theirs. */
bot.when(isStaff, async (ctx) => {
  const { replyTo } = ctx.event;
  const [, number, numbered] = /^#(\d+)\s+([\s\S]+)$/.exec(ctx.text) ?? [];
  if (number === undefined && replyTo === undefined) return;
  const found = caseOf(ctx.state.get("cases") ?? [], number, replyTo);
  const text = numbered ?? ctx.text;
  if (found === undefined) {
    await ctx.reply(
      "Nobody got that: there is no such open case. Say #, its number, and the answer.",
    );
  } else if (text === "") {
    await ctx.reply(`${found.name} got nothing: only text is handed on.`);
  } else {
    await ctx.chatAt(found.chat).send(text);
    await ctx.react("👍");
  }
});

/** Customers write. Groups that the bot is in are none of its business. */
bot.when(DIRECT, async (ctx) => {
  const chat = formatAddress(ctx.address);
  const files = ctx.media.map(({ kind }) => `[${kind}]`);
  const text = [ctx.text, ...files].filter(Boolean).join(" ") || "[something without text]";
  const data: Question = { chat, name: ctx.sender?.name ?? "Somebody", text };
  // Ids of events are of their chat: with the address they are unique among all that write to staff.
  const id = `${chat} ${ctx.ref.id}`;
  await ctx.client.chat(ctx.env.STAFF_CHAT).sendEvent({ type: "question", id, data });
  if (ctx.state.get("open")) return;
  ctx.state.set("open", true);
  await ctx.reply(
    isWorkingHour(ctx.event.at)
      ? "Thank you. Somebody will answer soon."
      : "Thank you. We are here Monday to Friday, 9 to 17 UTC, and will answer then.",
  );
});

/** An answer that does not reach its customer is told to staff; one to staff itself would go round in circles. */
bot.on("durability:dead", async ({ kind, id, chatId, error }, { client, env }) => {
  if (kind !== "outbound" || chatId === env.STAFF_CHAT) return;
  await client.chat(env.STAFF_CHAT).enqueue(`A message to ${chatId} did not arrive: ${error}`, {
    idempotencyKey: `dead ${chatId} ${id}`,
  });
});
