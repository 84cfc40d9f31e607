/**
 * Turns a Worker's entry file into what the plain `workerd` binary serves: one bundled module and a
 * Cap'n Proto config beside it.
 *
 * @module
 */
import { createRequire } from "node:module";
import { build } from "esbuild";

/** A Durable Object class that the Worker exports; its objects have SQLite. */
export interface DurableNamespace {
  /** The name in `env`. The class is also reachable as `exports.<className>`. */
  readonly bindingName: string;
  readonly className: string;
  /** Names the folder of its objects and seals their ids; the same on every start. */
  readonly uniqueKey: string;
}

/** What one `workerd` is told to serve. */
export interface WorkerConfig {
  /** Bundle's file name, relative to the config. */
  readonly module: string;
  /** Folder that holds the objects' databases and their alarms. */
  readonly objects: string;
  readonly port: number;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  readonly namespaces: readonly DurableNamespace[];
  readonly vars: Readonly<Record<string, string>>;
}

/** The native binary that wrangler runs, never the script of the same name that would stand between it and a signal. */
export function workerdBinary(): string {
  const fromWrangler = createRequire(createRequire(import.meta.url).resolve("wrangler"));
  const loaded: { default?: unknown } = fromWrangler("workerd");
  if (typeof loaded.default !== "string") throw new Error("the workerd package names no binary");
  return loaded.default;
}

/**
 * Bundles `entry` the way wrangler does: same conditions, same target, runtime modules left out;
 * minified as it is deployed where `production` is set.
 */
export async function bundleWorker(
  entry: string,
  outfile: string,
  production = false,
): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2024",
    supported: { using: true },
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    define: { "process.env.NODE_ENV": production ? '"production"' : '"development"' },
    // As `wrangler.toml` says for what is deployed.
    keepNames: !production,
    minify: production,
    sourcemap: production ? false : "inline",
    logLevel: "silent",
  });
}

/** Renders the config. `nodejs_compat` needs no flag: it is on from compatibility date 2026-08-04. */
export function renderConfig(config: WorkerConfig): string {
  const bindings = [
    ...config.namespaces.map(
      (n) => `(name = ${text(n.bindingName)}, durableObjectNamespace = ${text(n.className)})`,
    ),
    ...Object.entries(config.vars).map(([k, v]) => `(name = ${text(k)}, text = ${text(v)})`),
  ];
  const namespaces = config.namespaces.map(
    (n) => `(className = ${text(n.className)}, uniqueKey = ${text(n.uniqueKey)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.mjs", esModule = embed ${text(config.module)})],
      compatibilityDate = ${text(config.compatibilityDate)},
      compatibilityFlags = ${list(config.compatibilityFlags.map(text))},
      bindings = ${list(bindings)},
      durableObjectNamespaces = ${list(namespaces)},
      durableObjectStorage = (localDisk = "objects"),
    )),
    (name = "objects", disk = (path = ${text(config.objects)}, writable = true)),
    # Simulated platforms listen on the loopback interface; nothing else is reachable.
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${config.port}", http = (), service = "main")],
);
`;
}

function list(items: readonly string[]): string {
  return items.length === 0 ? "[]" : `[\n        ${items.join(",\n        ")},\n      ]`;
}

/** A Cap'n Proto text literal: UTF-8 stands as it is, quotes and control bytes are escaped. */
function text(value: string): string {
  const escaped = Array.from(value, (char) => {
    if (char === '"' || char === "\\") return `\\${char}`;
    const code = char.codePointAt(0) ?? 0;
    return code < 0x20 || code === 0x7f ? `\\x${code.toString(16).padStart(2, "0")}` : char;
  });
  return `"${escaped.join("")}"`;
}
