import { expect, test } from "vitest";
import { type Ask, isAboutPolling, PollingWatch } from "./PollingWatch.ts";

const account = { name: "@shop_bot", url: "https://t.me/shop_bot" };

/** A Worker whose one connection stands like this. */
function watching(status: object, ready = true) {
  const asked: string[] = [];
  const one = { connection: "telegram", channel: "telegram", ready, status };
  const ask: Ask = async (method, path) => {
    asked.push(`${method} ${path}`);
    return { connections: [one] };
  };
  return { watch: new PollingWatch(ask), asked, one };
}

test("starts what has its secrets, once it is known, and nothing else", async () => {
  const off = watching({ on: false });
  expect(await off.watch.look()).toEqual([]);
  expect(off.asked).toEqual(["GET polling", "POST polling/telegram/start"]);
  const unready = watching({ on: false }, false);
  await unready.watch.look();
  expect(unready.asked).toEqual(["GET polling"]);
  const on = watching({ on: true, account });
  await on.watch.look();
  expect(on.asked).toEqual(["GET polling"]);
});

test("says each change once: the bot's name and address, trouble with its cause, and its end", async () => {
  const { watch, one } = watching({ on: true, account });
  expect(await watch.look()).toEqual([
    "Telegram: polling as @shop_bot. Talk to it: https://t.me/shop_bot",
  ]);
  expect(await watch.look()).toEqual([]);
  one.status = { on: true, account, error: { message: "the token is unknown" } };
  const [trouble, ...more] = await watch.look();
  expect(trouble).toContain("no messages come in. the token is unknown.");
  expect(more).toEqual([]);
  expect(await watch.look()).toEqual([]);
  one.status = { on: true, account };
  expect(await watch.look()).toHaveLength(1);
});

test("a runtime that does not answer, or answers something else, is no news", async () => {
  const dead = new PollingWatch(() => Promise.reject(new TypeError("fetch failed")));
  expect(await dead.look()).toEqual([]);
  const refusing = new PollingWatch(async () => undefined);
  expect(await refusing.look()).toEqual([]);
});

test("the Worker's own lines about it are left out, and no others", () => {
  const log = (message: string) =>
    isAboutPolling({ type: "log", level: "error", message, fields: {} });
  expect(log("polling does not work")).toBe(true);
  expect(log("polling works again")).toBe(true);
  expect(log("a chat could not admit its events")).toBe(false);
});
