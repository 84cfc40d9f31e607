import { expect, test } from "vitest";
import { sameSecret } from "./compare.ts";

test("only the very secret is the same", () => {
  const secret = "s3cret-ü";
  expect(sameSecret(secret, secret)).toBe(true);
  const others = [
    "",
    "s",
    "s3cret-u",
    `${secret}${secret}`,
    `${secret} `,
    secret.slice(1),
    "\u0000",
  ];
  for (const given of others) expect(sameSecret(given, secret), given).toBe(false);
  expect(sameSecret("", "")).toBe(true);
  expect(sameSecret("x", "")).toBe(false);
});
