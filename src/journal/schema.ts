/**
 * The tables of a chat. Rows written are what an operator pays for, so the shape is chosen by cost:
 * an event is one table row and its unique id, a send is one row. A chat with few records is scanned; one
 * that has grown has partial indexes over its open rows and over those that somebody has to come back to.
 * Measured by `test/workerd/cost.test.ts`.
 *
 * @module
 */
import type { Host, Sql } from "../host/Host.ts";

/** Version of the schema. Changes are additive, so that code before a rollback still reads the rows. */
export const SCHEMA_VERSION = 1;

const CORE = [
  `CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS inbox (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, semantic TEXT, kind TEXT NOT NULL,
    state TEXT NOT NULL, claim TEXT, runs INTEGER NOT NULL, stalled INTEGER NOT NULL,
    progress INTEGER NOT NULL, due_at INTEGER, flags INTEGER NOT NULL, received_at INTEGER NOT NULL,
    finished_at INTEGER, error TEXT, payload TEXT NOT NULL, owed INTEGER NOT NULL, open INTEGER NOT NULL
  ) STRICT`,
  `CREATE TABLE IF NOT EXISTS outbox (
    turn INTEGER NOT NULL, pos INTEGER NOT NULL, slot TEXT NOT NULL, part INTEGER NOT NULL, key TEXT,
    state TEXT NOT NULL, claim TEXT, attempts INTEGER NOT NULL, maybes INTEGER NOT NULL,
    first_maybe_at INTEGER, due_at INTEGER, not_after INTEGER, created_at INTEGER NOT NULL,
    finished_at INTEGER, content TEXT, fingerprint TEXT, request TEXT NOT NULL, marker TEXT,
    generation INTEGER NOT NULL, receipt TEXT, error_kind TEXT, error TEXT, attempt_log TEXT,
    origin TEXT NOT NULL, owed INTEGER NOT NULL, address TEXT, extra TEXT,
    PRIMARY KEY (turn, pos)
  ) STRICT, WITHOUT ROWID`,
];

/** Parts of the schema that most chats never need; each is made by the first write that does. */
const LAZY = {
  open: [`CREATE INDEX IF NOT EXISTS inbox_open ON inbox (seq) WHERE open = 1`],
  resting: [`CREATE INDEX IF NOT EXISTS inbox_resting ON inbox (open, due_at) WHERE open > 1`],
  due: [`CREATE INDEX IF NOT EXISTS outbox_due ON outbox (due_at) WHERE due_at IS NOT NULL`],
  state: [
    `CREATE TABLE IF NOT EXISTS state (scope TEXT NOT NULL, k TEXT NOT NULL, v TEXT NOT NULL,
      PRIMARY KEY (scope, k)) STRICT, WITHOUT ROWID`,
  ],
  steps: [
    `CREATE TABLE IF NOT EXISTS steps (turn INTEGER NOT NULL, name TEXT NOT NULL, result TEXT NOT NULL,
      at INTEGER NOT NULL, PRIMARY KEY (turn, name)) STRICT, WITHOUT ROWID`,
  ],
  buttons: [
    `CREATE TABLE IF NOT EXISTS buttons (id TEXT PRIMARY KEY, turn INTEGER NOT NULL, value TEXT NOT NULL)
      STRICT, WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS buttons_turn ON buttons (turn)`,
  ],
  semantic: [
    `CREATE UNIQUE INDEX IF NOT EXISTS inbox_semantic ON inbox (semantic) WHERE semantic IS NOT NULL`,
  ],
  keys: [`CREATE UNIQUE INDEX IF NOT EXISTS outbox_key ON outbox (key) WHERE key IS NOT NULL`],
  flows: [
    `CREATE TABLE IF NOT EXISTS flows (
      id TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, flow TEXT NOT NULL, version INTEGER NOT NULL,
      owner TEXT NOT NULL, state TEXT NOT NULL, input TEXT, seed TEXT NOT NULL, started_at INTEGER NOT NULL,
      finished_at INTEGER, wait TEXT, due_at INTEGER, memory TEXT NOT NULL, result TEXT, error TEXT
    ) STRICT, WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS flows_due ON flows (due_at) WHERE due_at IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS flows_active ON flows (owner) WHERE state = 'active'`,
  ],
  trouble: [
    `CREATE INDEX IF NOT EXISTS inbox_trouble ON inbox (seq) WHERE error IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS outbox_trouble ON outbox (turn, pos)
      WHERE state IN ('dead', 'unknown')`,
  ],
  receipts: [
    `CREATE TABLE IF NOT EXISTS receipts (id TEXT PRIMARY KEY, turn INTEGER NOT NULL, pos INTEGER NOT NULL)
      STRICT, WITHOUT ROWID`,
    `CREATE INDEX IF NOT EXISTS receipts_turn ON receipts (turn)`,
  ],
} as const;

