/** What the tests of a room share: a host in memory, sockets, and a room made afresh for each test. */
import { DatabaseSync } from "node:sqlite";
import { beforeEach } from "vitest";
import type { Host, SqlRow, SqlValue } from "../../host/Host.ts";
import type { ClientFrame, Entry, RoomAnswer, ServerFrame } from "./protocol.ts";
import { WebChatRoom } from "./WebChatRoom.ts";

export const NAME = "t/e/shop/webchat/s1";
export const DAY_MS = 86_400_000;

export type Call = { kind: string; name: string; method: string; payload: string };

/** One object's storage and surroundings, over which rooms come and go as incarnations do. */
export class World {
  db = new DatabaseSync(":memory:");
  now = 1_800_000_000_000;
  alarmAt: number | undefined;
  alarmWrites = 0;
  deleted = 0;
  calls: Call[] = [];
  /** What the chat's actor answers. */
  receive: (call: Call) => Promise<string> = async () => `{"ok":true,"results":["accepted"]}`;
  failNext: string | undefined;
  log: string[] = [];
  /** Everything that the sockets got. */
  wire: ServerFrame[] = [];
  sockets = 1;

  host(): Host {
    const { log } = this;
    const note = (message: string) => void log.push(message);
    return {
      sql: {
        all: <R extends SqlRow>(query: string, ...params: SqlValue[]) =>
          this.db.prepare(query).all(...params) as R[],
        run: (query, ...params) => Number(this.db.prepare(query).run(...params).changes),
      },
      clock: {
        now: () => this.now,
        setTimer: () => {
          throw new Error("a room must hold no timer");
        },
      },
      actors: {
        call: (kind, name, method, payload) => {
          const call = { kind, name, method, payload };
          this.calls.push(call);
          return this.receive(call);
        },
      },
      log: { debug: note, info: note, warn: note, error: note },
      env: {},
      transaction: (label, fn) => {
        const alarm = this.alarmAt;
        this.db.exec("SAVEPOINT t");
        try {
          const value = fn();
          if (this.failNext === label) {
            this.failNext = undefined;
            throw new Error("database or disk is full: SQLITE_FULL");
          }
          this.db.exec("RELEASE t");
          return value;
        } catch (error) {
          this.db.exec("ROLLBACK TO t; RELEASE t");
          this.alarmAt = alarm;
          throw error;
        }
      },
      setAlarm: (at) => {
        this.alarmAt = at;
        this.alarmWrites += 1;
      },
      deleteAlarm: () => {
        this.alarmAt = undefined;
      },
      deleteAll: async () => {
        this.db = new DatabaseSync(":memory:");
        this.alarmAt = undefined;
        this.deleted += 1;
      },
      random: () => 0.5,
      uuid: () => "u",
      fetch: () => Promise.reject(new Error("a room fetches nothing")),
      keepAlive: () => {},
      rethrowIfHalted: () => {},
      outlive: (work) => work,
      probe: () => {},
    };
  }

  room(name = NAME): WebChatRoom {
    return new WebChatRoom(this.host(), name, {
      send: (text) => void this.wire.push(JSON.parse(text) as ServerFrame),
      count: () => this.sockets,
    });
  }

  /** Fires the alarm as the platform does, on a fresh incarnation. */
  async fire(): Promise<void> {
    if (this.alarmAt === undefined) throw new Error("no alarm is set");
    this.now = Math.max(this.now, this.alarmAt);
    this.alarmAt = undefined;
    await this.room().alarm();
  }

  rows(): number {
    return Number(this.db.prepare("SELECT count(*) AS n FROM log").get()?.n);
  }

  tables(): number {
    return this.db.prepare("SELECT 1 AS x FROM sqlite_master").all().length;
  }
}

export let world: World;
export let room: WebChatRoom;
beforeEach(() => {
  world = new World();
  room = world.room();
});

/** A socket of a page, and what it alone was sent. */
export function socket() {
  const frames: ServerFrame[] = [];
  return {
    frames,
    greeted: false,
    send(text: string) {
      frames.push(JSON.parse(text) as ServerFrame);
    },
    greet() {
      this.greeted = true;
    },
  };
}

export async function say(cid: string, text = "hi", at = room) {
  const from = socket();
  await at.message(JSON.stringify({ t: "msg", cid, text } satisfies ClientFrame), from);
  return from.frames;
}

/** What a page gets that has everything up to `lastSeq`. */
export function replay(lastSeq = 0, at = room): { entries: Entry[]; frames: ServerFrame[] } {
  const page = socket();
  at.resume(lastSeq, page);
  const entries = page.frames.flatMap((frame) => (frame.t === "log" ? frame.entries : []));
  return { entries, frames: page.frames };
}

export function deliver(marker: string, text: string): RoomAnswer {
  return room.deliver({ marker, message: { text } });
}

export const acks = () => world.wire.filter((frame) => frame.t === "ack").map((frame) => frame.cid);
export const nacks = () => world.wire.filter((frame) => frame.t === "nack");
export const texts = (entries: Entry[]) =>
  entries.map((entry) =>
    entry.kind === "user" ? entry.text : "message" in entry ? entry.message.text : entry.kind,
  );

/** Ends the room's life and begins another over the same storage. */
export function reopen(): void {
  room = world.room();
}
