/** The size of what a user deploys: a bot with one channel must not carry the others. */
import { expect, test } from "vitest";
import { bundle } from "./bundle.ts";

const KB = 1_000;

test("a Telegram bot deploys at most 120 kB, and none of it is the web chat", async () => {
  const { gzip, files } = await bundle("telegram");
  expect(gzip).toBeGreaterThan(20 * KB);
  expect(gzip).toBeLessThanOrEqual(120 * KB);
  expect(files.filter((name) => name.includes("channels/telegram/")).length).toBeGreaterThan(5);
  expect(files.filter((name) => /webchat\/(?:WebChatRoom|routes|page)/.test(name))).toEqual([]);
});

test("a web chat bot carries no Telegram", async () => {
  const { gzip, files } = await bundle("webchat");
  // With the page that it serves, its script and its styles.
  expect(gzip).toBeLessThanOrEqual(140 * KB);
  expect(files.filter((name) => name.includes("channels/telegram/"))).toEqual([]);
});
