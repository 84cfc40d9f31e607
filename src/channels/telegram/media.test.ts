/** References to files: what the journal keeps, what it refuses to take back, and what a download may do. */
import { describe, expect, test } from "vitest";
import { SimTelegram } from "../../testing/platforms/telegram.ts";
import type { StoredMediaRef } from "../channel.ts";
import { MediaUnavailableError, PayloadTooLargeError } from "../errors.ts";
import type { MediaRef } from "../events.ts";
import { ioOver } from "./lab.ts";
import { telegramMedia } from "./media.ts";

const media = telegramMedia(["api.telegram.org"]);
const photo: MediaRef = {
  kind: "image",
  ref: { fileId: "AgAC_-9", uniqueId: "AQAD" },
  mimeType: "image/jpeg",
  size: 3,
};
const stored: StoredMediaRef = {
  v: 1,
  provider: "telegram",
  data: { fileId: "AgAC_-9", uniqueId: "AQAD" },
};

function reasonOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof MediaUnavailableError) return error.reason;
    throw error;
  }
  return "nothing thrown";
}

describe("a reference in the journal", () => {
  test("is the file's ids and nothing else, and comes back as it was", () => {
    expect(media.serializeMediaRef({ ...photo, filename: "cat.jpg" })).toEqual(stored);
    expect(media.rehydrateMediaRef(stored, { ...photo, ref: {} })).toEqual(photo);
    const copy = JSON.parse(JSON.stringify(stored)) as StoredMediaRef;
    expect(media.rehydrateMediaRef(copy, photo)).toEqual(photo);
  });

  test("does not exist for what is no file id", () => {
    for (const fileId of [undefined, 7, "", "a/b", "https://evil.example/x", "x".repeat(513)]) {
      expect(media.serializeMediaRef({ kind: "file", ref: { fileId } as never })).toBeUndefined();
    }
    const odd = media.serializeMediaRef({ kind: "file", ref: { fileId: "F", uniqueId: "a b" } });
    expect(odd?.data).toEqual({ fileId: "F" });
  });

  test("of another channel is refused as such", () => {
    for (const provider of ["slack", "", undefined, "Telegram"]) {
      expect(reasonOf(() => media.rehydrateMediaRef({ ...stored, provider } as never, photo))).toBe(
        "provider-mismatch",
      );
    }
  });

  const TAMPERED: [string, unknown][] = [
    ["nothing", undefined],
    ["null", null],
    ["text", "telegram"],
    ["a newer version", { ...stored, v: 2 }],
    ["a version that is text", { ...stored, v: "1" }],
    ["no version", { provider: "telegram", data: stored.data }],
    ["no data", { v: 1, provider: "telegram" }],
    ["data that is a list", { ...stored, data: ["AgAC"] }],
    ["no file id", { ...stored, data: { uniqueId: "AQAD" } }],
    ["a file id that is a number", { ...stored, data: { fileId: 7 } }],
    ["an empty file id", { ...stored, data: { fileId: "" } }],
    ["a path", { ...stored, data: { fileId: "../../etc/passwd" } }],
    ["a file's address", { ...stored, data: { fileId: "file:///etc/passwd" } }],
    ["an address", { ...stored, data: { fileId: "https://evil.example/x" } }],
    ["a query", { ...stored, data: { fileId: "F?x=1" } }],
    ["an encoded path", { ...stored, data: { fileId: "..%2Fx" } }],
    ["a line break", { ...stored, data: { fileId: "F\n" } }],
    ["an upload's name", { ...stored, data: { fileId: "attach://x" } }],
    ["a file id without end", { ...stored, data: { fileId: "x".repeat(513) } }],
    ["a unique id that is a number", { ...stored, data: { fileId: "F", uniqueId: 1 } }],
    ["a unique id with a path", { ...stored, data: { fileId: "F", uniqueId: "/x" } }],
    ["another field", { ...stored, data: { fileId: "F", host: "evil.example" } }],
    ["a date, which none of ours has", { ...stored, expiresAt: 1 }],
  ];
  test.each(TAMPERED)("with %s is refused", (_name, bad) => {
    expect(reasonOf(() => media.rehydrateMediaRef(bad as never, photo))).toBe("rehydrate-failed");
  });
});

