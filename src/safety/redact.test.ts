import { expect, test } from "vitest";
import { errorText, redact } from "./redact.ts";

const env = {
  TELEGRAM_BOT_TOKEN: "4711:AAH-secret_value",
  SHOP_API_KEY: "key with/odd=chars&more",
  DB_PASSWORD: "short",
  PUBLIC_URL: "https://example.org/shop",
  SOME_SECRET: 5,
};

test("secrets leave neither as they are nor as part of a URL; other text stays", () => {
  expect(redact("GET https://api.telegram.org/bot4711:AAH-secret_value/x", env)).toBe(
    "GET https://api.telegram.org/bot[redacted]/x",
  );
  expect(redact(`?k=${encodeURIComponent(env.SHOP_API_KEY)} ${env.SHOP_API_KEY}`, env)).toBe(
    "?k=[redacted] [redacted]",
  );
  expect(redact("short https://example.org/shop 5", env)).toBe("short https://example.org/shop 5");
});

test("an error is its name and message, without secrets, at most 500 characters", () => {
  expect(errorText(new TypeError("bad 4711:AAH-secret_value"), env)).toBe(
    "TypeError: bad [redacted]",
  );
  expect(errorText("plain", env)).toBe("plain");
  expect(errorText(undefined, env)).toBe("undefined");
  expect(errorText(new Error("x".repeat(900)), env)).toHaveLength(500);
});

test("a secret at the cut of a long error does not leave in half", () => {
  const text = errorText(new Error(`${"x".repeat(480)}${env.TELEGRAM_BOT_TOKEN}`), env);
  expect(text).not.toMatch(/4711/);
});
