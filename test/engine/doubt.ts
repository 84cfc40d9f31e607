/** Shared by the tests of the decision table of design §6. @module */
import type { DeliveryClass } from "../../src/channels/channel.ts";
import type { DurabilityOptions } from "../../src/index.ts";
import type { Fault } from "../../src/testing/index.ts";
import { type Lab, lab, only } from "./lab.ts";

export type Policy = "skip" | "resend-once" | "resend";
/** How an attempt becomes ambiguous. The first three leave the message at the platform. */
export type Cause =
  | "answer lost"
  | "no answer"
  | "no id"
  | "killed after"
  | "reset"
  | "hung"
  | "server error"
  | "killed before";

const FAULTS: Partial<Record<Cause, Fault>> = {
  "answer lost": { type: "acceptThenDrop" },
  "no answer": { type: "acceptThenHang" },
  "no id": { type: "noId" },
  reset: { type: "drop" },
  hung: { type: "hang" },
  "server error": { type: "serverError" },
};
export const SAID: readonly Cause[] = ["answer lost", "no answer", "no id", "killed after"];
export const UNSAID: readonly Cause[] = ["reset", "hung", "server error", "killed before"];
export const ALL = [...SAID, ...UNSAID];

export function replying(
  kind: DeliveryClass,
  outbox: DurabilityOptions["outbox"] = {},
  delivery: object = {},
): Lab {
  return lab({
    class: kind,
    ...(kind === "blind" ? {} : { capabilities: { delivery: { class: kind, ...delivery } } }),
    durability: { outbox: { inlineMaxMs: 3_600_000, ...outbox } },
    setup: (bot, l) =>
      bot.otherwise(async (ctx) => {
        l().notes.push((await ctx.reply("hello")).status);
      }),
  });
}

/** Makes the first `times` attempts ambiguous. */
export function trouble(l: Lab, cause: Cause, times = 1): void {
  const fault = FAULTS[cause];
  if (fault !== undefined) {
    l.platform.failNext(...Array.from({ length: times }, () => fault));
    return;
  }
  let left = times;
  l.t.runtime.onProbe = ({ label, side }) => {
    const here = label === "channel.send" && side === cause.slice("killed ".length);
    if (here) left -= 1;
    return here && left >= 0;
  };
}

/** What happened: calls and distinct markers at the platform, copies that the user sees, the row, the words. */
export async function outcome(l: Lab) {
  await l.ann.say("hi");
  await l.t.advance("1h");
  const row = only(l.sends());
  return {
    calls: l.platform.calls.length,
    markers: new Set(l.platform.calls.map((call) => call.marker)).size,
    copies: l.screen.length,
    state: row.state,
    told: l.told("durability:ambiguous").map(({ cause, action }) => `${cause}: ${action}`),
    result: l.notes.at(-1),
  };
}

export const causeOf = (cause: Cause) => (cause.startsWith("killed") ? "crash" : "no_answer");
