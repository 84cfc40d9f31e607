/**
 * Appointments: a flow books them, scheduled sends remind of them, and a cron job says each morning what the
 * day brings.
 *
 * @module
 */
import {
  Bot,
  FlowAnswerError,
  type FlowContext,
  FlowTimeoutError,
  formatAddress,
  RetryTurn,
  telegram,
  webchat,
} from "holdfast";
import { DAY_MS, dayOf, daySchema, HOUR_MS, shown, timeSchema } from "./times.ts";

/** One appointment. `at` is epoch milliseconds. */
export interface Appointment {
  id: number;
  at: number;
}

interface Shape {
  state: {
    appointments: Appointment[];
    lastId: number;
    /** Only in the chat at {@link DIRECTORY}: addresses of chats with appointments. */
    chats: string[];
  };
}

export const bot = new Bot<unknown, Shape>({
  id: "reminders",
  channels: [webchat(), telegram()],
});

/** A chat that nobody is in. Its actor keeps the list of chats, one change at a time. */
const DIRECTORY = webchat.address("directory");

/** How long before an appointment its reminders come, in ms. */
const LEADS = { day: DAY_MS, hour: HOUR_MS };

function remindersOf({ id, at }: Appointment): { key: string; at: number }[] {
  return Object.entries(LEADS).map(([name, lead]) => ({
    key: `reminder-${id}-${name}`,
    at: at - lead,
  }));
}

function sorted(appointments: readonly Appointment[]): Appointment[] {
  return [...appointments].sort((a, b) => a.at - b.at);
}

/** Schedules the reminders of an appointment. Those of an earlier time for it are replaced, or dropped. */
async function remind(c: FlowContext, appointment: Appointment): Promise<void> {
  for (const { key, at } of remindersOf(appointment)) {
    if (at > c.now()) {
      await c.enqueue(`Reminder: you have an appointment at ${shown(appointment.at)}.`, {
        at,
        notAfter: appointment.at,
        idempotencyKey: key,
        onConflict: "replace",
      });
    } else {
      await c.step(`drop ${key}`, () => c.client.chat(c.address).cancel(key));
    }
  }
}

/** Asks when, and whether that is right. `undefined`: it is not. */
async function askWhen(c: FlowContext): Promise<number | undefined> {
  const day = await c.ask("Which day?", { schema: daySchema(c.now()), timeout: "1h" });
  const at = await c.ask("At what time?", { schema: timeSchema(day, c.now()), timeout: "1h" });
  const sure = await c.ask(`${shown(at)} UTC: is that right?`, {
    choices: ["Yes", "No"],
    timeout: "1h",
  });
  return sure === "Yes" ? at : undefined;
}

/** Ends a talk that leads nowhere with a word, not as a failed run. */
async function patiently(c: FlowContext, talk: () => Promise<void>): Promise<void> {
  try {
    await talk();
  } catch (error) {
    if (!(error instanceof FlowAnswerError || error instanceof FlowTimeoutError)) throw error;
    await c.reply("Let us leave it at that. Nothing is changed.");
  }
}

const book = bot.flow("book", (c) =>
  patiently(c, async () => {
    const at = await askWhen(c);
    if (at === undefined) {
      await c.reply("Not booked. Say /book to begin again.");
      return;
    }
    // State is read here at the earliest: a run keeps to what it has read, and other turns may change it meanwhile.
    const id = c.state.update<number>("lastId", (last) => (last ?? 0) + 1);
    const appointment = { id, at };
    c.state.update<Appointment[]>("appointments", (all) => sorted([...(all ?? []), appointment]));
    await remind(c, appointment);
    // The run's id: a repeat is the same event, and a chat that left the list gets on it again. Repeated, since
    // the directory is another object, which may be restarting.
    const joined = { type: "joined", id: c.id, data: formatAddress(c.address) };
    await c.step("join", () => c.client.chat(DIRECTORY).sendEvent(joined), { retries: 5 });
    await c.reply(`Booked: ${shown(at)}. /list shows all.`);
  }),
);

