import { describe, expect, test } from "vitest";
import { ConfigError } from "../channels/errors.ts";
import { MockPlatform } from "../testing/MockPlatform.ts";
import { mockProvider } from "../testing/MockProvider.ts";
import { wallClock } from "../time/Clock.ts";
import { Bot, type BotOptions } from "./Bot.ts";
import { settingsOf } from "./options.ts";

const channel = mockProvider({ platform: new MockPlatform(wallClock, "blind") });
const make = (options: object) => () =>
  new Bot({ id: "bot", channels: [channel], ...options } as BotOptions);

describe("the defaults of design §10", () => {
  test("hold without any option, and with every option undefined", () => {
    const { onAmbiguous, ...outbox } = settingsOf(undefined).outbox;
    expect({ ...settingsOf(undefined), outbox }).toEqual({
      inbox: {
        maxAttempts: 5,
        leaseMs: 60_000,
        turnTimeoutMs: 600_000,
        backoff: { baseMs: 1_000, capMs: 60_000 },
        mediaRefs: true,
        retryHandlers: false,
        maxPending: 1_000,
        minAgeMs: 120_000,
      },
      outbox: {
        retries: 12,
        backoff: { baseMs: 1_000, capMs: 300_000 },
        inlineMaxMs: 15_000,
        leaseMs: 60_000,
        sendTimeoutMs: 30_000,
        maxPayloadBytes: 1_048_576,
        maxAgeMs: 86_400_000,
        onDeferred: "return",
        onDiverged: "send",
        order: "inline",
      },
      failOpen: false,
      retentionMs: 7 * 86_400_000,
    });
    expect(onAmbiguous("telegram")).toEqual({ afterCrash: "skip", noAnswer: "resend-once" });
    const given = settingsOf({
      inbox: { maxAttempts: undefined, backoff: undefined },
      outbox: undefined,
      retention: undefined,
    });
    expect(given.inbox).toEqual(settingsOf({}).inbox);
  });

  test("fill in what a partial option leaves out", () => {
    const { inbox, outbox, retentionMs } = settingsOf({
      inbox: { backoff: { capMs: 5_000 } },
      outbox: { onAmbiguous: { noAnswer: "resend" } },
      retention: "12h",
    });
    expect(inbox.backoff).toEqual({ baseMs: 1_000, capMs: 5_000 });
    expect(outbox.onAmbiguous("any")).toEqual({ afterCrash: "skip", noAnswer: "resend" });
    expect(retentionMs).toBe(43_200_000);
  });
});

