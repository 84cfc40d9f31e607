/** The size of what is deployed. @module */
import { bundle as bundleOf } from "../../test/engine/bundle.ts";
import type { Result, Section } from "../lib/section.ts";

/** Bytes of gzip that a bot with one channel may have. */
const LIMIT_KB = 120;

async function gzipKb(...channels: readonly string[]): Promise<number> {
  return (await bundleOf(...channels)).gzip / 1_000;
}

/** The section. */
export const bundle: Section = {
  name: "bundle",
  async run(bench): Promise<Result> {
    bench.say("bundle");
    const sizes = {
      telegram: await gzipKb("telegram"),
      both: await gzipKb("telegram", "webchat"),
    };
    return {
      title: "Bundle",
      how: `A bot with nothing but its channels, bundled and minified, gzip. The baseline is the limit itself.`,
      lines: [
        {
          what: "bundle: core and Telegram",
          unit: "kB",
          holdfast: [sizes.telegram],
          baseline: [LIMIT_KB],
          budget: { most: 1 },
        },
        {
          what: "bundle: core, Telegram and web chat",
          unit: "kB",
          holdfast: [sizes.both],
          baseline: [300],
        },
      ],
    };
  },
};
