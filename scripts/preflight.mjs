// Runs before `npm start` and `npm run reset`, in plain JavaScript that any Node understands: the rest is
// TypeScript, which an old Node refuses with a message that helps nobody.
import { existsSync } from "node:fs";

const root = new URL("../", import.meta.url);
const installed = ["node/package.json", "wrangler/package.json", "hono/package.json"].every(
  (file) => existsSync(new URL(`node_modules/${file}`, root)),
);
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const fits = major > 22 || (major === 22 && minor >= 18);

if (!installed) fail("the dependencies are not installed", "npm ci");
else if (!fits) {
  fail(
    `this is Node ${process.versions.node}, and the one that the project brings along was not found`,
    "npm ci (without --ignore-scripts), then start with npm, not with node",
  );
}

function fail(cause, fix) {
  console.error(`\nerror  ${cause}\nfix    ${fix}\n`);
  process.exitCode = 1;
}
