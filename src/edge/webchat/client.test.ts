import { beforeEach, describe, expect, test } from "vitest";
import { clientScript } from "./client.ts";
import { linkScript } from "./script/link.ts";
import { queueScript } from "./script/queue.ts";
import { richScript } from "./script/rich.ts";

/** Runs a part of the page's script and hands out the function that it declares. */
function load<F>(script: string, name: string): F {
  return new Function(`"use strict";${script};return ${name};`)() as F;
}

test("the script has no syntax error, and nothing that reads HTML or code out of text", () => {
  expect(() => new Function(clientScript)).not.toThrow();
  expect(clientScript).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/);
});

type Item = { t: string; cid: string; text?: string; at?: number };
interface Queue {
  all(): Item[];
  add(item: Item): void;
  remove(cid: string): Item | undefined;
}
const makeQueue = load<(storage: unknown, name: string) => Queue>(queueScript, "makeQueue");

class Storage {
  kept = new Map<string, string>();
  getItem = (name: string) => this.kept.get(name) ?? null;
  setItem = (name: string, value: string) => void this.kept.set(name, value);
  removeItem = (name: string) => void this.kept.delete(name);
}

describe("the queue", () => {
  test("survives a reload, in order, until it is acknowledged", () => {
    const storage = new Storage();
    const queue = makeQueue(storage, "k");
    queue.add({ t: "msg", cid: "a", text: "1" });
    queue.add({ t: "msg", cid: "b", text: "2" });
    const after = makeQueue(storage, "k");
    expect(after.all().map((item) => item.cid)).toEqual(["a", "b"]);
    expect(after.remove("a")).toMatchObject({ cid: "a" });
    expect(after.remove("a")).toBeUndefined();
    after.remove("b");
    expect(storage.kept.size).toBe(0);
  });

  test("does without storage, and with what it cannot read", () => {
    const none = makeQueue(null, "k");
    none.add({ t: "msg", cid: "a", text: "1" });
    expect(none.all()).toHaveLength(1);
    for (const text of ["{", "7", `[null,{"t":"msg"},{"t":"x","cid":"a"}]`]) {
      const storage = new Storage();
      storage.setItem("k", text);
      expect(makeQueue(storage, "k").all()).toEqual([]);
    }
  });
});

interface Link {
  connect(): void;
  pump(): void;
  state(): string;
  wake(): void;
  drop(): void;
}
const makeLink = load<(io: unknown) => Link>(linkScript, "makeLink");

/** A page's surroundings: time, sockets, storage. */
class Page {
  now = 1_000_000;
  timers: { at: number; fn: () => void }[] = [];
  sockets: FakeSocket[] = [];
  states: string[] = [];
  frames: Record<string, unknown>[] = [];
  queue = makeQueue(new Storage(), "k");
  lastSeq = 0;
  session = true;
  random = 0;
  link: Link = makeLink({
    open: () => {
      const socket = new FakeSocket();
      this.sockets.push(socket);
      return socket;
    },
    queue: this.queue,
    lastSeq: () => this.lastSeq,
    now: () => this.now,
    after: (ms: number, fn: () => void) => {
      const timer = { at: this.now + ms, fn };
      this.timers.push(timer);
      return () => {
        this.timers = this.timers.filter((other) => other !== timer);
      };
    },
    random: () => this.random,
    hasSession: async () => this.session,
    onState: (state: string) => this.states.push(state),
    onFrame: (frame: Record<string, unknown>) => this.frames.push(frame),
  });

  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("no socket");
    return socket;
  }

  pass(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.timers = this.timers.filter((timer) => timer !== next);
      this.now = Math.max(this.now, next.at);
      next.fn();
    }
    this.now = end;
  }

  online(): FakeSocket {
    this.link.connect();
    const { socket } = this;
    socket.onopen();
    socket.says({ t: "ready", seq: 0 });
    return socket;
  }

  say(...cids: string[]): void {
    for (const cid of cids) this.queue.add({ t: "msg", cid, text: cid, at: 1 });
    this.link.pump();
  }
}

class FakeSocket {
  sent: string[] = [];
  closed = false;
  onopen = () => {};
  onmessage = (_event: { data: string }) => {};
  onclose = (_event: { code: number }) => {};
  send(text: string) {
    this.sent.push(text);
  }
  close() {
    this.closed = true;
  }
  says(frame: object) {
    this.onmessage({ data: JSON.stringify(frame) });
  }
  get cids(): string[] {
    return this.sent.flatMap((text) =>
      text === "ping" ? [] : [(JSON.parse(text) as { cid?: string }).cid ?? []].flat(),
    );
  }
}

