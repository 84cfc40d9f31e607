/** The decision table of design §6, its blind column: what a user sees, how often, and who is told. */
import { describe, expect, test } from "vitest";
import { outcome, type Policy, replying, SAID, trouble } from "./doubt.ts";

describe("on a blind channel", () => {
  /** Calls, copies and state after `times` ambiguous attempts of a message that never arrived. */
  const cells: [Policy, number, number, "sent" | "unknown", string][] = [
    ["skip", 1, 1, "unknown", "held"],
    ["resend-once", 1, 2, "sent", "resent"],
    ["resend-once", 2, 2, "unknown", "resent"],
    ["resend", 1, 2, "sent", "resent"],
    ["resend", 5, 6, "sent", "resent"],
  ];

  describe.each(["answer lost", "no answer", "no id", "reset", "hung", "server error"] as const)(
    "%s",
    (cause) => {
      test.each(cells)(
        "with noAnswer %s and %i lost: %i calls, %s, told %s",
        async (noAnswer, times, calls, state, action) => {
          const l = replying("blind", { onAmbiguous: { noAnswer, afterCrash: "skip" } });
          trouble(l, cause, times);
          const arrived = SAID.includes(cause) ? times : 0;
          expect(await outcome(l)).toEqual({
            calls,
            markers: 1,
            copies: arrived + (state === "sent" ? 1 : 0),
            state,
            told: [`no_answer: ${action}`],
            result: state,
          });
        },
      );
    },
  );

  describe.each(["killed after", "killed before"] as const)("%s", (cause) => {
    test.each(cells)(
      "with afterCrash %s and %i crashes: %i attempts, %s, told %s",
      async (afterCrash, times, attempts, state, action) => {
        const l = replying("blind", { onAmbiguous: { noAnswer: "skip", afterCrash } });
        trouble(l, cause, times);
        const lost = cause === "killed before" ? times : 0;
        expect(await outcome(l)).toEqual({
          calls: attempts - lost,
          markers: attempts - lost > 0 ? 1 : 0,
          copies: attempts - lost,
          state,
          told: [`crash: ${action}`],
          result: state,
        });
      },
    );
  });

  test("by default a lost answer is resent once and a crash is not: the operator is told which", async () => {
    const lost = replying("blind");
    trouble(lost, "answer lost");
    expect(await outcome(lost)).toMatchObject({
      copies: 2,
      state: "sent",
      told: ["no_answer: resent"],
    });
    const killed = replying("blind");
    trouble(killed, "killed after");
    expect(await outcome(killed)).toMatchObject({
      copies: 1,
      state: "unknown",
      told: ["crash: held"],
    });
  });

  test("the choice may differ by channel", async () => {
    const l = replying("blind", { onAmbiguous: { mock: "skip" } });
    trouble(l, "answer lost");
    expect(await outcome(l)).toMatchObject({ copies: 1, state: "unknown" });
  });
});
