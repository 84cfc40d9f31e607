/**
 * Part of the page's script. The text is JavaScript for browsers: no backticks and no dollar-brace in it.
 *
 * @module
 */

/** `makeQueue(storage, name)`: what was said and is not yet acknowledged. */
export const queueScript = `
/*
 * What was said and is not yet acknowledged, in order. It lives in the storage of the tab, so that a
 * reload keeps it; where there is no storage, memory has to do.
 */
function makeQueue(storage, name) {
  let items = [];
  try {
    const kept = JSON.parse(storage.getItem(name) || "[]");
    if (Array.isArray(kept)) items = kept.filter(isItem);
  } catch {
    // Unreadable or forbidden: nothing was kept.
  }

  function isItem(item) {
    return (
      item !== null &&
      typeof item === "object" &&
      typeof item.cid === "string" &&
      (item.t === "msg" ? typeof item.text === "string" : item.t === "press")
    );
  }

  function save() {
    try {
      if (items.length === 0) storage.removeItem(name);
      else storage.setItem(name, JSON.stringify(items));
    } catch {
      // Full or forbidden.
    }
  }

  return {
    all() {
      return items.slice();
    },
    add(item) {
      items.push(item);
      save();
    },
    /* Returns what was removed, if it was there. */
    remove(cid) {
      const found = items.find((item) => item.cid === cid);
      if (found !== undefined) {
        items = items.filter((item) => item !== found);
        save();
      }
      return found;
    },
  };
}
`;