const move = bot.flow("move", (c, input: { id: number }) =>
  patiently(c, async () => {
    const at = await askWhen(c);
    if (at === undefined) {
      await c.reply("Not moved.");
      return;
    }
    const all = c.state.get<Appointment[]>("appointments") ?? [];
    const old = all.find(({ id }) => id === input.id);
    if (old === undefined) {
      await c.reply("That appointment was cancelled meanwhile.");
      return;
    }
    let moved: Appointment = { ...old, at };
    // What was said has used its key up: then the appointment goes on under another id.
    if (remindersOf(old).some((one) => one.at <= c.now())) {
      const chat = c.client.chat(c.address);
      for (const { key } of remindersOf(old)) await c.step(`drop ${key}`, () => chat.cancel(key));
      moved = { id: c.state.update<number>("lastId", (last) => (last ?? 0) + 1), at };
    }
    const others = all.filter(({ id }) => id !== old.id);
    c.state.set("appointments", sorted([...others, moved]));
    await remind(c, moved);
    await c.reply(`Moved to ${shown(at)}.`);
  }),
);

bot.command("start", (ctx) => ctx.reply("I keep your appointments: /book, /list."));
bot.command("book", (ctx) => ctx.start(book));

const moveIt = bot.action("move", async (ctx, { id }: { id: number }) => {
  await ctx.start(move, { id });
});

const cancelIt = bot.action("cancel", async (ctx, data: { id: number }) => {
  const all = ctx.state.get("appointments") ?? [];
  const gone = all.find(({ id }) => id === data.id);
  if (gone === undefined) {
    await ctx.reply("That appointment is not there any more.");
    return;
  }
  const chat = ctx.client.chat(ctx.address);
  for (const { key } of remindersOf(gone)) await chat.cancel(key);
  ctx.state.set(
    "appointments",
    all.filter((one) => one !== gone),
  );
  await ctx.reply(`Cancelled: ${shown(gone.at)}.`);
});

bot.command("list", async (ctx) => {
  const coming = (ctx.state.get("appointments") ?? []).filter(({ at }) => at > ctx.event.at);
  if (coming.length === 0) await ctx.reply("You have no appointments. /book makes one.");
  for (const { id, at } of coming) {
    const buttons = [moveIt.button("Move", { id }), cancelIt.button("Cancel", { id })];
    await ctx.reply({ text: shown(at), buttons });
  }
});

// Turns of the directory: two chats that join at once come one after the other.
bot.on("event:joined", (ctx) => {
  const chat = String(ctx.event.data);
  ctx.state.update("chats", (all = []) => (all.includes(chat) ? all : [...all, chat]));
});
bot.on("event:left", (ctx) => {
  ctx.state.update("chats", (all = []) => all.filter((one) => one !== ctx.event.data));
});

bot.cron("0 8 * * *", { name: "morning" }, async ({ client }) => {
  const chats = (await client.chat(DIRECTORY).state.get<string[]>("chats")) ?? [];
  const failed: unknown[] = [];
  for (const chat of chats) {
    // Each chat says its own list, in a turn of its own; a chat that cannot be told does not stop the others.
    const morning = { type: "morning", id: crypto.randomUUID() };
    await client
      .chat(chat)
      .sendEvent(morning)
      .catch((error: unknown) => failed.push(error));
  }
  // Such as one that was restarting. All are told again: who has said it does not say it twice.
  if (failed.length > 0) throw new RetryTurn({ cause: new AggregateError(failed), after: "30s" });
});

bot.on("event:morning", async (ctx) => {
  const today = dayOf(ctx.event.at);
  const ahead = (ctx.state.get("appointments") ?? []).filter(({ at }) => at > ctx.event.at);
  ctx.state.set("appointments", ahead);
  if (ahead.length === 0) {
    const data = formatAddress(ctx.address);
    await ctx.client.chat(DIRECTORY).sendEvent({ type: "left", id: `${data} ${today}`, data });
    return;
  }
  const times = ahead.filter(({ at }) => at < today + DAY_MS).map(({ at }) => shown(at).slice(11));
  // The key: once a day, however often the job runs.
  if (times.length > 0)
    await ctx.reply(`Today: ${times.join(", ")}.`, { idempotencyKey: `morning-${today}` });
});

bot.on("action:expired", (ctx) => ctx.reply("That button is too old: /list shows new ones."));
bot.otherwise((ctx) => ctx.reply("Say /book or /list."));
