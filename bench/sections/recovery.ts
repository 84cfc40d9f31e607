/** How soon a reply that a crash held up is there once the runtime is started again. @module */
import { setTimeout as delay } from "node:timers/promises";
import { Wired } from "../lib/http.ts";
import { messageTo, Served, type Side, varsOf } from "../lib/Served.ts";
import { type Bench, inTurn, type Result, type Section } from "../lib/section.ts";
import { freshChat } from "../lib/updates.ts";

/** The lease, in ms: when the alarm of the message is due. */
const LEASE_MS = 250;

/** Times from the start of the new process, in ms. */
interface Times {
  listening: number;
  arrived: number;
}

/** A process with one message in work is killed, stays down until its lease is over, and is started. */
async function measure(bench: Bench, side: Side): Promise<Times> {
  const { platform } = bench;
  const options = { worker: "plain", apiBase: platform.url, leaseMs: LEASE_MS } as const;
  await using served = await Served.start({ ...options, bot: "held" });
  const path = side === "bare" ? `/bare/later?ms=${LEASE_MS}` : "/webhooks/telegram";
  const { request, reply } = messageTo(path, freshChat());
  const arrival = platform.arrival(reply);
  const wire = await Wired.open(served.port);
  const status = await wire.send(request);
  if (status !== 200) throw new Error(`the webhook answered ${status}`);
  const killed = served.workerd.kill();
  wire.close();
  await killed;
  await delay(LEASE_MS + 50);
  const began = performance.now();
  await served.workerd.restart({ vars: varsOf({ ...options, bot: "echo" }) });
  const listening = performance.now() - began;
  return { listening, arrived: (await arrival).at - began };
}

/** The section. */
export const recovery: Section = {
  name: "recovery",
  async run(bench): Promise<Result> {
    const times = await inTurn(bench, "recovery", (side) => measure(bench, side));
    const pick = (name: keyof Times) => ({
      holdfast: times.holdfast.map((one) => one[name]),
      baseline: times.bare.map((one) => one[name]),
    });
    return {
      title: "From SIGKILL and restart to the overdue reply",
      how: `A message is admitted and its handler runs; the runtime is killed (SIGKILL), stays down until the lease of
${LEASE_MS} ms is over, and is started on the same storage. No request is sent to it. Counted from the start of the
new process. Baseline: an object that keeps the update and answers it from an alarm of the same time. For
information: there is no budget, and most of it is the runtime's own start.`,
      lines: [
        { what: "the process listens", unit: "ms", ...pick("listening") },
        { what: "the reply is at the platform", unit: "ms", ...pick("arrived") },
      ],
    };
  },
};
