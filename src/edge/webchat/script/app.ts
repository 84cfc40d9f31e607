/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */

/** `main(win)`: wires queue, link, view and form together. */
export const appScript = `
function main(win) {
  const doc = win.document;
  const { base, tag } = doc.body.dataset;
  /* The room closes a connection that sends more at once. */
  const MAX_FRAME_BYTES = 65000;
  const STATES = {
    connecting: "Connecting…",
    online: "Online",
    reconnecting: "Connection lost. Reconnecting…",
    ended: "Signed out",
    elsewhere: "Closed in this tab",
  };
  const DELIVERY = {
    sending: "Sending…",
    waiting: "Waiting for the connection",
    retrying: "Not received yet, will try again",
    received: "Received",
  };
  const FAILED = {
    too_long: "Not sent: it is too long",
    empty: "Not sent: it is empty",
  };

  const status = doc.getElementById("status");
  const notice = doc.getElementById("notice");
  const noticeText = doc.getElementById("notice-text");
  const noticeAction = doc.getElementById("notice-action");
  const form = doc.getElementById("composer");
  const box = doc.getElementById("text");

  let lastSeq = 0;
  const refused = new Set();
  const rich = makeRich(doc);
  const queue = makeQueue(storage(), "holdfast-chat-" + tag);
  const view = makeView(doc, rich, press);
  const link = makeLink({
    open() {
      const url = new URL(base + "/ws", win.location.href);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      return new win.WebSocket(url);
    },
    queue,
    lastSeq: () => lastSeq,
    now: () => Date.now(),
    after(ms, fn) {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    async hasSession() {
      const answer = await fetch(base + "/health", { cache: "no-store" });
      return (await answer.json()).session !== false;
    },
    onState,
    onFrame,
  });
  const crash = doc.getElementById("crash")
    ? makeCrash(doc, {
        async arm() {
          const answer = await fetch(base + "/crash", { method: "POST" });
          if (!answer.ok) throw new Error("the server answered " + answer.status);
        },
        say,
        draft: takeDraft,
        now: () => Date.now(),
        element: rich.element,
      })
    : null;

  function storage() {
    try {
      return win.sessionStorage;
    } catch {
      return null;
    }
  }

  function newId() {
    const bytes = win.crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function onState(state) {
    status.dataset.state = state;
    status.textContent = STATES[state];
    notice.hidden = state !== "ended" && state !== "elsewhere";
    if (state === "ended") {
      noticeText.textContent = "Your session has ended.";
      noticeAction.textContent = "Start again";
    } else if (state === "elsewhere") {
      noticeText.textContent = "This chat is open in too many tabs.";
      noticeAction.textContent = "Use it here";
    }
    showDeliveries();
    if (crash) crash.state(state);
  }

  function showDeliveries() {
    for (const { cid } of queue.all()) {
      const online = link.state() === "online";
      const state = !online ? "waiting" : refused.has(cid) ? "retrying" : "sending";
      view.delivery(cid, state, DELIVERY[state]);
    }
  }

  function onFrame(frame) {
    switch (frame.t) {
      case "log":
        if (frame.reset) {
          lastSeq = 0;
          view.reset();
          for (const item of queue.all()) view.user(item);
        }
        for (const entry of frame.entries) {
          if (entry.seq <= lastSeq) continue;
          lastSeq = entry.seq;
          view.entry(entry);
          if (crash) crash.entry(entry);
        }
        break;
      case "ready":
        view.settled();
        break;
      case "ack":
        refused.delete(frame.cid);
        view.delivery(frame.cid, "received", DELIVERY.received);
        break;
      case "nack":
        refused.add(frame.cid);
        showDeliveries();
        break;
      case "error":
        if (frame.cid) view.delivery(frame.cid, "failed", FAILED[frame.code] || "Not sent");
        break;
      case "repeat":
        view.stopTyping();
        break;
      case "typing":
        view.typing(frame.ms);
        break;
      case "draft":
        view.draft(frame);
        break;
    }
    if (crash) crash.frame(frame);
  }

  function put(item) {
    view.user(item);
    if (new TextEncoder().encode(JSON.stringify(item)).byteLength > MAX_FRAME_BYTES) {
      view.delivery(item.cid, "failed", FAILED.too_long);
      return item.cid;
    }
    queue.add(item);
    showDeliveries();
    link.pump();
    return item.cid;
  }

  function say(text) {
    return put({ t: "msg", cid: newId(), text, at: Date.now() });
  }

  function press({ mid, value, label }) {
    // A second press while the first is under way is a slip of the finger.
    if (queue.all().some((item) => item.mid === mid && item.value === value)) return;
    put({ t: "press", cid: newId(), value, mid, label, at: Date.now() });
  }

  function takeDraft() {
    const text = box.value.trim() === "" ? "" : box.value;
    box.value = "";
    grow();
    return text;
  }

  function grow() {
    box.style.height = "auto";
    box.style.height = box.scrollHeight + 2 + "px";
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = takeDraft();
    if (text !== "") say(text);
    box.focus();
  });
  box.addEventListener("input", grow);
  box.addEventListener("keydown", (event) => {
    // While an input method composes, Enter chooses a word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  noticeAction.addEventListener("click", () => {
    if (link.state() === "ended") win.location.reload();
    else link.connect();
  });
  win.addEventListener("online", () => link.wake());
  win.addEventListener("offline", () => link.drop());
  win.addEventListener("pageshow", (event) => {
    if (event.persisted) link.wake();
  });
  doc.addEventListener("visibilitychange", () => {
    if (!doc.hidden) link.wake();
  });

  for (const item of queue.all()) view.user(item);
  link.connect();
}
`;
