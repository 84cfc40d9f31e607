/** What the demo calls lost, doubled and announced: its verdict is worth what these are worth. */
import { describe, expect, test } from "vitest";
import { DemoLedger } from "./demoLedger.ts";

/** A ledger in which one user has written two messages that the runtime took. */
function setUp() {
  const clock = { now: 1_000_000 };
  const ledger = new DemoLedger(() => clock.now);
  for (const number of [1, 2]) {
    ledger.sent(`10${number}`, `7-${number}`, number);
    ledger.admitted(`10${number}`);
  }
  const reply = (number: number, count = number) =>
    ledger.accepted("5", `You said: 7-${number}, message ${count} of this chat`);
  return { clock, ledger, reply };
}

describe("the demo's ledger", () => {
  test("is content when each message was answered once", () => {
    const { ledger, reply } = setUp();
    reply(1);
    reply(2);
    ledger.finish();
    expect(ledger.totals()).toEqual({
      sent: 2,
      admitted: 2,
      replied: 2,
      waiting: 0,
      lost: 0,
      doubled: 0,
      announced: 0,
      held: 0,
      repeated: 0,
    });
    expect(ledger.differences()).toEqual([]);
  });

  test("counts a missing reply as lost when it is late, and when all is over", () => {
    const { clock, ledger, reply } = setUp();
    reply(1);
    expect(ledger.totals()).toMatchObject({ waiting: 1, lost: 0 });
    clock.now += 15_000;
    expect(ledger.totals()).toMatchObject({ waiting: 1, lost: 1 });
    clock.now -= 15_000;
    ledger.finish();
    expect(ledger.totals()).toMatchObject({ waiting: 1, lost: 1 });
    expect(ledger.differences()).toEqual(["update 102: admitted, no reply, not announced"]);
  });

  test("counts a reply that was announced and never came as held back, not as lost", () => {
    const { ledger, reply } = setUp();
    reply(1);
    ledger.announced("102:0");
    ledger.finish();
    expect(ledger.totals()).toMatchObject({ waiting: 0, lost: 0, announced: 1, held: 1 });
    expect(ledger.differences()).toEqual([]);
  });

  test("counts a second reply as doubled unless it was announced", () => {
    const { ledger, reply } = setUp();
    reply(1);
    reply(2);
    reply(2);
    expect(ledger.totals()).toMatchObject({ replied: 2, doubled: 1, repeated: 0 });
    expect(ledger.differences()).toEqual(["update 102: replied 2 times, not announced"]);
    ledger.announced("102:0");
    expect(ledger.totals()).toMatchObject({ replied: 2, doubled: 0, repeated: 1, held: 0 });
    expect(ledger.differences()).toEqual([]);
  });

  test("sees a wrong count, a wrong order and a reply to nobody", () => {
    const { ledger, reply } = setUp();
    reply(2, 1);
    reply(1);
    ledger.accepted("5", "You said: 7-9, message 9 of this chat");
    ledger.announced("999:0");
    expect(ledger.differences()).toEqual([
      "7-2: the bot's state counted 1, not 2",
      "7-1: replied after message 2 of its chat",
      "chat 5 was told what answers no message: You said: 7-9, message 9 of this chat",
      "999:0 was announced, and nobody asked for it",
    ]);
  });

  test("names a message that was never taken", () => {
    const { ledger, reply } = setUp();
    reply(1);
    reply(2);
    ledger.sent("103", "7-3", 3);
    expect(ledger.differences()).toEqual(["update 103: never taken by the runtime"]);
  });
});
