/** Each question reaches staff once, each answer its own customer once, and nobody talks to themselves. */
import { crashEverywhere, type TestBot, type TestUser, testBot } from "holdfast/testing";
import { describe, expect, test } from "vitest";
import { bot } from "./bot.ts";

// A Thursday in working hours.
const NOW = new Date("2026-01-01T10:00:00Z");
const options = { now: NOW, env: { STAFF_CHAT: "webchat/webchat/staff" } };
const THANKS = "Thank you. Somebody will answer soon.";

const staffOf = (t: TestBot, name = "sam") => t.user(name, { chat: "staff" });

/** Replies in the staff's chat to the message with this text. */
async function reply(t: TestBot, to: string, text: string, name = "sam"): Promise<void> {
  const found = t.platform().ledger.find((one) => one.chat === "staff" && one.text === to);
  if (found === undefined) throw new Error(`staff see no "${to}"`);
  await staffOf(t, name).send({ text, replyTo: found.id });
}

async function talk(t: TestBot, ann: TestUser, bob: TestUser): Promise<void> {
  await ann.say("My tea is cold");
  await bob.say("Where is my tea?");
  await reply(t, "#2 bob: Where is my tea?", "On its way");
  await reply(t, "#1 ann: My tea is cold", "We are sorry");
  await ann.say("Never mind");
}

const ANN = [THANKS, "We are sorry"];
const BOB = [THANKS, "On its way"];
const STAFF = ["#1 ann: My tea is cold", "#2 bob: Where is my tea?", "#1 ann: Never mind"];

describe("a question", () => {
  test("goes to staff, and each answer to its own customer", async () => {
    const t = testBot(bot, options);
    const [ann, bob] = [t.user("ann"), t.user("bob")];
    await talk(t, ann, bob);
    expect(ann.screen).toEqual(ANN);
    expect(bob.screen).toEqual(BOB);
    expect(staffOf(t).screen).toEqual(STAFF);
  });

  test("of two customers in the same moment opens two cases", async () => {
    const t = testBot(bot, options);
    const [ann, bob] = [t.user("ann"), t.user("bob")];
    await Promise.all([ann.post({ text: "one" }), bob.post({ text: "two" })]);
    await t.idle();
    const screen = staffOf(t).screen;
    expect(screen.map((text) => text.slice(0, 2)).sort()).toEqual(["#1", "#2"]);
    for (const text of screen) await reply(t, text, `answer to ${text.slice(3)}`);
    expect(ann.last).toBe("answer to ann: one");
    expect(bob.last).toBe("answer to bob: two");
  });

  test("can be answered by its number, as where a channel has no replies", async () => {
    const t = testBot(bot, options);
    const ann = t.user("ann");
    await ann.say("hi");
    await staffOf(t).say("#1 Hello\nAnn");
    expect(ann.last).toBe("Hello\nAnn");
    await staffOf(t).say("#9 Hello");
    expect(staffOf(t).last).toContain("Nobody got that");
  });

  test("outside of working hours is told when somebody is there, once", async () => {
    const t = testBot(bot, { ...options, now: new Date("2026-01-03T10:00:00Z") });
    const ann = t.user("ann");
    await ann.say("hi");
    await ann.say("hello?");
    expect(ann.screen).toEqual([
      "Thank you. We are here Monday to Friday, 9 to 17 UTC, and will answer then.",
    ]);
    expect(staffOf(t).screen).toEqual(["#1 ann: hi", "#1 ann: hello?"]);
  });

  test("with a picture says that there is one", async () => {
    const t = testBot(bot, options);
    const ref = t.platform().addFile(new Uint8Array([1]));
    await t.user("ann").send({ text: "look", media: [{ kind: "image", ref }] });
    expect(staffOf(t).screen).toEqual(["#1 ann: look [image]"]);
  });
});

