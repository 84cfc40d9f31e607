/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */

/** `makeLink(io)`: the connection to the room, which comes back by itself and sends what is queued. */
export const linkScript = `
/*
 * The connection. It comes back by itself, with a growing and random wait, so that all pages do not
 * return in the same moment after a deploy; it asks for what it missed, and sends what is queued until
 * that is acknowledged.
 *
 * io: open() -> WebSocket, queue, lastSeq(), now(), after(ms, fn) -> cancel, random(),
 *     hasSession() -> Promise<boolean>, onState(state), onFrame(frame)
 */
function makeLink(io) {
  const CONNECT_MS = 20000;
  const TICK_MS = 5000;
  /* Silence after which the page asks whether anybody is there, and how long it waits for the answer. */
  const QUIET_MS = 25000;
  const PONG_MS = 10000;
  /* A message without any answer for so long is sent again. */
  const UNANSWERED_MS = 20000;
  const STEADY_MS = 5000;
  const MAX_FLYING = 8;
  /* Below the room's own limit of 20 in ten seconds, hello included. */
  const MAX_RECENT = 15;
  const RECENT_MS = 10000;

  const nothing = () => {};
  let socket = null;
  let state = "";
  let ready = false;
  let readyAt = 0;
  let wasOnline = false;
  let tries = 0;
  let cancelRetry = nothing;
  let cancelTick = nothing;
  let cancelPump = nothing;
  let heardAt = 0;
  let askedAt = 0;
  let holdUntil = 0;
  let refusedUntil = 0;
  let refusals = 0;
  let recent = [];
  const flying = new Map();
  const resting = new Map();

  function setState(next) {
    if (next === state) return;
    state = next;
    io.onState(next);
  }

  function backoff(base, cap, n) {
    const full = Math.min(cap, base * 2 ** Math.min(n, 10));
    return full / 2 + (full / 2) * io.random();
  }

  function connect() {
    cancelRetry();
    if (socket !== null) return;
    setState(wasOnline ? "reconnecting" : "connecting");
    const mine = io.open();
    socket = mine;
    let opened = false;
    const cancelConnect = io.after(CONNECT_MS, () => {
      if (mine === socket && !ready) abandon(opened);
    });
    mine.onopen = () => {
      if (mine !== socket) return;
      opened = true;
      heardAt = io.now();
      mine.send(JSON.stringify({ t: "hello", lastSeq: io.lastSeq() }));
      recent.push(heardAt);
      cancelTick();
      cancelTick = io.after(TICK_MS, tick);
    };
    mine.onmessage = (event) => {
      if (mine !== socket) return;
      heardAt = io.now();
      askedAt = 0;
      if (event.data !== "pong") receive(event.data);
    };
    mine.onclose = (event) => {
      cancelConnect();
      if (mine === socket) lost(event.code, opened);
    };
    mine.onerror = nothing;
  }

  /* Gives a connection up without waiting for its close, which a dead network never brings. */
  function abandon(opened) {
    const dead = socket;
    lost(0, opened);
    try {
      dead.close();
    } catch {
      // It was no connection yet.
    }
  }

  function lost(code, opened) {
    if (ready && io.now() - readyAt >= STEADY_MS) tries = 0;
    socket = null;
    ready = false;
    askedAt = 0;
    cancelTick();
    cancelPump();
    if (code === 4413) dropLargest();
    flying.clear();
    resting.clear();
    if (code === 4401 || code === 4409) {
      setState(code === 4401 ? "ended" : "elsewhere");
      return;
    }
    setState(wasOnline ? "reconnecting" : "connecting");
    const wait = backoff(500, 30000, tries);
    tries += 1;
    cancelRetry = io.after(code === 4429 ? Math.max(wait, RECENT_MS + 1000) : wait, connect);
    if (!opened) askForSession();
  }

  /* A refused connection tells nothing, so another request has to tell whether the session is at fault. */
  function askForSession() {
    io.hasSession().then(
      (has) => {
        if (has || socket !== null) return;
        cancelRetry();
        setState("ended");
      },
      nothing,
    );
  }

  /* The frame that closed us would do so again for ever. */
  function dropLargest() {
    let largest;
    for (const item of io.queue.all()) {
      if (!flying.has(item.cid)) continue;
      if (largest === undefined || size(item) > size(largest)) largest = item;
    }
    if (largest === undefined) return;
    io.queue.remove(largest.cid);
    io.onFrame({ t: "error", code: "too_long", cid: largest.cid });
  }

  function size(item) {
    return JSON.stringify(item).length;
  }

  function receive(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return;
    }
    switch (frame.t) {
      case "ready":
        ready = true;
        readyAt = io.now();
        wasOnline = true;
        setState("online");
        io.onFrame(frame);
        pump();
        break;
      case "log":
        // Before the replay is over it has everything that would come live.
        if (ready || frame.replay === true) io.onFrame(frame);
        break;
      case "ack":
        flying.delete(frame.cid);
        resting.delete(frame.cid);
        io.queue.remove(frame.cid);
        refusals = 0;
        holdUntil = 0;
        io.onFrame(frame);
        pump();
        break;
      case "nack":
        flying.delete(frame.cid);
        rest(frame);
        io.onFrame(frame);
        pump();
        break;
      case "error":
        if (frame.cid !== undefined) {
          flying.delete(frame.cid);
          io.queue.remove(frame.cid);
        }
        io.onFrame(frame);
        pump();
        break;
      default:
        io.onFrame(frame);
    }
  }

  /* Several refusals at once are one. What the room has not even stored must not be overtaken. */
  function rest({ cid, afterMs, stored }) {
    const now = io.now();
    if (now >= refusedUntil) refusals += 1;
    const wait = Math.max(Number(afterMs) || 0, backoff(1000, 60000, refusals - 1));
    refusedUntil = Math.max(refusedUntil, now + wait);
    if (stored) resting.set(cid, now + wait);
    else holdUntil = Math.max(holdUntil, now + wait);
  }

  function tick() {
    cancelTick = io.after(TICK_MS, tick);
    const now = io.now();
    if (askedAt !== 0 && now - askedAt >= PONG_MS) {
      abandon(true);
      return;
    }
    if (askedAt === 0 && now - heardAt >= QUIET_MS) ask();
    let stale = false;
    for (const [cid, at] of flying) {
      if (now - at < UNANSWERED_MS) continue;
      flying.delete(cid);
      stale = true;
    }
    if (stale) pump();
  }

  function ask() {
    askedAt = io.now();
    socket.send("ping");
  }

  /* Sends what is queued and not under way, in order and within the limits. */
  function pump() {
    cancelPump();
    if (!ready) return;
    const now = io.now();
    if (now < holdUntil) {
      cancelPump = io.after(holdUntil - now, pump);
      return;
    }
    recent = recent.filter((at) => now - at < RECENT_MS);
    let again = Infinity;
    for (const item of io.queue.all()) {
      if (flying.has(item.cid)) continue;
      const until = resting.get(item.cid) || 0;
      if (until > now) {
        again = Math.min(again, until);
        continue;
      }
      if (flying.size >= MAX_FLYING) break;
      if (recent.length >= MAX_RECENT) {
        again = Math.min(again, recent[0] + RECENT_MS);
        break;
      }
      const { at, ...frame } = item;
      socket.send(JSON.stringify(frame));
      flying.set(item.cid, now);
      recent.push(now);
    }
    if (again !== Infinity) cancelPump = io.after(again - now, pump);
  }

  return {
    connect,
    pump,
    state: () => state,
    /* The network is gone: no need to wait until silence shows it. */
    drop() {
      if (socket !== null) abandon(true);
    },
    /* The network or the tab is back: look at once instead of at the next tick. */
    wake() {
      if (state === "ended" || state === "elsewhere") return;
      if (socket === null) connect();
      else if (ready && askedAt === 0) ask();
    },
  };
}
`;
