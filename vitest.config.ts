import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        // Pure logic, and the engine over node:sqlite with virtual time.
        test: {
          name: "node",
          include: ["{src,examples}/**/*.test.ts", "test/{engine,sim,matrix}/**/*.test.ts"],
        },
      },
      {
        // The real storage and alarms, in workerd.
        plugins: [cloudflareTest({ wrangler: { configPath: "./test/workerd/wrangler.toml" } })],
        test: { name: "workerd", include: ["test/workerd/**/*.test.ts"] },
      },
      {
        // Real processes that are really killed; one file at a time, so that they do not starve each other.
        test: {
          name: "kill",
          include: ["test/kill/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 60_000,
        },
      },
    ],
  },
});
