/** The documentation says what the code does: examples compile and run, lists are complete, links lead somewhere. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { STATES_PAGE, statesPage } from "../../scripts/states.ts";
import { settingsOf } from "../turns/options.ts";
import { type Block, blocksOf, deadLinksOf, pagesOf } from "./markdown.ts";

const root = resolve(import.meta.dirname, "../..");
const pages = pagesOf(root);
/** Examples for people who write bots; a README inside `src/` or `test/` may abbreviate. */
const blocks = pages
  .filter(({ name }) => name.startsWith("docs/") || !name.includes("/"))
  .flatMap(blocksOf)
  .filter((block) => block.language === "ts");

function page(name: string): string {
  return readFileSync(join(root, name), "utf8");
}

/** Sources, without tests. */
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && !name.startsWith("cli"))
  .map((name) => page(join("src", name)));

describe("examples", () => {
  // Inside the project, so that `holdfast` is the package itself.
  mkdirSync(join(root, ".holdfast"), { recursive: true });
  const folder = mkdtempSync(join(root, ".holdfast", "docs-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const bot = blocks.find((block) => block.page === "README.md")?.code ?? "";
  // Where the pages say that the files go: examples in the project's root, the bot in its `src`.
  mkdirSync(join(folder, "src"));
  const botFile = join(folder, "src", "bot.ts");

  test("of the README are the bot that a clone starts with", () => {
    expect(page("src/bot.ts").replace(/^\/\*\*.*\*\/\n/, "")).toBe(bot);
  });

  test("compile", { timeout: 60_000 }, () => {
    expect(blocks.length).toBeGreaterThan(15);
    // A page about what lies beside the bot imports it from there.
    for (const file of [botFile, join(folder, "bot.ts")]) writeFileSync(file, bot);
    for (const block of blocks) writeFileSync(join(folder, fileOf(block)), withSurroundings(block));
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        extends: "../../tsconfig.json",
        compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
        include: ["*.ts", "src/*.ts"],
      }),
    );
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { stdout, status } = spawnSync(
      process.execPath,
      [tsc, "-p", folder, "--pretty", "false"],
      {
        encoding: "utf8",
      },
    );
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  test.each(
    blocks
      .filter((block) => block.flags.includes("run"))
      .map((block) => [where(block), block] as const),
  )("run (%s)", { timeout: 60_000 }, (_name, block) => {
    writeFileSync(botFile, bot);
    expect(run(block.code)).toMatchObject({ status: 0 });
  });

  test("are red when the bot is wrong", { timeout: 60_000 }, () => {
    const [first] = blocks.filter((block) => block.flags.includes("run"));
    writeFileSync(botFile, bot.replace("One ", "Two "));
    const { status, stdout } = run(first?.code ?? "");
    expect(status).toBe(1);
    expect(stdout).toContain("Two large pizza");
  });

  test("of the README are one screen, with a bot of twelve lines", () => {
    expect(bot.trimEnd().split("\n").length).toBeLessThanOrEqual(12);
    expect(page("README.md").split("\n").length).toBeLessThanOrEqual(90);
  });

  function run(code: string) {
    const file = join(folder, "example.test.ts");
    writeFileSync(file, code);
    const { NODE_TEST_CONTEXT: _nested, ...env } = process.env;
    const { status, stdout } = spawnSync(
      process.execPath,
      ["--test", "--test-reporter=spec", file],
      {
        encoding: "utf8",
        env,
      },
    );
    return { status, stdout };
  }
});

describe("the pages", () => {
  test("have no dead links", () => {
    expect(pages.length).toBeGreaterThan(8);
    const dead = pages.flatMap((one) =>
      deadLinksOf(one, root).map((link) => `${one.name}: ${link}`),
    );
    expect(dead).toEqual([]);
  });

  test("name npm scripts that exist", () => {
    const { scripts } = JSON.parse(page("package.json")) as { scripts: Record<string, string> };
    const named = pages.flatMap(({ text }) =>
      [...text.matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] ?? ""),
    );
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  test("about states are what the tables say (npm run docs)", () => {
    expect(readFileSync(STATES_PAGE, "utf8")).toBe(statesPage());
  });

  test("about errors have a paragraph for each code, and no other", () => {
    const codes = new Set(
      sources.flatMap((text) =>
        [...text.matchAll(/\{\s*(?:kind: "\w+",\s*)?code: "(\w+)"/g)].map(
          (match) => match[1] ?? "",
        ),
      ),
    );
    const described = [...page("docs/errors.md").matchAll(/^### `(\w+)`\n\n?[A-Z`]/gm)].map(
      (match) => match[1],
    );
    expect(codes.size).toBeGreaterThan(10);
    expect([...described].sort()).toEqual([...codes].sort());
  });

  test("about errors explain each kind, and no other", () => {
    const union = /export type ErrorKind =([^;]*);/.exec(page("src/channels/errors.ts"))?.[1] ?? "";
    const kinds = [...union.matchAll(/"(\w+)"/g)].map((match) => match[1]);
    const described = [...page("docs/errors.md").matchAll(/^\| `(\w+)` +\|/gm)].map(
      (match) => match[1],
    );
    expect(kinds.length).toBeGreaterThan(10);
    expect([...described].sort()).toEqual([...kinds].sort());
  });

  test("about configuration name each option, with its default", () => {
    const rows = new Map(
      [...page("docs/configuration.md").matchAll(/^\| `([\w.]+)` +\| (.*?) +\| .*$/gm)].map(
        (match) => [match[1], match[2] ?? ""],
      ),
    );
    const options = page("src/turns/options.ts");
    const names = [
      ...membersOf(options, "InboxOptions").map((name) => `inbox.${name}`),
      ...membersOf(options, "OutboxOptions").map((name) => `outbox.${name}`),
      ...membersOf(options, "DurabilityOptions").filter(
        (name) => name !== "inbox" && name !== "outbox",
      ),
    ];
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !rows.has(name))).toEqual([]);

    const { inbox, outbox, failOpen } = settingsOf(undefined);
    const wrong: string[] = [];
    for (const [box, settings] of Object.entries({ inbox, outbox, "": { failOpen } })) {
      for (const [name, value] of Object.entries(settings)) {
        const path = box === "" ? name : `${box}.${name}`;
        const missing = shown(value).filter((text) => !rows.get(path)?.includes(text));
        if (missing.length > 0)
          wrong.push(`${path} is ${missing.join(", ")}, not ${rows.get(path)}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(rows.get("retention")).toBe('`"7d"`');
  });

  test("about configuration name each variable of the environment", () => {
    const names = new Set(
      sources.flatMap((text) =>
        [...text.matchAll(/\b(?:HOLDFAST|TELEGRAM)_[A-Z_]+\b/g)].map(([name]) => name),
      ),
    );
    const text = page("docs/configuration.md");
    expect([...names].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });

  test("about configuration paste the project's own wrangler.toml", () => {
    const [toml] = blocksOf({ name: "", text: page("docs/configuration.md") }).filter(
      (one) => one.language === "toml",
    );
    const declared = (text: string) =>
      text.match(/^(?:(?:class_name|new_sqlite_classes|crons) = .*)$/gm)?.sort();
    expect(declared(toml?.code ?? "")).toEqual(declared(page("wrangler.toml")));
  });
});

function where(block: Block): string {
  return `${block.page}:${block.line}`;
}

function fileOf(block: Block): string {
  return `${block.page.replaceAll(/\W/g, "-")}-line-${block.line}.ts`;
}

/** Names that an example may use without importing them, by module. */
const EXPORTS = Object.entries({
  holdfast: "src/index.ts",
  "holdfast/cloudflare": "src/cloudflare.ts",
  "holdfast/testing": "src/testing/index.ts",
}).map(([module, file]) => {
  const text = page(file);
  const listed = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap((match) =>
    (match[1] ?? "").split(",").map((name) => name.replace(/\btype\b/, "").trim()),
  );
  const declared = [...text.matchAll(/export (?:function|class|interface|const) (\w+)/g)].map(
    (match) => match[1] ?? "",
  );
  return { module, names: [...listed, ...declared].filter((name) => name !== "") };
});

/** A fragment with the imports and the surroundings that it takes for granted. */
function withSurroundings({ code }: Block): string {
  if (/^import /m.test(code)) return code;
  const used = (name: string) => new RegExp(`(?<![.\\w])${name}\\b`).test(code);
  const imports = EXPORTS.map(({ module, names }) => {
    const needed = names.filter(
      (name) => used(name) || ["Bot", "Context", "Client"].includes(name),
    );
    return needed.length === 0
      ? ""
      : `import { ${needed.map(typed).join(", ")} } from "${module}";\n`;
  });
  const given = [
    ["bot", "Bot"],
    ["ctx", "Context<Cloudflare.Env>"],
    ["client", "Client"],
  ].filter(([name]) => !new RegExp(`const ${name} =`).test(code));
  const declared = given.map(([name, type]) => `declare const ${name}: ${type};\n`);
  return `${imports.join("")}${declared.join("")}export {};\n${code}`;
}

/** Types have to be imported as such. */
function typed(name: string): string {
  return ["Context", "Client"].includes(name) ? `type ${name}` : name;
}

/** Names of an interface's members. */
function membersOf(text: string, name: string): string[] {
  const body =
    new RegExp(`export interface ${name} \\{\\n([\\s\\S]*?)\\n\\}`).exec(text)?.[1] ?? "";
  return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map((match) => match[1] ?? "");
}

/** A default as the page writes it. */
function shown(value: unknown): string[] {
  if (typeof value === "number") return [value.toLocaleString("en-US")];
  if (typeof value === "string") return [`"${value}"`];
  if (typeof value === "boolean") return [String(value)];
  if (typeof value === "function") return shown((value as (channel: string) => unknown)("any"));
  return Object.values(value as object).flatMap(shown);
}
