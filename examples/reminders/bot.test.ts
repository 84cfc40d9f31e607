/** Appointments are reminded of once, at their latest time, and not after they were cancelled. */
import { crashEverywhere, type TestBot, type TestUser, testBot } from "holdfast/testing";
import { describe, expect, test } from "vitest";
import { bot } from "./bot.ts";

// A Thursday, 07:00.
const NOW = new Date("2026-01-01T07:00:00Z");
const REMINDER = "Reminder: you have an appointment at";

async function book(user: TestUser, day: string, time: string): Promise<void> {
  await user.say("/book");
  await user.say(day);
  await user.say(time);
  await user.press("Yes");
}

async function move(user: TestUser, day: string, time: string): Promise<void> {
  await user.say("/list");
  await user.press("Move");
  await user.say(day);
  await user.say(time);
  await user.press("Yes");
}

/** What reminders a user got, and when. */
function reminders(t: TestBot, user: TestUser): string[] {
  return t
    .platform()
    .ledger.filter(({ chat, text }) => chat === user.name && text.startsWith(REMINDER))
    .map(({ at, text }) => `${new Date(at).toISOString().slice(5, 16)} ${text.slice(-6, -1)}`);
}

const mornings = (user: TestUser) => user.screen.filter((text) => text.startsWith("Today: "));

describe("an appointment", () => {
  test("is asked for, booked, and reminded of a day and an hour before", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "2026-01-03", "15:00");
    expect(ann.screen).toEqual([
      "Which day?",
      "At what time?",
      "2026-01-03 15:00 UTC: is that right?",
      "Booked: 2026-01-03 15:00. /list shows all.",
    ]);
    await t.advance("4d");
    expect(reminders(t, ann)).toEqual(["01-02T15:00 15:00", "01-03T14:00 15:00"]);
  });

  test("needs a day and a time to come", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await ann.say("/book");
    await ann.say("2026-02-30");
    expect(ann.last).toContain("Please say today");
    await ann.say("2025-12-31");
    expect(ann.last).toContain("Please say today");
    await ann.say("today");
    await ann.say("6:59");
    expect(ann.last).toContain("a time to come");
    await ann.say("7:30");
    await ann.press("No");
    expect(ann.last).toBe("Not booked. Say /book to begin again.");
    expect(t.state(ann, "appointments")).toBeUndefined();
  });

  test("that nobody completes is left with a word, and no run fails", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await ann.say("/book");
    await t.advance("1h");
    expect(ann.last).toBe("Let us leave it at that. Nothing is changed.");
    await ann.say("/book");
    for (const word of ["a", "b", "c", "d"]) await ann.say(word);
    expect(ann.last).toBe("Let us leave it at that. Nothing is changed.");
    expect(t.announced).toEqual([]);
  });

  test("that is moved is reminded of at its new time only", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "2026-01-03", "15:00");
    await move(ann, "2026-01-05", "09:00");
    expect(ann.last).toBe("Moved to 2026-01-05 09:00.");
    await t.advance("7d");
    expect(reminders(t, ann)).toEqual(["01-04T09:00 09:00", "01-05T08:00 09:00"]);
  });

  test("that is moved after its first reminder gets both again", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "2026-01-02", "15:00");
    await t.advance("9h");
    await move(ann, "2026-01-05", "09:00");
    await t.advance("7d");
    expect(reminders(t, ann)).toEqual([
      "01-01T15:00 15:00",
      "01-04T09:00 09:00",
      "01-05T08:00 09:00",
    ]);
  });

  test("that is moved near has no reminder for what is past", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "2026-01-05", "15:00");
    await move(ann, "today", "12:00");
    await t.advance("7d");
    expect(reminders(t, ann)).toEqual(["01-01T11:00 12:00"]);
  });

  test("that is cancelled is not reminded of, also while somebody moves it", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "2026-01-03", "15:00");
    await ann.say("/list");
    await ann.press("Move");
    await ann.say("tomorrow");
    await ann.press("Cancel");
    expect(ann.last).toBe("Cancelled: 2026-01-03 15:00.");
    await ann.say("10:00");
    await ann.press("Yes");
    expect(ann.last).toBe("That appointment was cancelled meanwhile.");
    await ann.press("Cancel");
    expect(ann.last).toBe("That appointment is not there any more.");
    await t.advance("7d");
    expect(reminders(t, ann)).toEqual([]);
  });
});

describe("the morning", () => {
  test("tells each chat its own day, once, however often the job runs", async () => {
    const t = testBot(bot, { now: NOW });
    const [ann, bob] = [t.user("ann"), t.user("bob")];
    await book(ann, "tomorrow", "15:00");
    await book(ann, "tomorrow", "10:00");
    await book(bob, "2026-01-03", "11:00");
    await t.advance("25h");
    expect(mornings(ann)).toEqual(["Today: 10:00, 15:00."]);
    expect(mornings(bob)).toEqual([]);

    await t.tick();
    await t.tick();
    // An operator who replays the run has it make all its events again.
    const job = t.client.chat("~cron/~cron/morning");
    const { rows } = await job.inbox.list();
    expect(rows).toHaveLength(2);
    for (const { id } of rows) await job.inbox.replay(id);
    await t.idle();
    expect(mornings(ann)).toEqual(["Today: 10:00, 15:00."]);

    await t.advance("1d");
    expect(mornings(ann)).toHaveLength(1);
    expect(mornings(bob)).toEqual(["Today: 11:00."]);
  });

  test("forgets a chat without appointments, and tells it again once it has one", async () => {
    const t = testBot(bot, { now: NOW });
    const ann = t.user("ann");
    await book(ann, "today", "07:30");
    const listed = () => t.client.chat("webchat/webchat/directory").state.get("chats");
    expect(await listed()).toEqual(["webchat/webchat/ann"]);
    await t.advance("25h");
    expect(await listed()).toEqual([]);
    await book(ann, "tomorrow", "12:00");
    await t.advance("1d");
    expect(mornings(ann)).toEqual(["Today: 12:00."]);
  });
});

test("killed anywhere, a booking asks once, is kept once and reminds once", async () => {
  const { points } = await crashEverywhere(
    {
      bot: () => bot,
      run: (t) => book(t.user("ann"), "tomorrow", "08:30"),
      options: { now: new Date("2026-01-01T08:05:00Z") },
    },
    async (t) => {
      const ann = t.user("ann");
      expect(ann.screen).toHaveLength(4);
      expect(ann.last).toBe("Booked: 2026-01-02 08:30. /list shows all.");
      expect(t.state(ann, "appointments")).toEqual([
        { id: 1, at: Date.parse("2026-01-02T08:30:00Z") },
      ]);
      await t.advance("24h");
      // Killed in the very moment of a reminder, it says it when it is back: a minute later.
      expect(reminders(t, ann)).toEqual([
        expect.stringMatching(/^01-01T08:3[01] 08:30$/),
        expect.stringMatching(/^01-02T07:3[01] 08:30$/),
      ]);
      expect(mornings(ann)).toEqual(["Today: 08:30."]);
    },
  );
  expect(points.length).toBeGreaterThan(20);
}, 60_000);
