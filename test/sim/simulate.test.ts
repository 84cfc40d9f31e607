/** Three hundred seeds of the simulator; `npm run simulate -- --seeds 10000` runs more. */
import { expect, test } from "vitest";
import { simulate } from "./simulate.ts";

const SEEDS = 300;
const CHUNK = 50;

for (let from = 1; from <= SEEDS; from += CHUNK) {
  const to = from + CHUNK - 1;
  test(`seeds ${from} to ${to}: nothing lost, nothing doubled in silence`, {
    timeout: 60_000,
  }, async () => {
    for (let seed = from; seed <= to; seed += 1) {
      expect(await simulate(seed), `replay with: npm run simulate -- --seed ${seed}`).toEqual([]);
    }
  });
}
