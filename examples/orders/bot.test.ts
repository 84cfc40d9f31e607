/** An order is taken, paid, printed and shipped once, whatever the provider repeats, and whatever dies. */
import { createHmac } from "node:crypto";
import { formatAddress } from "holdfast";
import { crashEverywhere, type TestBot, type TestUser, testBot } from "holdfast/testing";
import { describe, expect, test } from "vitest";
import { bot } from "./bot.ts";
import { type PaymentEnv, takePayment } from "./payments.ts";

const env: PaymentEnv = {
  PAY_URL: "https://pay.example/checkout",
  PAY_SECRET: "a-secret-of-the-tests",
  STAFF_CHAT: "webchat/webchat/staff",
};
const options = { env: { ...env } };

interface Told {
  id: string;
  cents: number;
  reference: string;
}

/** A webhook of the provider. */
function webhook(body: unknown, { secret = env.PAY_SECRET, at = Date.now() } = {}): Request {
  const text = JSON.stringify(body);
  const seconds = Math.floor(at / 1_000);
  const hex = createHmac("sha256", secret).update(`${seconds}.${text}`).digest("hex");
  return new Request("https://bot.example/payments", {
    method: "POST",
    headers: { "pay-signature": `t=${seconds},v1=${hex}` },
    body: text,
  });
}

/** What the link under the newest "Pay" button says. */
function linkOf(t: TestBot, user: TestUser): URL {
  const entry = t
    .platform(user.connection)
    .ledger.findLast((one) => one.chat === user.chat.id && one.buttons[0]?.text === "Pay");
  return new URL(entry?.buttons[0]?.value ?? "none:");
}

function paymentOf(t: TestBot, user: TestUser, id = "pay_1"): Told {
  const { searchParams } = linkOf(t, user);
  return {
    id,
    cents: Number(searchParams.get("cents")),
    reference: searchParams.get("reference") ?? "",
  };
}

async function order(t: TestBot, user: TestUser): Promise<void> {
  await user.say("/order");
  await user.press("Large, 19.00");
  const ref = t.platform(user.connection).addFile(new Uint8Array([0xff, 0xd8]));
  await user.send({ media: [{ kind: "image", ref }] });
}

/** The provider's side: repeats a webhook until it is answered with success. */
async function pay(t: TestBot, body: Told): Promise<void> {
  for (let tries = 0; tries < 5; tries += 1) {
    const answered = await takePayment(webhook(body), env, t.client).catch(() => undefined);
    await t.idle();
    if (answered?.ok) return;
  }
  throw new Error("the webhook was never taken");
}

const orderId = (user: TestUser) => /Order (\w{8})/.exec(user.screen.join())?.[1] ?? "";

function whole(id: string) {
  return {
    customer: [
      "Which size?",
      "Send me the picture.",
      `Order ${id}, large. It is printed once it is paid.`,
      `Thank you! Order ${id} is paid and goes to print.`,
      `Order ${id} is on its way to you.`,
    ],
    staff: [
      `Order ${id}, large: paid (pay_1).`,
      `Order ${id} is marked as shipped, and the customer told.`,
    ],
  };
}

describe("an order", () => {
  test("from size to shipping", async () => {
    const t = testBot(bot, options);
    const [ann, staff] = [t.user("ann"), t.user("staff")];
    await order(t, ann);
    expect(linkOf(t, ann).searchParams.get("cents")).toBe("1900");
    await pay(t, paymentOf(t, ann));
    await staff.press("Shipped");
    await staff.press("Shipped");
    const id = orderId(ann);
    expect(ann.screen).toEqual(whole(id).customer);
    expect(staff.screen).toEqual(whole(id).staff);
    await ann.say("/status");
    expect(ann.last).toBe(`Order ${id}: shipped.`);
  });

  test("on Telegram as well", async () => {
    const staffChat = { chat: "-100", connection: "telegram" };
    const t = testBot(bot, { env: { ...env, STAFF_CHAT: "telegram/telegram/-100" } });
    const ann = t.user("ann", { connection: "telegram" });
    const staff = t.user("sam", staffChat);
    expect(formatAddress(staff.address)).toBe("telegram/telegram/-100");
    await order(t, ann);
    await pay(t, paymentOf(t, ann));
    await staff.press("Shipped");
    expect(ann.screen).toEqual(whole(orderId(ann)).customer);
  });

  test("is reminded of and closed after a day; a payment that comes later is refunded", async () => {
    const t = testBot(bot, options);
    const [ann, staff] = [t.user("ann"), t.user("staff")];
    await order(t, ann);
    const payment = paymentOf(t, ann);
    const id = orderId(ann);
    await t.advance("20h");
    expect(ann.last).toBe(`Order ${id} is still to be paid, within three hours. /cancel ends it.`);
    await t.advance("4h");
    expect(ann.last).toBe(`Order ${id} was not paid and is closed. /order makes a new one.`);
    await pay(t, payment);
    await pay(t, payment);
    expect(staff.screen).toEqual(["Payment pay_1 of 1900 cents is for no open order: refund it."]);
    expect(t.state(ann, `order:${id}`)).toMatchObject({ status: "expired" });
  });

  test("that is reminded of can be paid still", async () => {
    const t = testBot(bot, options);
    const ann = t.user("ann");
    await order(t, ann);
    await t.advance("22h");
    await pay(t, paymentOf(t, ann));
    expect(ann.last).toContain("is paid and goes to print");
    await t.advance("3d");
    expect(ann.screen).toHaveLength(5);
  });

  test("that is open is not thrown away by another, and can be cancelled", async () => {
    const t = testBot(bot, options);
    const ann = t.user("ann");
    await order(t, ann);
    await ann.say("/order");
    expect(ann.last).toBe("Your last order is still open. /cancel ends it.");
    await ann.say("/cancel");
    expect(ann.last).toBe("Cancelled. Nothing is to be paid.");
    await ann.say("/order");
    expect(ann.last).toBe("Which size?");
  });

  test("that is underpaid is for staff to settle", async () => {
    const t = testBot(bot, options);
    const [ann, staff] = [t.user("ann"), t.user("staff")];
    await order(t, ann);
    await pay(t, { ...paymentOf(t, ann), cents: 1 });
    expect(staff.last).toContain("1 cents instead of 1900 (pay_1): settle that first.");
  });

  test("is not taken before the shop can be paid", async () => {
    const t = testBot(bot, { env: { ...env, PAY_SECRET: "" } });
    const ann = t.user("ann");
    await ann.say("/order");
    expect(ann.screen).toEqual(["We are not open yet."]);
  });
});