describe("the link", () => {
  let page: Page;
  beforeEach(() => {
    page = new Page();
  });

  test("says hello with its last number, and sends nothing before it is answered", () => {
    page.lastSeq = 41;
    page.say("a");
    page.link.connect();
    page.socket.onopen();
    expect(page.socket.sent).toEqual([`{"t":"hello","lastSeq":41}`]);
    page.socket.says({ t: "ready", seq: 41 });
    expect(page.socket.sent[1]).toBe(`{"t":"msg","cid":"a","text":"a"}`);
    expect(page.states).toEqual(["connecting", "online"]);
  });

  test("keeps a message until the ack, and sends it again over a new connection", () => {
    const first = page.online();
    page.say("a", "b");
    first.says({ t: "ack", cid: "a", seq: 1 });
    first.onclose({ code: 1006 });
    expect(page.link.state()).toBe("reconnecting");
    page.pass(1_000);
    const second = page.socket;
    expect(second).not.toBe(first);
    second.onopen();
    second.says({ t: "ready", seq: 1 });
    expect(second.cids).toEqual(["b"]);
    second.says({ t: "ack", cid: "b", seq: 2 });
    expect(page.queue.all()).toEqual([]);
  });

  test("drops entries that come before its replay", () => {
    page.link.connect();
    page.socket.onopen();
    page.socket.says({ t: "log", entries: [{ seq: 9 }] });
    page.socket.says({ t: "log", entries: [{ seq: 8 }], replay: true });
    page.socket.says({ t: "ready", seq: 9 });
    page.socket.says({ t: "log", entries: [{ seq: 10 }] });
    const logs = page.frames.filter((frame) => frame.t === "log");
    expect(logs.map((frame) => frame.entries)).toEqual([[{ seq: 8 }], [{ seq: 10 }]]);
  });

  test("waits longer each time, never all pages at once", () => {
    page.link.connect();
    const waits: number[] = [];
    for (let i = 0; i < 9; i += 1) {
      page.random = i % 2 === 0 ? 0 : 0.999;
      const before = page.now;
      const count = page.sockets.length;
      page.socket.onclose({ code: 1006 });
      while (page.sockets.length === count) page.pass(10);
      waits.push(page.now - before);
    }
    expect(waits[0]).toBeLessThanOrEqual(260);
    expect(waits[1]).toBeGreaterThan(900);
    expect(Math.max(...waits)).toBeLessThanOrEqual(30_010);
    expect(waits[8]).toBeGreaterThanOrEqual(15_000);
  });

  test("starts over with short waits only after a steady connection", () => {
    // Returns how long the page waited before it connected again.
    const comeBack = () => {
      const before = page.now;
      const count = page.sockets.length;
      page.socket.onclose({ code: 1006 });
      while (page.sockets.length === count) page.pass(10);
      page.socket.onopen();
      page.socket.says({ t: "ready", seq: 0 });
      return page.now - before;
    };
    page.online();
    const waits = Array.from({ length: 6 }, comeBack);
    expect(waits[5]).toBeGreaterThanOrEqual(8_000);
    page.pass(6_000);
    expect(comeBack()).toBeLessThanOrEqual(260);
  });

  test("a nack is sent again later; what the room has stored holds nothing up", () => {
    const socket = page.online();
    page.say("a");
    socket.says({ t: "nack", cid: "a", retry: true, afterMs: 2_000, stored: true });
    page.say("b");
    expect(socket.cids).toEqual(["a", "b"]);
    page.pass(1_900);
    expect(socket.cids).toEqual(["a", "b"]);
    page.pass(200);
    expect(socket.cids).toEqual(["a", "b", "a"]);
  });

  test("what the room could not store is not overtaken", () => {
    const socket = page.online();
    page.say("a");
    socket.says({ t: "nack", cid: "a", retry: true, afterMs: 2_000, stored: false });
    page.say("b");
    expect(socket.cids).toEqual(["a"]);
    page.pass(2_100);
    expect(socket.cids).toEqual(["a", "a", "b"]);
  });

  test("stays within the room's limits however much is queued", () => {
    const socket = page.online();
    const cids = Array.from({ length: 60 }, (_, i) => `c${i}`);
    page.say(...cids);
    const recent: number[] = [];
    for (let waited = 0; page.queue.all().length > 0 && waited < 200_000; waited += 100) {
      const open = socket.cids.slice(recent.length);
      expect(open.length).toBeLessThanOrEqual(8);
      for (const cid of open) {
        recent.push(page.now);
        socket.says({ t: "ack", cid, seq: 1 });
      }
      page.pass(100);
    }
    expect(new Set(socket.cids).size).toBe(60);
    for (const at of recent) {
      expect(recent.filter((other) => other >= at && other < at + 10_000).length).toBeLessThan(20);
    }
  });

  test("a message without any answer is sent again", () => {
    const socket = page.online();
    page.say("a");
    for (let i = 0; i < 5; i += 1) {
      page.pass(5_000);
      socket.onmessage({ data: "pong" });
    }
    expect(socket.cids.length).toBe(2);
  });

  test("silence is asked about, and no answer ends the connection", () => {
    const socket = page.online();
    page.pass(26_000);
    page.pass(5_000);
    expect(socket.sent).toContain("ping");
    page.pass(16_000);
    expect(socket.closed).toBe(true);
    expect(page.link.state()).toBe("reconnecting");
  });

  test("a socket that was given up has no say any more", () => {
    const dead = page.online();
    page.link.drop();
    page.pass(1_000);
    const alive = page.socket;
    dead.onclose({ code: 1006 });
    dead.says({ t: "ack", cid: "a", seq: 1 });
    expect(page.socket).toBe(alive);
    expect(page.frames.filter((frame) => frame.t === "ack")).toEqual([]);
  });

  test("refused before it opened: asks whether the session is the reason", async () => {
    page.session = false;
    page.link.connect();
    page.socket.onclose({ code: 1006 });
    await Promise.resolve();
    await Promise.resolve();
    expect(page.link.state()).toBe("ended");
    page.pass(60_000);
    expect(page.sockets).toHaveLength(1);
  });

  test("closed in favour of another tab: does not fight", () => {
    page.online().onclose({ code: 4409 });
    expect(page.link.state()).toBe("elsewhere");
    page.link.wake();
    page.pass(60_000);
    expect(page.sockets).toHaveLength(1);
    page.link.connect();
    expect(page.sockets).toHaveLength(2);
  });

  test("closed for its size: the message is given up, not sent for ever", () => {
    const socket = page.online();
    page.say("a", "a-much-longer-one");
    socket.onclose({ code: 4413 });
    expect(page.queue.all().map((item) => item.cid)).toEqual(["a"]);
    expect(page.frames.at(-1)).toEqual({ t: "error", code: "too_long", cid: "a-much-longer-one" });
  });

  test("closed for its speed: waits until the limit has passed", () => {
    page.online().onclose({ code: 4429 });
    page.pass(10_900);
    expect(page.sockets).toHaveLength(1);
    page.pass(200);
    expect(page.sockets).toHaveLength(2);
  });
});