describe("an option that is wrong", () => {
  const wrong: [string, object, unknown][] = [
    ...["maxAttempts", "turnTimeoutMs", "maxPending"].flatMap((name) =>
      [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null, true].map(
        (value): [string, object, unknown] => [
          `durability.inbox.${name}`,
          { durability: { inbox: { [name]: value } } },
          value,
        ],
      ),
    ),
    ["durability.inbox.leaseMs", { durability: { inbox: { leaseMs: 19 } } }, 19],
    ["durability.inbox.minAgeMs", { durability: { inbox: { minAgeMs: -1 } } }, -1],
    ["durability.inbox.maxAttempts", { durability: { inbox: { maxAttempts: 1_001 } } }, 1_001],
    ["durability.inbox.mediaRefs", { durability: { inbox: { mediaRefs: "yes" } } }, "yes"],
    ["durability.inbox.retryHandlers", { durability: { inbox: { retryHandlers: 1 } } }, 1],
    ["durability.inbox.backoff", { durability: { inbox: { backoff: "1s" } } }, "1s"],
    ["durability.inbox.backoff.baseMs", { durability: { inbox: { backoff: { baseMs: 0 } } } }, 0],
    [
      "durability.inbox.backoff.capMs",
      { durability: { inbox: { backoff: { capMs: "1m" } } } },
      "1m",
    ],
    ["durability.inbox", { durability: { inbox: [] } }, []],
    ...["sendTimeoutMs", "maxPayloadBytes", "maxAgeMs"].map((name): [string, object, unknown] => [
      `durability.outbox.${name}`,
      { durability: { outbox: { [name]: 0 } } },
      0,
    ]),
    ["durability.outbox.retries", { durability: { outbox: { retries: -1 } } }, -1],
    ["durability.outbox.inlineMaxMs", { durability: { outbox: { inlineMaxMs: -1 } } }, -1],
    ["durability.outbox.leaseMs", { durability: { outbox: { leaseMs: 19 } } }, 19],
    [
      "durability.outbox.maxPayloadBytes",
      { durability: { outbox: { maxPayloadBytes: 2_000_000 } } },
      2_000_000,
    ],
    ["durability.outbox.onDeferred", { durability: { outbox: { onDeferred: "wait" } } }, "wait"],
    ["durability.outbox.onDiverged", { durability: { outbox: { onDiverged: "fail" } } }, "fail"],
    ["durability.outbox.order", { durability: { outbox: { order: "fifo" } } }, "fifo"],
    [
      "durability.outbox.onAmbiguous",
      { durability: { outbox: { onAmbiguous: "retry" } } },
      "retry",
    ],
    [
      "durability.outbox.onAmbiguous.noAnswer",
      { durability: { outbox: { onAmbiguous: { noAnswer: "retry" } } } },
      "retry",
    ],
    [
      "durability.outbox.onAmbiguous.mock",
      { durability: { outbox: { onAmbiguous: { mock: "retry" } } } },
      "retry",
    ],
    ["durability.failOpen", { durability: { failOpen: "no" } }, "no"],
    ...["7", "7 days", "0d", 0, -5, "-1h"].map((value): [string, object, unknown] => [
      "durability.retention",
      { durability: { retention: value } },
      value,
    ]),
    ["durability", { durability: "on" }, "on"],
    ["id", { id: "" }, ""],
    ["id", { id: "a/b" }, "a/b"],
    ["id", { id: 5 }, 5],
    ["channels", { channels: channel }, undefined],
    ["tenant", { tenant: "" }, ""],
    ["environment", { environment: 5 }, 5],
  ];

  test.each(wrong)(
    "%s is refused by name, with its value and what is allowed (%#)",
    (name, options, value) => {
      const error = thrown(make(options));
      expect(error).toBeInstanceOf(ConfigError);
      expect(error.code).toBe("config");
      expect(error.message.startsWith(`${name} is `)).toBe(true);
      expect(error.message).toMatch(/ but must be .+/);
      if (value !== undefined && typeof value !== "object")
        expect(error.message).toContain(JSON.stringify(value) ?? String(value));
    },
  );

  test("by its name is refused with the names that exist", () => {
    for (const [options, name] of [
      [{ durability: { retentionMs: 5 } }, "durability.retentionMs"],
      [{ durability: { inbox: { retries: 5 } } }, "durability.inbox.retries"],
      [{ durability: { outbox: { retry: 5 } } }, "durability.outbox.retry"],
      [{ durability: { outbox: { backoff: { base: 5 } } } }, "durability.outbox.backoff.base"],
      [
        { durability: { outbox: { onAmbiguous: { mock: { crash: "skip" } } } } },
        "durability.outbox.onAmbiguous.mock.crash",
      ],
    ] as const) {
      const error = thrown(make(options));
      expect(error.message).toContain(`${name} is not an option; known are `);
    }
  });

  test("because it names a channel that the bot does not have is refused: the doubt would be settled otherwise", () => {
    const error = thrown(make({ durability: { outbox: { onAmbiguous: { telegrm: "skip" } } } }));
    expect(error.message).toContain("telegrm");
  });

  test("because two channels have one connection is refused with a way out", () => {
    const error = thrown(make({ channels: [channel, channel] }));
    expect(error.message).toMatch(/"mock".*connection: "…"/);
  });
});

describe("a handler that cannot work", () => {
  const bot = make({})();
  const nothing = undefined as never;

  test.each([
    ["a command with its slash", () => bot.command("/start", () => {}), /command is "\/start"/],
    ["a command with a space", () => bot.command("a b", () => {}), /command is "a b"/],
    ["a missing handler", () => bot.command("start", nothing), /must be a function/],
    ["a missing listener", () => bot.on("error", nothing), /on\("error"\) needs a function/],
    ["a missing matcher", () => bot.when(nothing, () => {}), /`when` takes/],
    ["a missing action handler", () => bot.action("buy", nothing), /action "buy"/],
  ])("(%s) is refused when it is registered", (_name, register, message) => {
    expect(register).toThrow(ConfigError);
    expect(register).toThrow(message);
  });
});

function thrown(make: () => unknown): ConfigError {
  try {
    make();
  } catch (error) {
    return error as ConfigError;
  }
  throw new Error("nothing was refused");
}
