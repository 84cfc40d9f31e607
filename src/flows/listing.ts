/** Runs as operators see them. @module */
import type { BriefFlowRow, FlowState } from "../journal/FlowTable.ts";
import type { Journal } from "../journal/Journal.ts";
import { readCursor } from "../objects/paging.ts";
import { publicKeyOf } from "../outbox/publicKey.ts";
import type { StepRecord } from "../turns/Steps.ts";
import { type Resolution, sendsOf, waitOf } from "./records.ts";
import type { RunEntry, RunRecord, RunRow } from "./types.ts";

/** Within a millisecond: what is said or done comes before the wait for an answer. */
const RANK: Record<RunEntry["kind"], number> = {
  step: 0,
  send: 1,
  hook: 2,
  ask: 3,
  waitFor: 3,
  sleep: 3,
};

/** A page of runs. */
export interface RunListing {
  rows: RunRow[];
  cursor?: string;
}

/** Runs of a chat, newest first. @throws {ConfigError} for a cursor that is none */
export function listRuns(
  journal: Journal,
  state: FlowState | undefined,
  cursor: string | undefined,
  limit: number,
): RunListing {
  if (!journal.exists()) return { rows: [] };
  const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : readCursor(cursor).turn;
  const rows = journal.flows.list(state, before, limit);
  const last = rows.at(-1);
  return {
    rows: rows.map(rowOf),
    ...(rows.length === limit && last !== undefined ? { cursor: `${last.seq}.0` } : {}),
  };
}

/** A run with what it did. */
export function runRecord(journal: Journal, id: string): RunRecord | null {
  const row = journal.exists() ? journal.flows.get(id) : undefined;
  if (row === undefined) return null;
  const sends = sendsOf(row).flatMap(([turn, pos]): RunEntry[] => {
    const send = journal.outbox.get(turn, pos);
    return send === undefined
      ? []
      : [
          {
            kind: "send",
            name: publicKeyOf(journal, send),
            at: send.created_at,
            result: send.state,
          },
        ];
  });
  const history = [...journal.side.stepsOf(row.seq).map(entryOf), ...sends];
  return {
    ...rowOf(row),
    ...(row.input === null ? {} : { input: JSON.parse(row.input) as unknown }),
    ...(row.result === null ? {} : { result: JSON.parse(row.result) as unknown }),
    history: history.sort((a, b) => a.at - b.at || RANK[a.kind] - RANK[b.kind]),
  };
}

function rowOf(row: BriefFlowRow): RunRow {
  const wait = row.state === "active" ? waitOf(row) : undefined;
  return {
    id: row.id,
    flow: row.flow,
    version: row.version,
    state: row.state,
    ...(wait === undefined ? {} : { waitsFor: `${wait.kind} ${wait.name}`.trim() }),
    ...(row.due_at === null ? {} : { dueAt: row.due_at }),
    startedAt: row.started_at,
    ...(row.finished_at === null ? {} : { finishedAt: row.finished_at }),
    ...(row.error === null ? {} : { error: row.error }),
  };
}

function entryOf({ name, result, at }: { name: string; result: string; at: number }): RunEntry {
  const value = JSON.parse(result) as unknown;
  if (name.startsWith("~hook/")) return { kind: "hook", name: name.slice(1), at, result: value };
  if (!name.startsWith("~")) {
    const { v: result, x } = value as StepRecord;
    const outcome = x === undefined ? { result } : { error: x.message };
    return { kind: "step", name: decodeURIComponent(name), at, ...outcome };
  }
  const { k, n, key, timeout, payload, event } = value as Resolution;
  const brought = timeout === true ? "timeout" : (payload ?? event?.text ?? event?.data);
  return { kind: k, name: n, at, result: key === undefined ? brought : { key, value: brought } };
}