/** The optional parts of the schema. */
export type LazyPart = keyof typeof LAZY;

/** What a chat gets once it has so many rows that a scan of them would cost more than an index does. */
const GROWN = ["open", "due"] as const satisfies readonly LazyPart[];
/** So many rows of inbox and outbox may be scanned: about 60 messages with their replies. */
export const SCAN_ROWS = 128;

/** The statements that make them. */
export const GROWN_INDEXES: readonly string[] = GROWN.flatMap((part) => LAZY[part]);

/** Remembers what exists, so that the hot path asks the database nothing. */
export class Schema {
  readonly #host: Host;
  #core = false;
  /** Whether any table was there when it last looked. */
  #any = true;
  readonly #lazy = new Set<LazyPart>();
  /** Rows of inbox and outbox, counted while a scan of them is cheap; `undefined`: not known. */
  #rows: number | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Whether the tables exist; makes none, so that a probe of an unused name leaves no storage. */
  exists(): boolean {
    if (!this.#core) this.#look();
    return this.#core;
  }

  /** Makes the tables where they are missing. Call inside a transaction. Returns whether none was there. */
  ensure(): boolean {
    if (this.exists()) return false;
    const none = !this.#any;
    for (const statement of CORE) this.#host.sql.run(statement);
    this.#core = true;
    if (none) this.#rows = 0;
    return none;
  }

  /** Learns what is there, in few queries: each text of a query costs memory for as long as a chat lives. */
  #look(): void {
    this.#any = this.#hasMeta();
    if (!this.#any) return;
    const found = new Set(
      this.#host.sql.all<{ name: string }>(`SELECT name FROM sqlite_master`).map((row) => row.name),
    );
    this.#core = CORE.every((statement) => found.has(nameOf(statement)));
    for (const part of Object.keys(LAZY) as LazyPart[]) {
      if (found.has(nameOf(LAZY[part][0]))) this.#lazy.add(part);
    }
  }

  /** Asked by using it, as everything that has storage does next: a query that fails is not kept. */
  #hasMeta(): boolean {
    try {
      readMeta(this.#host.sql, "actor");
      return true;
    } catch (error) {
      if (/no such table/.test(String(error))) return false;
      throw error;
    }
  }

  /** Whether an optional part exists (without making it). */
  has(part: LazyPart): boolean {
    return this.exists() && this.#lazy.has(part);
  }

  /** Makes an optional part. Call inside the transaction of the write that needs it. */
  need(part: LazyPart): void {
    if (this.#lazy.has(part)) return;
    for (const statement of LAZY[part]) this.#host.sql.run(statement);
    this.#lazy.add(part);
  }

  /** A row was inserted: a chat that has grown gets its indexes while they are cheap to make. */
  grew(): void {
    if (GROWN.every((part) => this.#lazy.has(part))) return;
    this.#rows = (this.#rows ?? this.#count() - 1) + 1;
    if (this.#rows > SCAN_ROWS) for (const part of GROWN) this.need(part);
  }

  #count(): number {
    const [found] = this.#host.sql.all<{ rows: number }>(
      `SELECT (SELECT count(*) FROM (SELECT 1 FROM inbox LIMIT ?)) +
         (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT ?)) AS rows`,
      SCAN_ROWS + 1,
      SCAN_ROWS + 1,
    );
    return found?.rows ?? 0;
  }

  /** Forgets what it knows: after `deleteAll`, or after a transaction that made tables was rolled back. */
  reset(): void {
    this.#core = false;
    this.#lazy.clear();
    this.#rows = undefined;
  }
}

/** The table or index that a statement makes. */
function nameOf(statement: string): string {
  return /EXISTS (\w+)/.exec(statement)?.[1] ?? "";
}

/** Reads a meta value. */
export function readMeta(sql: Sql, key: string): string | undefined {
  return sql.all<{ v: string }>(`SELECT v FROM meta WHERE k = ?`, key)[0]?.v;
}

/** Writes a meta value. */
export function writeMeta(sql: Sql, key: string, value: string): void {
  sql.run(
    `INSERT INTO meta (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v`,
    key,
    value,
  );
}
