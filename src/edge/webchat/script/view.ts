/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */
import { DRAFT_MS } from "../../../channels/webchat/protocol.ts";

/** `makeView(doc, rich, onPress)`: the conversation on the page. */
export const viewScript = `
/* The conversation. Messages stand in the order of their numbers; what has none yet stands last. */
function makeView(doc, rich, onPress) {
  const { element } = rich;
  const log = doc.getElementById("log");
  const list = doc.getElementById("messages");
  const empty = doc.getElementById("empty");
  const typing = doc.getElementById("typing");
  const newer = doc.getElementById("newer");
  const title = doc.title;
  const shown = new Map();
  const chosen = new Map();
  let unread = 0;
  let typingTimer = 0;
  /* What the bot is writing. */
  let writing = null;

  const nearEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const toEnd = () => {
    log.scrollTop = log.scrollHeight;
    newer.hidden = true;
  };
  newer.addEventListener("click", () => {
    toEnd();
    log.focus();
  });
  log.addEventListener("scroll", () => {
    if (nearEnd()) newer.hidden = true;
  });
  doc.addEventListener("visibilitychange", () => {
    if (!doc.hidden) countUnread(0);
  });
  // A keyboard on the screen, or a wider window, must not push the last message out of sight.
  let stick = true;
  log.addEventListener("scroll", () => {
    stick = nearEnd();
  });
  if (typeof ResizeObserver === "function") {
    new ResizeObserver(() => {
      if (stick) toEnd();
    }).observe(log);
  }

  function countUnread(count) {
    unread = count;
    doc.title = count === 0 ? title : "(" + count + ") " + title;
  }

  function place(row, seq) {
    row.seq = seq;
    let before = list.lastElementChild;
    while (before !== null && (before === row.node || seqOf(before) > seq)) {
      before = before.previousElementSibling;
    }
    if (before === null) list.prepend(row.node);
    else if (before.nextElementSibling !== row.node) before.after(row.node);
  }

  function seqOf(node) {
    return node.row.seq;
  }

  function add(id, side, at, seq) {
    const stickHere = nearEnd();
    const node = element("li", "message " + side);
    const row = { node, seq, side, content: null };
    node.row = row;
    node.append(element("span", "hidden", side === "bot" ? "Bot: " : "You: "));
    row.bubble = node.appendChild(element("div", "bubble"));
    row.bubble.dir = "auto";
    row.meta = node.appendChild(element("p", "meta"));
    row.time = row.meta.appendChild(element("time"));
    stamp(row, at);
    shown.set(id, row);
    place(row, seq);
    empty.hidden = true;
    return { row, stickHere };
  }

  function stamp(row, at) {
    const date = new Date(at);
    const today = date.toDateString() === new Date().toDateString();
    const clock = { hour: "2-digit", minute: "2-digit" };
    row.time.dateTime = date.toISOString();
    row.time.textContent = today
      ? date.toLocaleTimeString([], clock)
      : date.toLocaleString([], { day: "numeric", month: "short", ...clock });
  }

  function follow(stickHere, mine) {
    if (stickHere || mine) toEnd();
    else newer.hidden = false;
  }

  /* What the user said: shown at once, and again when the room has given it a number. */
  function user(item, seq) {
    const known = shown.get(item.cid);
    if (known !== undefined) {
      if (seq === undefined) return;
      if (item.at !== undefined) stamp(known, item.at);
      const stickHere = nearEnd();
      place(known, seq);
      if (stickHere) toEnd();
      return;
    }
    const press = item.value !== undefined;
    const at = seq === undefined ? Infinity : seq;
    const { row, stickHere } = add(item.cid, press ? "user press" : "user", item.at, at);
    const text = press ? item.label || "A button" : item.text;
    if (press) row.bubble.append(element("span", "hidden", "Chose "));
    row.bubble.append(element("div", "text", text));
    row.words = text;
    if (press) choose(item.mid, item.value);
    follow(stickHere, seq === undefined);
  }

  function choose(mid, value) {
    const values = chosen.get(mid) || new Set();
    chosen.set(mid, values.add(value));
    const row = shown.get(mid);
    if (row === undefined) return;
    for (const button of row.bubble.querySelectorAll("button.choice")) mark(button, values);
  }

  function mark(button, values) {
    if (!values.has(button.choice) || button.classList.contains("chosen")) return;
    button.classList.add("chosen");
    button.append(element("span", "hidden", " (chosen)"));
  }

  function draft(frame) {
    const known = writing !== null && writing.id === frame.id;
    const text = (known ? writing.text : "").slice(0, frame.keep) + frame.text;
    const stickHere = nearEnd();
    if (!known) {
      endDraft();
      writing = { id: frame.id, row: add(frame.id, "bot draft", Date.now(), Infinity).row };
      // A screen reader reads the message once it is there, not each piece of it.
      writing.row.node.inert = true;
    }
    writing.text = text;
    writing.row.bubble.replaceChildren(rich.text(text, frame.spans));
    clearTimeout(writing.timer);
    writing.timer = setTimeout(endDraft, ${DRAFT_MS});
    stopTyping();
    follow(stickHere, false);
  }

  function endDraft() {
    if (writing === null) return;
    clearTimeout(writing.timer);
    writing.row.node.remove();
    shown.delete(writing.id);
    writing = null;
  }

  function bot(entry) {
    endDraft();
    const { row, stickHere } = add(entry.mid, "bot", entry.at, entry.seq);
    fill(row, entry.mid, entry.message);
    stopTyping();
    follow(stickHere, false);
    if (doc.hidden && !entry.message.silent) countUnread(unread + 1);
  }

  function edit(entry) {
    const row = shown.get(entry.mid);
    if (row === undefined) return;
    const stickHere = nearEnd();
    fill(row, entry.mid, entry.message);
    if (!row.edited) row.edited = row.meta.appendChild(element("span", "edited", "edited"));
    if (stickHere) toEnd();
  }

  function fill(row, mid, message) {
    const parts = [];
    const quoted = message.replyTo === undefined ? undefined : shown.get(message.replyTo);
    if (quoted !== undefined && quoted.words) {
      const quote = element("p", "answered", quoted.words.slice(0, 140));
      quote.prepend(element("span", "hidden", "In answer to: "));
      parts.push(quote);
    }
    for (const item of message.media || []) {
      parts.push(
        rich.media(item, () => {
          if (stick) toEnd();
        }),
      );
    }
    if (message.text) parts.push(rich.text(message.text, message.spans));
    if (message.buttons) parts.push(choices(mid, message.buttons));
    row.words = message.text || "";
    row.bubble.replaceChildren(...parts);
  }

  function choices(mid, rows) {
    const group = element("div", "choices");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Choices");
    for (const row of rows) {
      const line = group.appendChild(element("div", "choice-row"));
      for (const item of row) {
        if (item.url !== undefined) {
          line.append(rich.link(item.url, "choice", item.text));
          continue;
        }
        const button = line.appendChild(element("button", "choice", item.text));
        button.type = "button";
        button.choice = item.value;
        button.addEventListener("click", () => onPress({ mid, value: item.value, label: item.text }));
        mark(button, chosen.get(mid) || new Set());
      }
    }
    return group;
  }

  function delivery(cid, state, text) {
    const row = shown.get(cid);
    if (row === undefined) return;
    if (!row.delivery) row.delivery = row.meta.appendChild(element("span", "delivery"));
    row.delivery.dataset.state = state;
    row.delivery.textContent = text;
  }

  function stopTyping() {
    clearTimeout(typingTimer);
    typing.hidden = true;
  }

  return {
    user,
    delivery,
    draft,
    entry(entry) {
      if (entry.kind === "bot") bot(entry);
      else if (entry.kind === "edit") edit(entry);
      else if (entry.kind === "remove") {
        const row = shown.get(entry.mid);
        if (row !== undefined) row.node.remove();
        shown.delete(entry.mid);
      } else user(entry, entry.seq);
    },
    typing(ms) {
      stopTyping();
      const stickHere = nearEnd();
      typing.hidden = false;
      typingTimer = setTimeout(stopTyping, ms);
      if (stickHere) toEnd();
    },
    stopTyping,
    /* While history comes in, a screen reader must not read it all out. */
    settled() {
      log.setAttribute("aria-busy", "false");
      empty.hidden = list.childElementCount > 0;
    },
    reset() {
      endDraft();
      list.replaceChildren();
      shown.clear();
      chosen.clear();
    },
  };
}
`;
