/** The size of what a user deploys: a bot with one channel must not carry the others. */
import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";
import { expect, test } from "vitest";

const KB = 1_000;

async function bundle(channel: string): Promise<{ gzip: number; files: string[] }> {
  const result = await build({
    stdin: {
      contents: `
        import { Bot, ${channel} } from "holdfast";
        import { serve } from "holdfast/cloudflare";
        const app = serve(new Bot({ id: "size", channels: [${channel}()] }));
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
    metafile: true,
    write: false,
    format: "esm",
    target: "es2024",
    external: ["cloudflare:*", "node:*"],
  });
  return {
    gzip: gzipSync(result.outputFiles[0]?.contents ?? new Uint8Array()).length,
    files: carried(result.metafile),
  };
}

/** Files that leave bytes in the output, not only imports that were shaken off. */
function carried(metafile: Metafile): string[] {
  return Object.values(metafile.outputs).flatMap((output) =>
    Object.entries(output.inputs)
      .filter(([, input]) => input.bytesInOutput > 0)
      .map(([name]) => name),
  );
}

test("a Telegram bot deploys at most 120 kB, and none of it is the web chat", async () => {
  const { gzip, files } = await bundle("telegram");
  expect(gzip).toBeGreaterThan(20 * KB);
  expect(gzip).toBeLessThanOrEqual(120 * KB);
  expect(files.filter((name) => name.includes("channels/telegram/")).length).toBeGreaterThan(5);
  expect(files.filter((name) => /webchat\/(?:WebChatRoom|routes|page)/.test(name))).toEqual([]);
});

test("a web chat bot carries no Telegram", async () => {
  const { gzip, files } = await bundle("webchat");
  expect(gzip).toBeLessThanOrEqual(120 * KB);
  expect(files.filter((name) => name.includes("channels/telegram/"))).toEqual([]);
});
