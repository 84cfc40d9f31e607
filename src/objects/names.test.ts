import { describe, expect, test } from "vitest";
import { chatActorName, connectionOf, formatAddress, parseAddress, scopeOf } from "./names.ts";

const scope = { tenant: "main", environment: "production", bot: "shop" };

describe("the name of a chat's actor", () => {
  test("keeps tenants, environments, bots, connections and chats apart, whatever their names hold", () => {
    const names = [
      chatActorName(scope, "telegram", "1"),
      chatActorName({ ...scope, tenant: "a/b" }, "telegram", "1"),
      chatActorName({ ...scope, tenant: "a", environment: "b/production" }, "telegram", "1"),
      chatActorName({ ...scope, bot: "shop/telegram" }, "1", ""),
      chatActorName(scope, "telegram", "1/2"),
      chatActorName(scope, "telegram/1", "2"),
      chatActorName(scope, "telegram", "%31"),
    ];
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name.split("/")).toHaveLength(5);
  });

  test("of a very long chat key is hashed, stays apart from others, and still names its scope", () => {
    const long = chatActorName(scope, "mail: in", "ä".repeat(400));
    expect(long.length).toBeLessThanOrEqual(1_024);
    expect(long).not.toBe(chatActorName(scope, "mail: in", `${"ä".repeat(399)}b`));
    expect(scopeOf(long)).toBe("main/production/shop/mail%3A%20in");
    expect(connectionOf(long)).toBe("mail: in");
  });
});

describe("an address as text", () => {
  test("is read back as it was, whatever it holds", () => {
    for (const chat of ["42", "-100", "a/b", "ä 漢", "%2F", "a b@c.d"]) {
      for (const thread of [undefined, "7", "t/1"]) {
        const address = {
          channel: "slack",
          connection: "slack-eu",
          chat,
          ...(thread === undefined ? {} : { thread }),
        };
        expect(parseAddress(formatAddress(address))).toEqual(address);
      }
    }
    expect(formatAddress({ channel: "telegram", chat: "42" })).toBe("telegram/telegram/42");
  });

  test.each([
    "",
    "telegram",
    "telegram/telegram",
    "telegram//42",
    "a/b/c/d/e",
    "telegram/telegram/%",
  ])("%j is none", (text) => {
    expect(() => parseAddress(text)).toThrow(/not an address/);
  });
});
