/** What a user deploys: its size, and whose code is in it. @module */
import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";

/** Bundles and minifies a bot that has nothing but its channels. */
export async function bundle(
  ...channels: readonly string[]
): Promise<{ gzip: number; files: string[] }> {
  const made = channels.map((name) => `${name}()`).join(", ");
  const result = await build({
    stdin: {
      contents: `
        import { Bot, ${channels.join(", ")} } from "holdfast";
        import { serve } from "holdfast/cloudflare";
        const app = serve(new Bot({ id: "size", channels: [${made}] }));
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
