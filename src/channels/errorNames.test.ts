/** What is deployed is minified: errors keep the names that logs, hooks and other actors know them by. */
import { build } from "esbuild";
import { expect, test } from "vitest";

test("errors keep their names in a minified bundle", async () => {
  const result = await build({
    entryPoints: [`${import.meta.dirname}/errors.ts`],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
  });
  const code = Buffer.from(result.outputFiles[0]?.contents ?? []).toString("base64");
  const minified: Record<string, unknown> = await import(`data:text/javascript;base64,${code}`);
  const classes = Object.entries(minified).filter(([name]) => /^[A-Z]/.test(name));
  expect(classes.map(([name]) => name)).toContain("RateLimitedError");
  for (const [name, made] of classes) {
    const make = made as new (...init: unknown[]) => Error;
    const error = name === "RetryTurn" ? new make({}) : new make("why", {});
    expect(error.name).toBe(name);
  }
});
