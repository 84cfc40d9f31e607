/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */

/** `makeRich(doc)`: builds elements out of a bot's message. Nothing is ever parsed as HTML. */
export const richScript = String.raw`
/*
 * Elements for what a bot says. Texts become text nodes and links are checked once more, so that
 * nothing in a message can be more than a message.
 */
function makeRich(doc) {
  const TAGS = { bold: "strong", italic: "em", strike: "s", code: "code", quote: "blockquote" };
  const BLOCKS = new Set(["BLOCKQUOTE", "PRE"]);

  function element(name, className, text) {
    const node = doc.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function webUrl(url) {
    try {
      const { protocol, href } = new URL(url);
      return protocol === "http:" || protocol === "https:" ? href : undefined;
    } catch {
      return undefined;
    }
  }

  function link(url, className, text) {
    const href = webUrl(url);
    if (href === undefined) return element("span", className, text);
    const node = element("a", className, text);
    node.href = href;
    node.target = "_blank";
    node.rel = "noopener noreferrer";
    return node;
  }

  function ofSpan(span) {
    if (span.type === "link") {
      const node = link(span.url, "");
      return { outer: node, inner: node };
    }
    if (span.type === "pre") {
      const outer = element("pre");
      const inner = outer.appendChild(element("code"));
      outer.tabIndex = 0;
      return { outer, inner };
    }
    const node = element(TAGS[span.type] || "span");
    return { outer: node, inner: node };
  }

  /* Spans come sorted, outer before inner; one that reaches over its outer's end is cut there. */
  function text(value, spans) {
    const root = element("div", "text");
    const list = spans || [];
    let next = 0;
    const write = (parent, piece) => {
      if (piece !== "") parent.append(piece);
    };
    const fill = (parent, from, to) => {
      let at = from;
      while (next < list.length && list[next].start < to) {
        const span = list[next];
        next += 1;
        const start = Math.max(span.start, at);
        const end = Math.min(span.end, to);
        if (start >= end) continue;
        write(parent, value.slice(at, start));
        const made = ofSpan(span);
        fill(made.inner, start, end);
        parent.append(made.outer);
        at = end;
      }
      write(parent, value.slice(at, to));
    };
    fill(root, 0, value.length);
    closeGaps(root);
    return root;
  }

  /* Around blocks the margin is the gap; the blank lines of the text would come on top of it. */
  function closeGaps(root) {
    for (const node of [...root.childNodes]) {
      if (!BLOCKS.has(node.nodeName)) continue;
      const before = node.previousSibling;
      const after = node.nextSibling;
      if (before && before.nodeType === 3) before.data = before.data.replace(/\n{1,2}$/, "");
      if (after && after.nodeType === 3) after.data = after.data.replace(/^\n{1,2}/, "");
    }
  }

  function media(item, onLoad) {
    const figure = element("figure", "media");
    const caption = item.caption ? item.caption.text : "";
    const label = "Open " + item.kind + (item.name ? ": " + item.name : "");
    const url = webUrl(item.url);
    if (item.kind === "image" && url !== undefined) {
      const frame = link(item.url, "picture");
      const image = element("img");
      image.alt = caption || item.name || "Image without a description";
      image.loading = "lazy";
      image.referrerPolicy = "no-referrer";
      image.addEventListener("load", onLoad);
      image.addEventListener("error", () => {
        frame.replaceWith(link(item.url, "file", label));
      });
      image.src = url;
      frame.append(image);
      figure.append(frame);
    } else {
      figure.append(link(item.url, "file", label));
    }
    if (caption !== "") {
      const words = element("figcaption");
      words.append(text(caption, item.caption.spans));
      figure.append(words);
    }
    return figure;
  }

  return { element, link, text, media, webUrl };
}
`;