describe("/done", () => {
  test("by staff closes the case; the next message opens another", async () => {
    const t = testBot(bot, options);
    const ann = t.user("ann");
    await ann.say("hi");
    await reply(t, "#1 ann: hi", "/done");
    expect(staffOf(t).last).toBe("#1 is closed.");
    expect(ann.last).toBe("We think that this is done. Write again whenever you like.");
    expect(t.state(ann, "open")).toBe(false);

    await reply(t, "#1 ann: hi", "One more thing");
    expect(staffOf(t).last).toContain("Nobody got that");
    await ann.say("me again");
    expect(ann.last).toBe(THANKS);
    await staffOf(t).say("/done 2");
    expect(t.state(staffOf(t), "cases")).toEqual([]);
    await staffOf(t).say("/done 2");
    expect(staffOf(t).last).toContain("Which case?");
  });

  test("by the customer tells staff, once", async () => {
    const t = testBot(bot, options);
    const ann = t.user("ann");
    await ann.say("hi");
    await ann.say("/done");
    await ann.say("/done");
    expect(staffOf(t).screen).toEqual(["#1 ann: hi", "#1 was closed by ann."]);
    expect(ann.screen.slice(1)).toEqual(Array(2).fill("Done. Write again whenever you like."));
  });
});

describe("no loops", () => {
  test("staff among themselves, groups and other bots are not handed on", async () => {
    const t = testBot(bot, options);
    await staffOf(t).say("Lunch?");
    await t.user("ann", { chat: "some-group" }).say("hi all");
    await t.deliver("webchat", {
      id: "r1",
      kind: "message",
      chat: { id: "robot", kind: "direct" },
      sender: { id: "robot", isBot: true },
      at: t.now,
      text: "hi",
    });
    await t.idle();
    expect(t.platform().ledger).toEqual([]);
  });

  test("an answer that cannot be delivered is told to staff", async () => {
    const t = testBot(bot, options);
    await t.user("ann").say("hi");
    t.platform().fault = ({ chat }) =>
      chat === "ann" ? { type: "refuse", kind: "recipient_unreachable" } : undefined;
    await reply(t, "#1 ann: hi", "Hello");
    expect(staffOf(t).last).toBe(
      "A message to webchat/webchat/ann did not arrive: refused: recipient_unreachable",
    );
    expect(t.user("ann").screen).toEqual([THANKS]);
  });

  test("a staff chat that cannot be reached is not told of it there, and the question is not lost", async () => {
    const t = testBot(bot, options);
    t.platform().fault = ({ chat }) =>
      chat === "staff" ? { type: "refuse", kind: "permission" } : undefined;
    await t.user("ann").say("hi");
    await t.advance("1h");
    const { rows } = await t.client.durability.outbox.list({ state: "dead" });
    // The question alone: no word of it was sent after it.
    expect(rows.map(({ address }) => address)).toEqual(["webchat/webchat/staff"]);
    t.platform().fault = () => undefined;
    await t.client.durability.retrySend(rows[0]?.ref ?? "");
    await t.idle();
    expect(staffOf(t).screen).toEqual(["#1 ann: hi"]);
    await staffOf(t).say("#1 Hello");
    expect(t.user("ann").last).toBe("Hello");
  });
});

test("killed anywhere, every question and every answer arrives once", async () => {
  const { points } = await crashEverywhere(
    {
      bot: () => bot,
      options,
      run: (t) => talk(t, t.user("ann"), t.user("bob")),
    },
    (t) => {
      expect(t.user("ann").screen).toEqual(ANN);
      expect(t.user("bob").screen).toEqual(BOB);
      expect(staffOf(t).screen).toEqual(STAFF);
      const cases = t.state(staffOf(t), "cases") as { chat: string }[];
      expect(cases.map(({ chat }) => chat)).toEqual(["webchat/webchat/bob", "webchat/webchat/ann"]);
    },
  );
  expect(points.length).toBeGreaterThan(50);
}, 60_000);
