/**
 * Prints of pictures: a flow asks for size and picture and waits a day for the payment; staff press a button when
 * the print is on its way.
 *
 * @module
 */
import {
  Bot,
  FlowAnswerError,
  type FlowContext,
  FlowTimeoutError,
  formatAddress,
  type Hook,
  IMAGE,
  RetryTurn,
  type StandardSchema,
  telegram,
  webchat,
} from "holdfast";
import { type Payment, type PaymentEnv, paymentLink } from "./payments.ts";

export type Env = PaymentEnv;

/** An order, as the customer's chat keeps it. */
export interface Order {
  id: string;
  size: string;
  cents: number;
  status: "open" | "expired" | "paid" | "shipped";
}

interface Shape {
  state: {
    /** The customer's last order. */
    last: string;
    /** Each order under a key of its own: the flow and the shipping never write the same one at once. */
    [order: `order:${string}`]: Order;
    /** In the staff's chat: orders that were marked as shipped. */
    [shipped: `shipped:${string}`]: true;
  };
}

const HOUR_MS = 3_600_000;

const SIZES = [
  { text: "Small, 9.00", value: { size: "small", cents: 900 } },
  { text: "Large, 19.00", value: { size: "large", cents: 1_900 } },
];

export const bot = new Bot<Env, Shape>({
  id: "orders",
  channels: [webchat(), telegram()],
  // Buttons with more data than the platform takes live as long as their record: staff have a month.
  durability: { retention: "30d" },
});

/** The payment, or `undefined` where none came in time. */
async function paidWithin(
  c: FlowContext<Env>,
  paid: Hook<Payment>,
  timeout: "20h" | "4h",
): Promise<Payment | undefined> {
  try {
    return (await c.waitFor({ paid }, { timeout })).value;
  } catch (error) {
    if (error instanceof FlowTimeoutError) return undefined;
    throw error;
  }
}

async function askForOrder(c: FlowContext<Env>) {
  const { size, cents } = await c.ask("Which size?", { choices: SIZES, timeout: "1h" });
  const picture = await c.ask("Send me the picture.", { accept: IMAGE, timeout: "1h" });
  return { size, cents, picture };
}

const order = bot.flow("order", { cancelled: "Cancelled. Nothing is to be paid." }, async (c) => {
  let asked: Awaited<ReturnType<typeof askForOrder>>;
  try {
    asked = await askForOrder(c);
  } catch (error) {
    if (!(error instanceof FlowAnswerError || error instanceof FlowTimeoutError)) throw error;
    await c.reply("Let us leave it at that. /order begins again.");
    return;
  }
  const { size, cents, picture } = asked;
  const made: Order = { id: c.uuid().slice(0, 8), size, cents, status: "open" };
  const keep = (status: Order["status"]) => c.state.set(`order:${made.id}`, { ...made, status });
  keep("open");
  c.state.set("last", made.id);

  const hook = c.hook<Payment>("payment");
  // The link ends before the order does, so that no payment arrives just as the order goes.
  const until = c.now() + 23 * HOUR_MS;
  const link = paymentLink(c.env, { reference: hook.token, cents, until });
  await c.reply({
    text: `Order ${made.id}, ${size}. It is printed once it is paid.`,
    buttons: [{ text: "Pay", url: link }],
  });
  let payment = await paidWithin(c, hook, "20h");
  if (payment === undefined) {
    await c.reply(`Order ${made.id} is still to be paid, within three hours. /cancel ends it.`);
    payment = await paidWithin(c, hook, "4h");
  }
  if (payment === undefined) {
    keep("expired");
    await c.reply(`Order ${made.id} was not paid and is closed. /order makes a new one.`);
    return;
  }
  keep("paid");
  await tellStaff(c, made, payment, picture.media[0]?.ref.fileId);
  await c.reply(`Thank you! Order ${made.id} is paid and goes to print.`);
});

async function tellStaff(
  c: FlowContext<Env>,
  made: Order,
  payment: Payment,
  fileId: unknown,
): Promise<void> {
  const paid =
    payment.cents === made.cents
      ? `paid (${payment.id})`
      : `${payment.cents} cents instead of ${made.cents} (${payment.id}): settle that first`;
  const shipment = { chat: formatAddress(c.address), id: made.id };
  await c.chatAt(c.env.STAFF_CHAT).send({
    text: `Order ${made.id}, ${made.size}: ${paid}.`,
    buttons: [shipped.button("Shipped", shipment)],
    // The platform has the picture already; the staff's chat is on the same one.
    ...(typeof fileId === "string" ? { media: { kind: "image", fileId } } : {}),
  });
}

interface Shipment {
  chat: string;
  id: string;
}

/** Button data comes back from outside. */
const shipmentSchema: StandardSchema<Shipment> = {
  "~standard": {
    version: 1,
    vendor: "orders",
    validate: (value) => {
      const { chat, id } = (value ?? {}) as Partial<Record<keyof Shipment, unknown>>;
      return typeof chat === "string" && typeof id === "string"
        ? { value: { chat, id } }
        : { issues: [{ message: "no shipment" }] };
    },
  },
};

const shipped = bot.action("shipped", { schema: shipmentSchema }, async (ctx, { chat, id }) => {
  if (formatAddress(ctx.address) !== ctx.env.STAFF_CHAT) {
    ctx.log.warn("a press of the staff's button from elsewhere", { id });
    return;
  }
  if (ctx.state.get(`shipped:${id}`)) {
    await ctx.answer("It was marked already.");
    return;
  }
  // A turn of the customer's chat: the state there is its own. Its object may be restarting just now, and by the
  // event's id a repeat is harmless.
  await ctx.client
    .chat(chat)
    .sendEvent({ type: "shipped", id, data: id })
    .catch((cause: unknown) => {
      throw new RetryTurn({ cause });
    });
  ctx.state.set(`shipped:${id}`, true);
  await ctx.reply(`Order ${id} is marked as shipped, and the customer told.`);
});

bot.on("event:shipped", async (ctx) => {
  const id = String(ctx.event.data);
  const sent = ctx.state.get(`order:${id}`);
  if (sent === undefined) return;
  ctx.state.set(`order:${id}`, { ...sent, status: "shipped" });
  await ctx.reply(`Order ${id} is on its way to you.`);
});

bot.command("start", (ctx) => ctx.reply("I print your pictures: /order, /status."));

bot.command("order", async (ctx) => {
  if (!ctx.env.STAFF_CHAT || !ctx.env.PAY_SECRET || !ctx.env.PAY_URL) {
    await ctx.reply("We are not open yet.");
    return;
  }
  // A new order must not throw away one whose payment is under way.
  const { id, started } = await ctx.start(order, undefined, { active: "keep" });
  if (started) return;
  // Also where a crash repeats this turn: then the run that is there already is its own.
  const own = await ctx.client.chat(ctx.address).flows.get(id);
  if (own === undefined) await ctx.reply("Your last order is still open. /cancel ends it.");
});

bot.command("status", async (ctx) => {
  const last = ctx.state.get("last");
  const found = last === undefined ? undefined : ctx.state.get(`order:${last}`);
  await ctx.reply(found ? `Order ${found.id}: ${found.status}.` : "You have no order yet.");
});

/** For `STAFF_CHAT`. */
bot.command("whoami", (ctx) => ctx.reply(`This chat is ${formatAddress(ctx.address)}`));

bot.on("action:expired", (ctx) => ctx.reply("That button is too old."));
bot.when(
  (ctx) => formatAddress(ctx.address) !== ctx.env.STAFF_CHAT,
  (ctx) => ctx.reply("Say /order or /status."),
);
