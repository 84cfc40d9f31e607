/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */

/** `makeCrash(doc, io)`: the panel of local mode that kills the bot and tells what became of it. */
export const crashScript = `
/*
 * Kills the bot at the worst moment and tells, from what the page itself sees, what came of it.
 *
 * io: arm() -> Promise, say(text) -> cid, draft() -> text, now(), element
 */
function makeCrash(doc, io) {
  const go = doc.getElementById("crash-go");
  const steps = doc.getElementById("crash-steps");
  const verdict = doc.getElementById("crash-verdict");
  const DEFAULT_TEXT = "Is this answered exactly once?";
  /* After the repeat: time for a second answer to show itself. */
  const QUIET_MS = 2500;
  const LIMIT_MS = 150000;
  let test = null;

  if (doc.defaultView.matchMedia("(max-width: 899px)").matches) {
    doc.getElementById("crash-fold").open = false;
  }
  go.addEventListener("click", start);

  async function start() {
    if (test !== null) return;
    test = { from: io.now(), cid: "", answers: new Map(), repeats: 0, acked: false, dropped: false };
    go.disabled = true;
    steps.replaceChildren();
    steps.hidden = false;
    verdict.hidden = true;
    try {
      await io.arm();
    } catch (error) {
      finish("bad", "The crash could not be armed: " + error.message);
      return;
    }
    step("The crash is armed.");
    test.cid = io.say(io.draft() || DEFAULT_TEXT);
    step("Your message is on its way.");
    test.limit = setTimeout(judge, LIMIT_MS);
    test.wait = steps.appendChild(io.element("li", "waiting", "Waiting for the bot"));
    test.wait.setAttribute("aria-hidden", "true");
    test.clock = setInterval(() => {
      test.wait.textContent =
        (test.answers.size === 0
          ? "Waiting for the bot"
          : "The bot is dead. Its own alarm brings it back, within a minute or so") +
        " (" + seconds() + " s)";
    }, 1000);
  }

  function seconds() {
    return ((io.now() - test.from) / 1000).toFixed(0);
  }

  function step(text) {
    const line = io.element("li", "", text + " ");
    line.append(io.element("span", "when", "+" + ((io.now() - test.from) / 1000).toFixed(1) + " s"));
    if (test.wait) test.wait.before(line);
    else steps.append(line);
    // On a small screen the panel scrolls by itself.
    line.scrollIntoView({ block: "nearest" });
  }

  function judge() {
    const contents = [...test.answers.values()];
    const doubled = contents.some((content, at) => contents.indexOf(content) !== at);
    if (contents.length === 0) {
      finish("bad", "No answer yet. The message is recorded, so it will be answered; look again later.");
    } else if (doubled) {
      finish("bad", "The answer arrived more than once.");
    } else if (test.repeats === 0) {
      finish("good", "The answer arrived exactly once. The bot never had to repeat it.");
    } else {
      finish(
        "good",
        contents.length === 1
          ? "The answer arrived exactly once."
          : "All " + contents.length + " answers arrived exactly once.",
      );
    }
  }

  function finish(kind, text) {
    clearTimeout(test.limit);
    clearTimeout(test.quiet);
    clearInterval(test.clock);
    if (test.wait) test.wait.remove();
    verdict.dataset.kind = kind;
    verdict.textContent = text;
    verdict.hidden = false;
    verdict.scrollIntoView({ block: "nearest" });
    go.disabled = false;
    test = null;
  }

  return {
    state(state) {
      if (test === null || test.cid === "") return;
      if (state === "reconnecting" && !test.dropped) {
        test.dropped = true;
        step("The connection dropped.");
      } else if (state === "online" && test.dropped) {
        test.dropped = false;
        step("The page reconnected by itself.");
      }
    },
    frame(frame) {
      if (test === null) return;
      if (frame.t === "ack" && frame.cid === test.cid && !test.acked) {
        test.acked = true;
        step("The bot has recorded your message.");
      } else if (frame.t === "repeat" && test.answers.has(frame.mid)) {
        test.repeats += 1;
        step("The bot came back by itself and sent the answer again. The chat knew it and dropped it.");
        clearTimeout(test.quiet);
        test.quiet = setTimeout(judge, QUIET_MS);
      }
    },
    entry(entry) {
      if (test === null || test.cid === "" || entry.kind !== "bot") return;
      const { silent, ...content } = entry.message;
      test.answers.set(entry.mid, JSON.stringify(content));
      step(test.answers.size === 1 ? "The answer arrived." : "Answer " + test.answers.size + " arrived.");
    },
  };
}
`;
