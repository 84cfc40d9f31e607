import { describe, expect, test } from "vitest";
import {
  buttonValue,
  byteLength,
  encode,
  normalise,
  parseButtonValue,
  renderButtons,
} from "./content.ts";

describe("content", () => {
  test("has one form, whatever way it was written", () => {
    expect(normalise("hi")).toEqual({ format: "plain", text: "hi" });
    expect(normalise({ text: "hi" })).toEqual(normalise("hi"));
    expect(
      normalise({ text: "hi", format: undefined, media: undefined, silent: undefined }),
    ).toEqual(normalise("hi"));
    const one = { text: "a", action: "a" };
    expect(normalise({ text: "x", buttons: [one] })).toEqual(
      normalise({ text: "x", buttons: [[one]] }),
    );
    expect(normalise({ media: { kind: "image", url: "u" } })).toEqual(
      normalise({ media: [{ kind: "image", url: "u", filename: undefined }] }),
    );
  });

  test("of bytes is base64, for any length", () => {
    for (const length of [0, 1, 2, 3, 0x8000, 0x8001, 100_000]) {
      const bytes = Uint8Array.from({ length }, (_u, n) => (n * 7) % 256);
      const [media] = normalise({ media: { kind: "file", bytes } }).media ?? [];
      expect(Buffer.from(media?.base64 ?? "", "base64").equals(bytes), String(length)).toBe(true);
      expect(media).not.toHaveProperty("bytes");
    }
  });

  test("that says nothing is refused, and so is what is no content", () => {
    for (const nothing of [{}, { media: [] }, { buttons: [] }, { silent: true }]) {
      expect(() => normalise(nothing), JSON.stringify(nothing)).toThrow(/nothing to send/);
    }
    for (const wrong of [null, 5, undefined, true])
      expect(() => normalise(wrong as never)).toThrow(/content must be/);
  });

  test("that is no JSON is told apart from content that is", () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(encode({ format: "plain", native: cycle as never })).toBeUndefined();
    expect(encode({ format: "plain", native: { big: 1n } as never })).toBeUndefined();
    expect(encode({ format: "plain", text: "ä" })).toBe('{"format":"plain","text":"ä"}');
  });

  test("is measured in bytes of UTF-8", () => {
    expect([byteLength("a"), byteLength("ä"), byteLength("漢"), byteLength("😀")]).toEqual([
      1, 2, 3, 4,
    ]);
  });
});

describe("a button's value", () => {
  test("brings action and data back, whatever they hold", () => {
    for (const action of ["buy", "a|b", "~x", "%", "ä 漢", "a:b/c"]) {
      for (const data of [undefined, null, 0, "", "|", { a: [1, "|"] }]) {
        expect(parseButtonValue(buttonValue(action, data))).toEqual({ action, data });
      }
    }
  });

  test("that nobody made is nothing", () => {
    for (const value of ["%", "buy|", "buy|{", "%E0%A4%A"])
      expect(parseButtonValue(value), value).toBeUndefined();
  });

  test("is kept aside only beyond the platform's bytes", () => {
    const kept: string[] = [];
    const keep = (value: string) => `id${kept.push(value)}`;
    // `buy|"…"` has 6 bytes around the text.
    const data = (length: number) => [[{ text: "b", action: "buy", data: "x".repeat(length - 6) }]];
    expect(renderButtons(data(64), 64, keep)).toEqual([
      [{ text: "b", value: `buy|"${"x".repeat(58)}"` }],
    ]);
    expect(renderButtons(data(65), 64, keep)).toEqual([[{ text: "b", value: "~id1" }]]);
    expect(kept).toEqual([`buy|"${"x".repeat(59)}"`]);
    expect(renderButtons([[{ text: "u", url: "https://x" }]], 1, keep)).toEqual([
      [{ text: "u", url: "https://x" }],
    ]);
  });
});
