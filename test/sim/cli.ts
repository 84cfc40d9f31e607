/** `npm run simulate -- --seeds 10000 [--from 1] [--seed 42]`: runs seeds and prints what fails. */
import { parseArgs } from "node:util";
import { planOf, simulate } from "./simulate.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "300" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(
    "npm run simulate -- [--seeds N] [--from N] [--seed N]\n\nRuns N seeds from --from on, or one seed with its plan.",
  );
  process.exit(0);
}
const from = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
if (values.seed !== undefined) console.log(JSON.stringify(planOf(from), null, 1));
const started = performance.now();
let bad = 0;
let shown = started;
for (let seed = from; seed < from + count; seed += 1) {
  const violations = await simulate(seed);
  if (violations.length > 0) {
    bad += 1;
    console.log(`seed ${seed}:\n${violations.map((text) => `  ${text}`).join("\n")}`);
  }
  if (performance.now() - shown > 5_000) {
    shown = performance.now();
    console.log(`… ${seed - from + 1} of ${count}`);
  }
}
const seconds = (performance.now() - started) / 1_000;
console.log(`${count} seeds in ${seconds.toFixed(1)} s, ${bad} with violations`);
if (bad > 0) {
  console.log("replay one with: npm run simulate -- --seed N");
  process.exitCode = 1;
}
