/**
 * Texts of queries by their columns. Built once for all chats: a text that each write builds anew is garbage in
 * every live chat.
 *
 * @module
 */

/** Columns come from the code, in few combinations; past this something is wrong, and nothing is kept. */
const MAX_TEXTS = 1_000;

const texts = new Map<string, string>();

/** `UPDATE <table> SET <columns> <where>`. */
export function updateText(table: string, names: readonly string[], where: string): string {
  return known(`${table} ${names.join()} ${where}`, () => {
    const set = names.map((name) => `${name} = ?`).join(", ");
    return `UPDATE ${table} SET ${set} ${where}`;
  });
}

/** `INSERT INTO <table> (<columns>) VALUES (…)`. */
export function insertText(table: string, names: readonly string[]): string {
  return known(`+${table} ${names.join()}`, () => {
    const marks = names.map(() => "?").join(", ");
    return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${marks})`;
  });
}

function known(key: string, make: () => string): string {
  const found = texts.get(key);
  if (found !== undefined) return found;
  const made = make();
  if (texts.size < MAX_TEXTS) texts.set(key, made);
  return made;
}
