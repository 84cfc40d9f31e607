/**
 * Payments: the link that a customer pays by, and the webhook by which the provider says that it was paid. The
 * provider here is made up; the real ones differ in names.
 *
 * @module
 */
import { type Client, HoldfastError } from "holdfast";

/** What payments need of the environment. */
export interface PaymentEnv {
  /** Where customers pay. */
  PAY_URL: string;
  /** What the provider signs its webhooks with. */
  PAY_SECRET: string;
  /** Who hears of payments that belong to no order: an address, as `/whoami` says it. */
  STAFF_CHAT: string;
}

/** A payment, as the provider tells it and as the flow gets it. */
export interface Payment {
  id: string;
  cents: number;
}

/** Signatures that are older, or of a clock that is further off, are refused. In ms. */
const MAX_AGE_MS = 5 * 60_000;

/** A link to pay by. `reference` comes back with the payment; `until` is epoch milliseconds. */
export function paymentLink(
  env: PaymentEnv,
  { reference, cents, until }: { reference: string; cents: number; until: number },
): string {
  const url = new URL(env.PAY_URL);
  url.searchParams.set("reference", reference);
  url.searchParams.set("cents", String(cents));
  url.searchParams.set("until", new Date(until).toISOString());
  return url.href;
}

/**
 * Answers the provider's webhook: with success once the payment is committed, so that the provider repeats what
 * may not have arrived.
 *
 * @param now epoch milliseconds
 */
export async function takePayment(
  request: Request,
  env: PaymentEnv,
  client: Client,
  now = Date.now(),
): Promise<Response> {
  if (request.method !== "POST") return answer(405, "post to this address");
  const body = new Uint8Array(await request.arrayBuffer());
  if (!(await isSigned(request.headers.get("pay-signature") ?? "", body, env.PAY_SECRET, now)))
    return answer(401, "bad signature");
  const payment = readPayment(body);
  if (payment === undefined) return answer(400, "no payment");
  const { reference, ...payload } = payment;
  try {
    return Response.json(await client.resume(reference, payload));
  } catch (error) {
    // Anything else may pass: the provider gets a 500 and repeats it.
    if (!(error instanceof HoldfastError)) throw error;
    if (error.code === "hook_invalid") return answer(400, "unknown reference");
    if (error.code !== "hook_gone") throw error;
    // Money for an order that was cancelled or ran out. The key: once, however often the provider repeats it.
    await client
      .chat(env.STAFF_CHAT)
      .enqueue(`Payment ${payment.id} of ${payment.cents} cents is for no open order: refund it.`, {
        idempotencyKey: `refund-${payment.id}`,
      });
    return Response.json({ accepted: false });
  }
}

/** Whether `header`, as in `t=<seconds>,v1=<hex>`, is the HMAC of `<seconds>.<body>`, and fresh. */
async function isSigned(
  header: string,
  body: Uint8Array,
  secret: string | undefined,
  now: number,
): Promise<boolean> {
  const [, seconds, hex] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  // Without a secret nothing is signed, also not by an empty one.
  if (seconds === undefined || hex === undefined || !secret) return false;
  if (Math.abs(now - Number(seconds) * 1_000) > MAX_AGE_MS) return false;
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, [
    "verify",
  ]);
  const signature = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  // Over the raw bytes, and in constant time.
  const signed = new Uint8Array([...encoder.encode(`${seconds}.`), ...body]);
  return crypto.subtle.verify(algorithm, key, signature, signed);
}

function readPayment(body: Uint8Array): (Payment & { reference: string }) | undefined {
  try {
    const { id, cents, reference } = JSON.parse(new TextDecoder().decode(body)) as Record<
      string,
      unknown
    >;
    if (typeof id !== "string" || typeof reference !== "string") return undefined;
    return Number.isSafeInteger(cents) ? { id, cents: Number(cents), reference } : undefined;
  } catch {
    return undefined;
  }
}

function answer(status: number, error: string): Response {
  return Response.json({ error }, { status });
}
