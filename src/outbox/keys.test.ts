import { describe, expect, test } from "vitest";
import {
  canonicalJson,
  encodeKey,
  explicitSlot,
  fingerprintOf,
  keyOf,
  markerOf,
  parseKey,
  placeOfMarker,
} from "./keys.ts";

describe("a key", () => {
  test("of a turn's send is the event's id and the slot, and is read back, whatever the id holds", () => {
    for (const id of ["telegram:update:77", "a#b", "x~y", "e:1#2"]) {
      for (const slot of ["0", "12", "charge/3", "0~00ff", explicitSlot("a:b/c#1~d=e%")]) {
        expect(parseKey(keyOf({ key: null, slot, part: 0 }, id))).toEqual({
          head: `${id}:${slot}`,
          part: 0,
          inboxId: id,
          slot,
        });
      }
    }
  });

  test("of a later part counts from two", () => {
    const key = keyOf({ key: null, slot: "0", part: 2 }, "e1");
    expect(key).toBe("e1:0#3");
    expect(parseKey(key)).toMatchObject({ inboxId: "e1", slot: "0", part: 2 });
  });

  test("that a user chose never looks like another, nor like a turn's or a part's", () => {
    const names = ["a", "a:0", "a#2", "a~b", "a/b", "=a", "%61", "a%3A0", "a 0", "ä"];
    const encoded = names.map(encodeKey);
    expect(new Set(encoded).size).toBe(names.length);
    for (const key of encoded) expect(key).not.toMatch(/[#~:/=]/);
  });
});

describe("a marker", () => {
  const row = { turn: 1_767_225_600_000_000, pos: 1_025, generation: 0 };

  test("is short, plain, stable, and names its row", () => {
    const marker = markerOf("main/production/bot/telegram/42", row);
    expect(marker).toMatch(/^[0-9a-z]{1,32}$/);
    expect(marker).toBe(markerOf("main/production/bot/telegram/42", { ...row }));
    expect(placeOfMarker(marker)).toEqual({ turn: row.turn, pos: row.pos });
  });

  test("differs by chat, by place and by generation", () => {
    const all = [
      markerOf("a", row),
      markerOf("b", row),
      markerOf("a", { ...row, turn: row.turn + 1 }),
      markerOf("a", { ...row, pos: row.pos + 1 }),
      markerOf("a", { ...row, generation: 1 }),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  test("of somebody else is none of ours", () => {
    for (const text of [
      "",
      "z",
      "1z1z1234567",
      "1z1z1234567g",
      "wz1z12345678",
      "1z1z12345678z",
      `${"v".repeat(20)}z1z12345678`,
    ]) {
      expect(placeOfMarker(text), text).toBeUndefined();
    }
  });
});

describe("a fingerprint", () => {
  test("does not depend on the order in which content was written", () => {
    expect(fingerprintOf({ a: 1, b: { c: [1, 2], d: 3 } }, "x")).toBe(
      fingerprintOf({ b: { d: 3, c: [1, 2] }, a: 1 }, "x"),
    );
    expect(canonicalJson({ b: 1, a: [{ d: 1, c: 2 }] })).toBe('{"a":[{"c":2,"d":1}],"b":1}');
  });

  test("depends on everything that is said, and on where", () => {
    const all = [
      fingerprintOf("chat", { text: "a" }),
      fingerprintOf("other", { text: "a" }),
      fingerprintOf("chat", { text: "b" }),
      fingerprintOf("chat", { text: "a", silent: true }),
      fingerprintOf("chat", { list: [1, 2] }),
      fingerprintOf("chat", { list: [2, 1] }),
    ];
    expect(new Set(all).size).toBe(all.length);
    for (const one of all) expect(one).toMatch(/^[0-9a-f]{16}$/);
  });
});
