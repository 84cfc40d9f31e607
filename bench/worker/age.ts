/** Old records: what a long time leaves behind in a chat, written past the runtime. @module */
import { GROWN_INDEXES } from "../../src/journal/schema.ts";
import { peek } from "../../test/workerd/meter.ts";

const DAY_US = 86_400_000_000;

/** Fills a chat with finished turns and their replies, spread over the last day, so that no purge is due. */
export function age(sql: SqlStorage, count: number): void {
  // As a chat that grew has them.
  for (const statement of GROWN_INDEXES) peek(sql, statement);
  const first = Date.now() * 1_000 - DAY_US;
  const step = Math.floor((DAY_US * 0.9) / count);
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
  const [seq, at] = [`${first} + i * ${step}`, `(${first} + i * ${step}) / 1000`];
  peek(
    sql,
    `${numbers} INSERT INTO inbox (seq, id, kind, state, runs, stalled, progress, flags, received_at,
       finished_at, payload, owed, open)
     SELECT ${seq}, 'old-' || i, 'message', 'done', 1, 0, 0, 0, ${at}, ${at},
       '{"id":"old","kind":"message","text":"an old message of about a hundred characters, as people write them"}',
       0, 0 FROM n`,
  );
  peek(
    sql,
    `${numbers} INSERT INTO outbox (turn, pos, slot, part, state, attempts, maybes, created_at, finished_at,
       content, fingerprint, request, marker, generation, receipt, origin, owed)
     SELECT ${seq}, 0, '0', 0, 'sent', 0, 0, ${at}, ${at}, '{"text":"an old reply"}', 'f',
       '{"method":"sendMessage","body":{"chat_id":1,"text":"an old reply"}}', 'm' || i, 0,
       '{"id":"1","kind":"text","at":1}', 'bot', 0 FROM n`,
  );
}
