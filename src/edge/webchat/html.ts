/**
 * HTML as a tagged template that escapes whatever is put into it.
 *
 * @module
 */

/** Text that is HTML already. Made by {@link html} only. */
export class Html {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  toString(): string {
    return this.#text;
  }
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes text for an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);
}

/** Builds HTML; values are escaped unless they are {@link Html} themselves, or `false` for nothing. */
export function html(parts: TemplateStringsArray, ...values: (string | Html | false)[]): Html {
  let text = parts[0] ?? "";
  for (const [index, value] of values.entries()) {
    if (value !== false) text += typeof value === "string" ? escapeHtml(value) : value.toString();
    text += parts[index + 1] ?? "";
  }
  return new Html(text);
}
