/** Reading the project's own pages, for the checks that keep them true. @module */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** A page. */
export interface Page {
  /** From the project's root. */
  name: string;
  text: string;
}

/** A fenced block of code. */
export interface Block {
  page: string;
  /** Line of its first line of code, from 1. */
  line: number;
  language: string;
  /** What follows the language. */
  flags: readonly string[];
  code: string;
}

/** README, CONTRIBUTING, `docs/` and the README of each folder under `src/` and `test/`. */
export function pagesOf(root: string): Page[] {
  const docs = readdirSync(join(root, "docs")).map((name) => `docs/${name}`);
  const folders = ["src", "test"].flatMap((top) =>
    readdirSync(join(root, top), { recursive: true, encoding: "utf8" }).map(
      (name) => `${top}/${name}`,
    ),
  );
  return [
    "README.md",
    "CONTRIBUTING.md",
    ...docs,
    ...folders.filter((name) => /(?:^|\/)README\.md$/.test(name)),
  ]
    .filter((name) => name.endsWith(".md") && existsSync(join(root, name)))
    .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));
}

/** The fenced blocks of a page. */
export function blocksOf({ name, text }: Page): Block[] {
  return [...text.matchAll(/^```([a-z]+)([^\n]*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    page: name,
    line: text.slice(0, match.index).split("\n").length + 1,
    language: match[1] ?? "",
    flags: (match[2] ?? "").trim().split(/\s+/),
    code: match[3] ?? "",
  }));
}

/** The anchors of a page, as its headings make them. */
export function anchorsOf({ text }: Page): Set<string> {
  const headings = [...withoutBlocks(text).matchAll(/^#+ (.*)$/gm)].map((match) => match[1] ?? "");
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replace(/\s/g, "-"),
    ),
  );
}

/** Relative links of a page that lead nowhere. */
export function deadLinksOf(page: Page, root: string): string[] {
  const links = [...withoutBlocks(page.text).matchAll(/\]\(([^)\s]+)\)/g)].map(
    (match) => match[1] ?? "",
  );
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? join(root, page.name) : resolve(root, dirname(page.name), path);
    if (!existsSync(target)) return true;
    if (anchor === undefined || anchor === "") return false;
    const name = relative(root, target);
    return !anchorsOf({ name, text: readFileSync(target, "utf8") }).has(anchor);
  });
}

function withoutBlocks(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "");
}
