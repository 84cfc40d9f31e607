/** The size of what is deployed. @module */
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Result, Section } from "../lib/section.ts";

/** Bytes of gzip that a bot with one channel may have. */
const LIMIT_KB = 120;

async function gzipKb(channels: readonly string[]): Promise<number> {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { Bot, ${channels.join(", ")} } from "holdfast";
        import { serve } from "holdfast/cloudflare";
        const channels = [${channels.map((name) => `${name}()`).join(", ")}];
        const app = serve(new Bot({ id: "size", channels }));
        export default app.handler;
        export class ChatActor extends app.ChatActor {}
        export class Connection extends app.Connection {}
        export class Registry extends app.Registry {}
      `,
      resolveDir: process.cwd(),
      loader: "ts",
    },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:*", "node:*"],
  });
  return gzipSync(outputFiles[0]?.contents ?? new Uint8Array()).length / 1_000;
}

/** The section. */
export const bundle: Section = {
  name: "bundle",
  async run(bench): Promise<Result> {
    bench.say("bundle");
    const sizes = {
      telegram: await gzipKb(["telegram"]),
      both: await gzipKb(["telegram", "webchat"]),
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