describe("the webhook", () => {
  test("that comes five times counts once", async () => {
    const t = testBot(bot, options);
    const [ann, staff] = [t.user("ann"), t.user("staff")];
    await order(t, ann);
    const body = paymentOf(t, ann);
    const answers: unknown[] = [];
    for (let n = 0; n < 5; n += 1) {
      const answered = await takePayment(webhook(body), env, t.client);
      answers.push([answered.status, await answered.json()]);
      if (n === 2) await t.idle();
    }
    await t.idle();
    const repeat = [200, { accepted: false }];
    expect(answers).toEqual([[200, { accepted: true }], repeat, repeat, repeat, repeat]);
    expect(ann.screen.filter((text) => text.includes("goes to print"))).toHaveLength(1);
    expect(staff.screen).toHaveLength(1);
  });

  test.each([
    ["of another secret", (body: Told) => webhook(body, { secret: "guessed" })],
    ["that is old", (body: Told) => webhook(body, { at: Date.now() - 6 * 60_000 })],
    [
      "of another body",
      (body: Told) => {
        const headers = { "pay-signature": webhook(body).headers.get("pay-signature") ?? "" };
        const changed = JSON.stringify({ ...body, cents: 1 });
        return new Request("https://x.example/payments", {
          method: "POST",
          headers,
          body: changed,
        });
      },
    ],
    [
      "without a signature",
      (body: Told) =>
        new Request("https://x.example/payments", { method: "POST", body: JSON.stringify(body) }),
    ],
  ])("%s is refused, and nothing is paid", async (_name, forged) => {
    const t = testBot(bot, options);
    const [ann, staff] = [t.user("ann"), t.user("staff")];
    await order(t, ann);
    const answered = await takePayment(forged(paymentOf(t, ann)), env, t.client);
    await t.idle();
    expect(answered.status).toBe(401);
    expect(staff.screen).toEqual([]);
    expect(t.state(ann, `order:${orderId(ann)}`)).toMatchObject({ status: "open" });
  });

  test("is refused where no secret is set, also signed with an empty one", async () => {
    const t = testBot(bot, options);
    const body = { id: "pay_1", cents: 1, reference: "x" };
    const open = { ...env, PAY_SECRET: "" };
    expect((await takePayment(webhook(body, { secret: "" }), open, t.client)).status).toBe(401);
  });

  test("with a signature but no payment of ours is told so", async () => {
    const t = testBot(bot, options);
    const status = async (body: unknown) =>
      (await takePayment(webhook(body), env, t.client)).status;
    expect(await status({ id: "pay_1", cents: 1, reference: "somebody else's" })).toBe(400);
    expect(await status({ id: "pay_1", cents: 1.5, reference: "x" })).toBe(400);
    expect(await status(null)).toBe(400);
  });
});

test("the staff's button does nothing outside of the staff's chat", async () => {
  const t = testBot(bot, options);
  const [ann, eve] = [t.user("ann"), t.user("eve")];
  await order(t, ann);
  await pay(t, paymentOf(t, ann));
  const value = t.platform().ledger.find(({ chat }) => chat === "staff")?.buttons[0]?.value ?? "";
  await eve.send({ kind: "action", press: { value, pressId: "p1" } });
  expect(ann.last).toContain("goes to print");
  expect(eve.screen).toEqual([]);
});

test("killed anywhere, an order is asked, paid, handed on and shipped once", async () => {
  const { points } = await crashEverywhere(
    {
      bot: () => bot,
      options,
      run: async (t) => {
        const ann = t.user("ann");
        await order(t, ann);
        await pay(t, paymentOf(t, ann));
        await t.user("staff").press("Shipped");
      },
    },
    (t) => {
      const [ann, staff] = [t.user("ann"), t.user("staff")];
      const id = orderId(ann);
      expect(ann.screen).toEqual(whole(id).customer);
      expect(staff.screen).toEqual(whole(id).staff);
      expect(t.state(ann, `order:${id}`)).toMatchObject({ status: "shipped" });
    },
  );
  expect(points.length).toBeGreaterThan(50);
}, 60_000);