describe("a download", () => {
  function setUp() {
    const sim = new SimTelegram();
    const requests: Request[] = [];
    const io = ioOver(sim, (request) => void requests.push(request));
    return { sim, io, requests };
  }
  const file = (fileId = "F"): MediaRef => ({ kind: "file", ref: { fileId } });

  test("of a photo works after the journal has had it", async () => {
    const { sim, io } = setUp();
    sim.addFile(new Uint8Array([1, 2, 3]), { fileId: "AgAC_-9" });
    const kept = media.serializeMediaRef(photo);
    if (kept === undefined) throw new Error("not kept");
    const back = media.rehydrateMediaRef(kept, { ...photo, ref: {} });
    expect(await media.load(back, io, 3)).toEqual(new Uint8Array([1, 2, 3]));
  });

  test("is not begun for a reference that is no file id, or that a replay gave up", async () => {
    const { io, requests } = setUp();
    for (const bad of ["../x", "https://evil.example/x", ""]) {
      await expect(media.load(file(bad), io, 9)).rejects.toMatchObject({
        reason: "rehydrate-failed",
      });
    }
    const unavailable = { reason: "provider-mismatch", message: "it is Slack's" } as const;
    await expect(media.load({ kind: "file", ref: {}, unavailable }, io, 9)).rejects.toMatchObject(
      unavailable,
    );
    expect(requests).toHaveLength(0);
  });

  test("is not begun for a file that says it is too large", async () => {
    const { io, requests } = setUp();
    await expect(media.load({ ...file(), size: 10 }, io, 9)).rejects.toBeInstanceOf(
      PayloadTooLargeError,
    );
    expect(requests).toHaveLength(0);
  });

  test("follows no redirect: the token would go along", async () => {
    const { io } = setUp();
    const asked: (RequestInit | undefined)[] = [];
    const fetch: typeof io.fetch = async (input, init) => {
      if (String(input).endsWith("/getFile")) {
        return Response.json({ ok: true, result: { file_path: "files/x" } });
      }
      asked.push(init);
      return new Response(null, { status: 302, headers: { location: "https://evil.example" } });
    };
    await expect(media.load(file(), { ...io, fetch }, 9)).rejects.toMatchObject({
      reason: "rehydrate-failed",
      retryable: false,
    });
    expect(asked.map((init) => init?.redirect)).toEqual(["manual"]);
  });

  test("over Telegram's own limit says so", async () => {
    const { sim, io } = setUp();
    sim.fault({ type: "refuse", status: 400, description: "Bad Request: file is too big" });
    await expect(media.load(file(), io, 9)).rejects.toThrow("20 MB");
  });

  test("that only failed on the way may be tried again; one that is gone may not", async () => {
    const { sim, io } = setUp();
    sim.addFile(new Uint8Array(3), { fileId: "F" });
    for (const method of ["getFile", "download"]) {
      for (const fault of [{ type: "drop" }, { type: "5xx" }] as const) {
        sim.fault({ ...fault, method });
        await expect(media.load(file(), io, 9), `${method} ${fault.type}`).rejects.toMatchObject({
          reason: "rehydrate-failed",
          kind: "transient",
          retryable: true,
        });
      }
    }
    sim.fault({ type: "rateLimit", retryAfter: 3 });
    await expect(media.load(file(), io, 9)).rejects.toMatchObject({ retryAfterMs: 3_000 });
    await expect(media.load(file("gone"), io, 9)).rejects.toMatchObject({ retryable: false });
    expect(await media.load(file(), io, 9)).toHaveLength(3);
  });

  test("stops at the cap while the body still comes", async () => {
    const { io } = setUp();
    let pulled = 0;
    let cancelled = false;
    const endless = () =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            pulled += 1;
            controller.enqueue(new Uint8Array(4));
          },
          cancel() {
            cancelled = true;
          },
        },
        { highWaterMark: 0 },
      );
    const fetch: typeof io.fetch = async (input) =>
      String(input).endsWith("/getFile")
        ? Response.json({ ok: true, result: { file_path: "files/x" } })
        : new Response(endless());
    await expect(media.load(file(), { ...io, fetch }, 9)).rejects.toBeInstanceOf(
      PayloadTooLargeError,
    );
    expect(pulled).toBe(3);
    expect(cancelled).toBe(true);
  });
});