/** As much of a document as the builder of messages touches. */
class FakeNode {
  nodeName: string;
  nodeType: number;
  data = "";
  className = "";
  href?: string;
  rel?: string;
  target?: string;
  childNodes: FakeNode[] = [];
  parent: FakeNode | undefined;
  constructor(name: string, type = 1) {
    this.nodeName = name.toUpperCase();
    this.nodeType = type;
  }
  append(...nodes: (FakeNode | string)[]) {
    for (const node of nodes) {
      const child = typeof node === "string" ? new FakeNode("#text", 3) : node;
      if (typeof node === "string") child.data = node;
      child.parent = this;
      this.childNodes.push(child);
    }
  }
  appendChild(node: FakeNode) {
    this.append(node);
    return node;
  }
  set textContent(text: string) {
    this.childNodes = [];
    this.append(text);
  }
  get previousSibling() {
    return this.sibling(-1);
  }
  get nextSibling() {
    return this.sibling(1);
  }
  sibling(step: number): FakeNode | null {
    const all = this.parent?.childNodes ?? [];
    return all[all.indexOf(this) + step] ?? null;
  }
  /** What the tree looks like. */
  show(): string {
    if (this.nodeType === 3) return this.data.replaceAll("<", "&lt;");
    const inner = this.childNodes.map((child) => child.show()).join("");
    const name = this.nodeName.toLowerCase();
    return `<${name}${this.href === undefined ? "" : ` ${this.href} ${this.rel}`}>${inner}</${name}>`;
  }
}

interface Rich {
  text(value: string, spans?: object[]): FakeNode;
  link(url: string, className: string, text: string): FakeNode;
}
const makeRich = load<(doc: unknown) => Rich>(richScript, "makeRich");

describe("messages on the page", () => {
  const rich = makeRich({ createElement: (name: string) => new FakeNode(name) });
  const show = (value: string, spans?: object[]) => rich.text(value, spans).show();

  test("text is text", () => {
    expect(show("<script>alert(1)</script>")).toBe("<div>&lt;script>alert(1)&lt;/script></div>");
  });

  test("spans nest", () => {
    const spans = [
      { start: 0, end: 9, type: "bold" },
      { start: 2, end: 5, type: "italic" },
      { start: 10, end: 12, type: "code" },
    ];
    expect(show("ab cd efg hi!", spans)).toBe(
      "<div><strong>ab<em> cd</em> efg</strong> <code>hi</code>!</div>",
    );
  });

  test("spans that do not nest, or lie outside, are cut and break nothing", () => {
    const spans = [
      { start: 0, end: 4, type: "bold" },
      { start: 2, end: 9, type: "italic" },
      { start: 3, end: 99, type: "unheard of" },
      { start: 5, end: 5, type: "code" },
    ];
    expect(
      rich
        .text("abcdefgh", spans)
        .show()
        .replaceAll(/<[^>]*>/g, ""),
    ).toBe("abcdefgh");
  });

  test("links lead to the web alone, and tell it nothing", () => {
    expect(show("it", [{ start: 0, end: 2, type: "link", url: "https://a.example/?b" }])).toBe(
      "<div><a https://a.example/?b noopener noreferrer>it</a></div>",
    );
    for (const url of ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "/x"]) {
      expect(show("it", [{ start: 0, end: 2, type: "link", url }])).toBe(
        "<div><span>it</span></div>",
      );
    }
  });

  test("blank lines around blocks are the blocks' own margin", () => {
    const spans = [{ start: 3, end: 6, type: "pre", lang: "js" }];
    expect(show("a\n\nb\nc\n\nd", spans)).toBe("<div>a<pre><code>b\nc</code></pre>d</div>");
  });
});
