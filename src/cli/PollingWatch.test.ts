import { expect, test } from "vitest";
import type { Ask } from "./localRoutes.ts";
import { isAboutPolling, PollingWatch } from "./PollingWatch.ts";

const account = { name: "@shop_bot", url: "https://t.me/shop_bot" };

/** A note of the bots that were polled, in memory. */
function note(...ids: string[]) {
  const kept = {
    ids,
    read: () => kept.ids,
    write: (next: readonly string[]) => (kept.ids = [...next]),
  };
  return kept;
}

/** A Worker whose one connection stands like this. */
function watching(status: object, ready = true, polled = note()) {
  const asked: string[] = [];
  const one = { connection: "telegram", channel: "telegram", ready, status };
  const world = { bot: "shop", refuse: (_path: string) => false, polled, asked, one };
  const ask: Ask = async (method, path) => {
    asked.push(`${method} ${path}`);
    if (world.refuse(path)) return undefined;
    return { bot: world.bot, connections: [one] };
  };
  return Object.assign(world, { watch: new PollingWatch(ask, polled) });
}

const LOOK = "GET polling";
const START = "POST polling/telegram/start";
const STOP = "POST polling/telegram/stop";

test("starts what has its secrets, and nothing else", async () => {
  const off = watching({ on: false });
  expect(await off.watch.look()).toEqual([]);
  expect(off.asked).toEqual([LOOK, START]);
  const unready = watching({ on: false }, false);
  await unready.watch.look();
  expect(unready.asked).toEqual([LOOK]);
});

test("polls anew at the start and after a change of variables, so that nobody waits for an old token", async () => {
  const { watch, one, asked } = watching({ on: true, error: { message: "the token is unknown" } });
  expect(await watch.look()).toEqual([]);
  expect(asked.splice(0)).toEqual([LOOK, STOP, START]);
  one.status = { on: true, error: { message: "the token is still unknown" } };
  expect(await watch.look()).toHaveLength(1);
  expect(asked.splice(0)).toEqual([LOOK]);
  watch.renew();
  expect(await watch.look()).toEqual([]);
  expect(asked.splice(0)).toEqual([LOOK, STOP, START]);
  // The same trouble with the new variables is news.
  expect(await watch.look()).toHaveLength(1);
  expect(await watch.look()).toEqual([]);
  expect(asked).toEqual([LOOK, LOOK]);
});

test("a look that was under way at a change of variables does not count as one after it", async () => {
  const { watch, asked, one } = watching({ on: true, account });
  const before = watch.look();
  watch.renew();
  await before;
  asked.length = 0;
  one.status = { on: true, account };
  await watch.look();
  expect(asked).toEqual([LOOK, STOP, START]);
});

test("stops what the bot was called before, ahead of polling it under its new id, once", async () => {
  const first = watching({ on: false });
  await first.watch.look();
  expect(first.polled.ids).toEqual(["shop"]);
  const renamed = watching({ on: true }, true, note("shop", "older shop"));
  renamed.bot = "pizza";
  await renamed.watch.look();
  expect(renamed.asked).toEqual([LOOK, `${STOP}/shop`, `${STOP}/older%20shop`, STOP, START]);
  expect(renamed.polled.ids).toEqual(["pizza"]);
  renamed.asked.length = 0;
  await renamed.watch.look();
  expect(renamed.asked).toEqual([LOOK]);
});

test("while the old id cannot be stopped it stays noted, and is tried again", async () => {
  const world = watching({ on: true, account }, true, note("shop"));
  world.bot = "pizza";
  world.refuse = (path) => path.endsWith("/stop/shop");
  await world.watch.look();
  expect(world.polled.ids).toEqual(["shop", "pizza"]);
  world.refuse = () => false;
  await world.watch.look();
  expect(world.polled.ids).toEqual(["pizza"]);
  expect(world.asked.filter((one) => one === `${STOP}/shop`)).toHaveLength(2);
});

test("says each change once: the bot's name and address, trouble with its cause, and its end", async () => {
  const { watch, one } = watching({ on: true, account });
  await watch.look();
  expect(await watch.look()).toEqual([
    "Telegram: polling as @shop_bot. Talk to it: https://t.me/shop_bot",
  ]);
  expect(await watch.look()).toEqual([]);
  one.status = { on: true, account, error: { message: "the token is unknown" } };
  const [trouble, ...more] = await watch.look();
  expect(trouble).toContain("no messages come in. The token is unknown.");
  expect(more).toEqual([]);
  expect(await watch.look()).toEqual([]);
  one.status = { on: true, account };
  expect(await watch.look()).toHaveLength(1);
});

test("a runtime that does not answer, or answers something else, is no news", async () => {
  const dead = new PollingWatch(() => Promise.reject(new TypeError("fetch failed")), note());
  expect(await dead.look()).toEqual([]);
  const refusing = new PollingWatch(async () => undefined, note());
  expect(await refusing.look()).toEqual([]);
});

test("the Worker's own lines about it are left out, and no others", () => {
  const log = (message: string) =>
    isAboutPolling({ type: "log", level: "error", message, fields: {} });
  expect(log("polling does not work")).toBe(true);
  expect(log("polling works again")).toBe(true);
  expect(log("a chat could not admit its events")).toBe(false);
});
