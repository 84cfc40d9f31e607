/** `npx holdfast connect`: what it refuses before it does anything. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { connect } from "./connect.ts";
import { CommandError } from "./terminal.ts";

const root = resolve(import.meta.dirname, "../..");

async function failure(...args: string[]): Promise<CommandError> {
  const error: unknown = await connect(["telegram", ...args]).catch((caught: unknown) => caught);
  if (!(error instanceof CommandError)) throw new Error(`no CommandError, but ${String(error)}`);
  return error;
}

test("an option of the other way of connecting is refused, not ignored", async () => {
  for (const one of ["--url=https://shop.example", "--secret-name=NAME", "--put-secrets"]) {
    const { message, fix } = await failure(one);
    expect(message).toBe(`${one.split("=")[0]} is for a deployed bot`);
    expect(fix).toContain("add --deployed");
  }
  const { message } = await failure("--deployed", "--remove-webhook");
  expect(message).toBe("--remove-webhook is for a bot on this machine");
});

test("an option that does not exist is named, without advice for programmers", async () => {
  const { message, fix } = await failure("--deployd");
  expect(message).toBe("Unknown option '--deployd'");
  expect(fix).toContain("--help");
});

test("no secret is made for a Worker whose address is not known", async () => {
  const name = "A_SECRET_THAT_NOBODY_HAS_SET";
  const { message } = await failure("--deployed", "--url=", `--secret-name=${name}`);
  expect(message).toContain("address is not known");
  const file = join(root, ".holdfast/deployed.env");
  expect(existsSync(file) ? readFileSync(file, "utf8") : "").not.toContain(name);
});
