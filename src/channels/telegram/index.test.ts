import { describe, expect, test } from "vitest";
import { SimTelegram } from "../../testing/platforms/telegram.ts";
import { ConfigError, MediaUnavailableError, PayloadTooLargeError } from "../errors.ts";
import { telegram } from "./index.ts";
import { ioOver } from "./lab.ts";

const ENV = { TELEGRAM_BOT_TOKEN: "1:a", TELEGRAM_WEBHOOK_SECRET: "s" };

describe("telegram()", () => {
  test("reads the environment", () => {
    expect(telegram().configure(ENV)).toEqual({
      ok: true,
      options: { token: "1:a", webhookSecret: "s", apiBase: "https://api.telegram.org" },
    });
    expect(
      telegram().configure({
        ...ENV,
        TELEGRAM_BOT_TOKEN: "1:a\n",
        TELEGRAM_WEBHOOK_SECRET_PREVIOUS: "old",
        TELEGRAM_API_BASE: "http://127.0.0.1:8081/",
      }),
    ).toMatchObject({
      options: { token: "1:a", previousWebhookSecret: "old", apiBase: "http://127.0.0.1:8081" },
    });
  });

  test("names what is missing, and never throws for it", () => {
    expect(telegram().configure({})).toEqual({
      ok: false,
      missing: ["TELEGRAM_BOT_TOKEN", "TELEGRAM_WEBHOOK_SECRET"],
    });
    expect(telegram({ token: "1:a" }).configure({ TELEGRAM_WEBHOOK_SECRET: "" })).toEqual({
      ok: false,
      missing: ["TELEGRAM_WEBHOOK_SECRET"],
    });
    expect(telegram().configure({ ...ENV, TELEGRAM_API_BASE: "nonsense" })).toMatchObject({
      ok: false,
    });
  });

  test("takes options, or a function of the environment", () => {
    const fixed = telegram({ connection: "sales", token: "2:b", username: "@Sales_Bot" });
    expect(fixed.connection).toBe("sales");
    expect(fixed.configure(ENV)).toMatchObject({
      options: { token: "2:b", username: "sales_bot" },
    });
    const dynamic = telegram((env: { SALES: string }) => ({ token: env.SALES }), {
      connection: "sales",
    });
    expect(dynamic.connection).toBe("sales");
    expect(dynamic.configure({ ...ENV, SALES: "3:c" })).toMatchObject({
      options: { token: "3:c" },
    });
    expect(telegram().connection).toBe("telegram");
  });

  test("refuses an address of the API that is none", () => {
    expect(() => telegram({ apiBase: "api.telegram.org" })).toThrow(ConfigError);
  });

  test("builds addresses and keys", () => {
    expect(telegram.address(501)).toEqual({ channel: "telegram", chat: "501" });
    expect(telegram.address(-100, { thread: 7, connection: "sales" })).toEqual({
      channel: "telegram",
      connection: "sales",
      chat: "-100",
      thread: "7",
    });
    const { chatKey } = telegram();
    expect(chatKey({ id: "501" })).toBe("501");
    expect(chatKey({ id: "-100", thread: "7" })).toBe("-100:7");
  });

  test("has the abilities of its calls", () => {
    const { capabilities, outbound } = telegram();
    expect(capabilities).toMatchObject({
      text: { limit: 4_096, unit: "codepoints" },
      buttonDataBytes: 64,
      delivery: { class: "blind" },
      redelivery: { windowMs: 86_400_000 },
      journalFailure: { status: 503, retryAfterSeconds: 1 },
    });
    // A blind channel has no marker and nothing to ask.
    expect(outbound.reconcile).toBeUndefined();
    expect(outbound.selfTest).toBeDefined();
  });
});

describe("media", () => {
  function setUp() {
    const sim = new SimTelegram();
    const urls: string[] = [];
    const io = ioOver(sim, (request) => void urls.push(request.url));
    const load = (fileId: unknown, maxBytes = 100) =>
      telegram().media?.load({ kind: "file", ref: { fileId } as never }, io, maxBytes);
    return { sim, io, urls, load };
  }

  test("knows the hosts that files come from", () => {
    const channel = telegram();
    expect(channel.media?.hosts).toEqual(["api.telegram.org"]);
    channel.configure({ ...ENV, TELEGRAM_API_BASE: "http://127.0.0.1:8081" });
    expect(channel.media?.hosts).toEqual(["api.telegram.org", "127.0.0.1:8081"]);
    expect(telegram({ apiBase: "https://tg.example" }).media?.hosts).toEqual(["tg.example"]);
  });

  test("downloads a file by its id", async () => {
    const { sim, load } = setUp();
    sim.addFile(new Uint8Array([1, 2, 3]), { fileId: "F", filename: "a.pdf" });
    expect(await load("F")).toEqual(new Uint8Array([1, 2, 3]));
  });

  test("stops at the cap, whatever the platform announced", async () => {
    const { sim, io, load } = setUp();
    sim.addFile(new Uint8Array(101), { fileId: "F" });
    await expect(load("F")).rejects.toBeInstanceOf(PayloadTooLargeError);
    const lying: typeof io.fetch = async (input) =>
      String(input).endsWith("/getFile")
        ? Response.json({ ok: true, result: { file_path: "files/x" } })
        : new Response(new Uint8Array(101));
    await expect(
      telegram().media?.load({ kind: "file", ref: { fileId: "F" } }, { ...io, fetch: lying }, 100),
    ).rejects.toBeInstanceOf(PayloadTooLargeError);
  });

  test("never leaves the host, and never shows the token", async () => {
    const { io, load } = setUp();
    for (const path of ["../../etc", "https://evil.example/x", "//evil.example/x", "", 7]) {
      const asked: string[] = [];
      const fetch: typeof io.fetch = async (input) => {
        asked.push(String(input));
        return Response.json({ ok: true, result: { file_path: path } });
      };
      await expect(
        telegram().media?.load({ kind: "file", ref: { fileId: "F" } }, { ...io, fetch }, 100),
      ).rejects.toBeInstanceOf(MediaUnavailableError);
      expect(asked).toHaveLength(1);
    }
    const failing: typeof io.fetch = async (input) => {
      if (String(input).endsWith("/getFile")) {
        return Response.json({ ok: true, result: { file_path: "files/x" } });
      }
      throw new TypeError(`could not connect to ${String(input)}`);
    };
    const error: unknown = await telegram()
      .media?.load({ kind: "file", ref: { fileId: "F" } }, { ...io, fetch: failing }, 100)
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(MediaUnavailableError);
    expect(String(error)).not.toContain("SIM-token");
    await expect(load("unknown")).rejects.toBeInstanceOf(MediaUnavailableError);
    await expect(load(7)).rejects.toBeInstanceOf(MediaUnavailableError);
  });

  test("says when trying again may help", async () => {
    const { sim, load } = setUp();
    sim.addFile(new Uint8Array(1), { fileId: "F" });
    sim.fault({ type: "rateLimit", retryAfter: 3 });
    await expect(load("F")).rejects.toMatchObject({ retryable: true, retryAfterMs: 3_000 });
    sim.fault({ type: "drop", method: "download" });
    await expect(load("F")).rejects.toBeInstanceOf(MediaUnavailableError);
  });
});
