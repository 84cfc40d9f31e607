import { describe, expect, test } from "vitest";
import { ConnectionDropped, type FaultEffect } from "./faults.ts";
import { type Listening, listen } from "./serve.ts";
import { SIM_TOKEN, SimTelegram } from "./telegram.ts";

const NOW = 1_700_000_000_000;

function setUp(base = "https://api.telegram.org", fetcher?: typeof fetch) {
  const clock = { now: NOW };
  const sim = new SimTelegram({ now: () => clock.now });
  const call = async (method: string, params: object = {}, token = SIM_TOKEN) => {
    const request = new Request(`${base}/bot${token}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(params),
    });
    const response = await (fetcher ?? sim.fetch)(request);
    return (await response.json()) as Record<string, unknown>;
  };
  const refusal = async (method: string, params: object) => {
    const { ok, description } = await call(method, params);
    expect(ok).toBe(false);
    return description;
  };
  return { clock, sim, call, refusal };
}

describe("the Bot API", () => {
  test("knows its token", async () => {
    const { call } = setUp();
    expect(await call("getMe")).toMatchObject({ ok: true, result: { id: 4200, is_bot: true } });
    expect(await call("getMe", {}, "4200:other")).toMatchObject({ ok: false, error_code: 401 });
    expect(await call("getMe", {}, "nonsense")).toMatchObject({ ok: false, error_code: 404 });
    expect(await call("getNothing")).toMatchObject({ ok: false, error_code: 404 });
  });

  test("takes parameters from query, JSON and forms", async () => {
    const { sim } = setUp();
    const url = `https://api.telegram.org/bot${SIM_TOKEN}/sendMessage`;
    await sim.fetch(new Request(`${url}?chat_id=5&text=42`));
    const form = new FormData();
    form.set("chat_id", "5");
    form.set("text", "[1]");
    form.set("reply_markup", '{"inline_keyboard":[]}');
    await sim.fetch(new Request(url, { method: "POST", body: form }));
    const body = new URLSearchParams({ chat_id: "5", text: "x" });
    await sim.fetch(new Request(url, { method: "POST", body }));
    expect(sim.sent.map((message) => message.text)).toEqual(["42", "[1]", "x"]);
    const broken = await sim.fetch(
      new Request(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{",
      }),
    );
    expect(broken.status).toBe(400);
  });

  test("keeps a ledger and a screen", async () => {
    const { sim, call, clock } = setUp();
    await call("sendMessage", { chat_id: -1001, message_thread_id: 7, text: " one " });
    clock.now += 5_000;
    await call("sendMessage", { chat_id: -1001, text: "two" });
    await call("editMessageText", { chat_id: -1001, message_id: 1, text: "one!" });
    await call("deleteMessage", { chat_id: -1001, message_id: 2 });
    expect(sim.sent).toEqual([
      {
        messageId: "1",
        chatId: "-1001",
        threadId: "7",
        text: "one",
        method: "sendMessage",
        at: NOW,
        body: { chat_id: -1001, message_thread_id: 7, text: " one " },
      },
      expect.objectContaining({ messageId: "2", text: "two", at: NOW + 5_000 }),
    ]);
    expect(sim.screen(-1001)).toEqual([
      { messageId: "1", from: "bot", text: "one!", threadId: "7", edited: true, reactions: [] },
    ]);
  });

  test("refuses what Telegram refuses", async () => {
    const { sim, call, clock, refusal } = setUp();
    const text = (more: object) => refusal("sendMessage", { chat_id: 5, text: "x", ...more });
    const entity = (more: object) =>
      text({ entities: [{ type: "bold", offset: 0, length: 1, ...more }] });
    expect(await text({ text: " " })).toMatch("message text is empty");
    expect(await text({ text: "x".repeat(4_097) })).toMatch("message is too long");
    expect(await text({ chat_id: "no such" })).toMatch("chat not found");
    expect(await text({ message_thread_id: 1 })).toMatch("message thread not found");
    expect(await text({ reply_parameters: { message_id: 99 } })).toMatch("replied not found");
    expect(await text({ parse_mode: "XML" })).toMatch("unsupported parse_mode");
    expect(await entity({ type: "shiny" })).toMatch("can't parse MessageEntity");
    expect(await entity({ length: 2 })).toMatch("ends after the end of the text");
    expect(await entity({ length: 0 })).toMatch("can't parse MessageEntity");
    expect(await entity({ type: "text_link", url: "ftp://x" })).toMatch("entity URL");
    expect(await text({ text: "😀", entities: [{ type: "bold", offset: 0, length: 1 }] })).toMatch(
      "cuts a character",
    );
    const keyboard = (button: object) => text({ reply_markup: { inline_keyboard: [[button]] } });
    expect(await keyboard({ text: "x", callback_data: "é".repeat(33) })).toMatch(
      "BUTTON_DATA_INVALID",
    );
    expect(await keyboard({ text: "x" })).toMatch("text buttons are unallowed");
    expect(await keyboard({ text: "x", url: "nope" })).toMatch("is invalid");
    expect(await refusal("sendPhoto", { chat_id: 5, photo: "unknown" })).toMatch("wrong file");
    expect(
      await refusal("sendPhoto", {
        chat_id: 5,
        photo: "https://x.org/a",
        caption: "x".repeat(1_025),
      }),
    ).toMatch("caption is too long");
    expect(await refusal("editMessageText", { chat_id: 5, message_id: 9, text: "x" })).toMatch(
      "message to edit not found",
    );
    expect(await refusal("answerCallbackQuery", { callback_query_id: "9" })).toMatch(
      "query is too old",
    );
    expect(await refusal("sendChatAction", { chat_id: 5, action: "dancing" })).toMatch("action");
    expect(sim.sent).toHaveLength(0);

    expect(await call("sendMessage", { chat_id: 5, text: "😀".repeat(4_096) })).toMatchObject({
      ok: true,
    });
    const same = { chat_id: 5, message_id: 1, text: "😀".repeat(4_096) };
    expect(await refusal("editMessageText", same)).toMatch("message is not modified");
    clock.now += 49 * 3_600_000;
    expect(await refusal("deleteMessage", same)).toMatch("can't be deleted");
    sim.block(5);
    expect(await text({})).toBe("Forbidden: bot was blocked by the user");
    sim.block(5, false);
    sim.migrate(5, -1_000_000_000_005);
    expect(await call("sendMessage", { chat_id: 5, text: "x" })).toMatchObject({
      parameters: { migrate_to_chat_id: -1_000_000_000_005 },
    });
  });

  test("gives updates to whoever asks, unless there is a webhook", async () => {
    const { sim, call } = setUp();
    for (const text of ["a", "b", "c"]) sim.enqueue(sim.messageUpdate({ chatId: 5, text }));
    const first = (await call("getUpdates", { limit: 2 })).result as { update_id: number }[];
    expect(first).toHaveLength(2);
    const offset = (first[1]?.update_id ?? 0) + 1;
    expect((await call("getUpdates", { offset })).result).toHaveLength(1);
    await call("setWebhook", { url: "https://bot.example/hook", secret_token: "s" });
    expect(await call("getUpdates")).toMatchObject({ error_code: 409 });
    expect(await call("getWebhookInfo")).toMatchObject({
      result: { url: "https://bot.example/hook", pending_update_count: 1 },
    });
    expect(sim.webhook.secret_token).toBe("s");
    await call("deleteWebhook", { drop_pending_updates: true });
    expect(await call("getUpdates")).toMatchObject({ result: [] });
  });
});

describe("getUpdates", () => {
  function feed() {
    const timers: { at: number; fn: () => void }[] = [];
    const sim = new SimTelegram({
      now: () => NOW,
      setTimer: (ms, fn) => {
        const timer = { at: ms, fn };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
      resolves: (host) => host !== "gone.example",
    });
    const call = async (method: string, params: object = {}, signal?: AbortSignal) => {
      const response = await sim.fetch(
        new Request(`https://api.telegram.org/bot${SIM_TOKEN}/${method}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(params),
          ...(signal === undefined ? {} : { signal }),
        }),
      );
      return (await response.json()) as { ok: boolean; result: { update_id: number }[] };
    };
    const message = (text: string) => sim.messageUpdate({ chatId: 5, text });
    /** Lets calls reach the point where they wait. */
    const waiting = async () => {
      while (timers.length === 0) await new Promise((resolve) => setImmediate(resolve));
    };
    return { sim, call, message, timers, waiting };
  }

  test("forgets what lies before the offset, and nothing else", async () => {
    const { sim, call, message } = feed();
    const [a, b, c] = ["a", "b", "c"].map(message);
    for (const update of [a, b, c]) if (update !== undefined) sim.enqueue(update);
    expect((await call("getUpdates")).result).toEqual([a, b, c]);
    expect(sim.confirmed).toEqual([]);
    expect((await call("getUpdates", { offset: b?.update_id })).result).toEqual([b, c]);
    expect(sim.confirmed).toEqual([a?.update_id]);
    expect((await call("getUpdates", { offset: -1 })).result).toEqual([c]);
    expect(sim.pending).toEqual([c]);
  });

  test("waits for news, and no longer than asked", async () => {
    const { sim, call, message, timers, waiting } = feed();
    const first = call("getUpdates", { timeout: 25 });
    await waiting();
    expect(timers.map((timer) => timer.at)).toEqual([25_000]);
    const update = message("news");
    sim.enqueue(update);
    expect((await first).result).toEqual([update]);
    const second = call("getUpdates", { offset: update.update_id + 1, timeout: 90 });
    await waiting();
    expect(timers[0]?.at).toBe(50_000);
    timers[0]?.fn();
    expect((await second).result).toEqual([]);
  });

  test("serves the newest of two callers, and refuses the other", async () => {
    const { sim, call, message, waiting } = feed();
    const first = call("getUpdates", { timeout: 25 });
    await waiting();
    const second = call("getUpdates", { timeout: 25 });
    expect(await first).toMatchObject({ error_code: 409 });
    await waiting();
    sim.enqueue(message("x"));
    expect((await second).result).toHaveLength(1);
  });

  test("a caller that hung up is not answered, and takes nothing along", async () => {
    const { sim, call, message, timers, waiting } = feed();
    const gone = new AbortController();
    const first = call("getUpdates", { timeout: 25 }, gone.signal);
    const ended = expect(first).rejects.toThrow();
    await waiting();
    gone.abort();
    await ended;
    expect(timers).toEqual([]);
    sim.enqueue(message("x"));
    expect((await call("getUpdates")).result).toHaveLength(1);
  });

  test("brings only the kinds that were asked for", async () => {
    const { sim, call } = feed();
    const reaction = { update_id: 1, message_reaction: {} };
    sim.enqueue(reaction);
    expect((await call("getUpdates", { allowed_updates: ["message_reaction"] })).result).toEqual(
      [],
    );
    sim.enqueue(reaction);
    sim.enqueue(sim.messageUpdate({ chatId: 5, text: "not asked for" }));
    // What is not said again stays.
    expect((await call("getUpdates")).result).toEqual([reaction]);
    await call("getUpdates", { offset: 2, allowed_updates: [] });
    sim.enqueue({ ...reaction, update_id: 3 });
    expect(sim.pending).toEqual([]);
  });

  test("ends when a webhook is set, which is pushed to with its secret until it takes", async () => {
    const { sim, call, message, waiting } = feed();
    const polling = call("getUpdates", { timeout: 25 });
    await waiting();
    expect(await call("setWebhook", { url: "http://bot.example/" })).toMatchObject({ ok: false });
    expect(await call("setWebhook", { url: "https://gone.example/" })).toMatchObject({ ok: false });
    const bad = { url: "https://bot.example/", secret_token: "no spaces" };
    expect(await call("setWebhook", bad)).toMatchObject({ ok: false });
    await call("setWebhook", { url: "https://bot.example/hook", secret_token: "s" });
    expect(await polling).toMatchObject({ error_code: 409 });
    const update = message("x");
    sim.enqueue(update);
    const answers = [401, 200];
    const seen: (string | null)[] = [];
    const hook = async (request: Request) => {
      seen.push(request.headers.get("x-telegram-bot-api-secret-token"));
      return new Response(null, { status: answers.shift() ?? 500 });
    };
    await sim.push({ fetch: hook, attempts: 1 });
    expect(sim.pending).toEqual([update]);
    expect(await call("getWebhookInfo")).toMatchObject({
      result: {
        last_error_message: "Wrong response from the webhook: 401",
        pending_update_count: 1,
      },
    });
    await sim.push({ fetch: hook, attempts: 1 });
    expect(seen).toEqual(["s", "s"]);
    expect(sim.confirmed).toEqual([update.update_id]);
  });
});

describe("updates", () => {
  test("count up and know each other", () => {
    const { sim } = setUp();
    const asked = sim.messageUpdate({
      chatId: 5,
      text: "/start@sim_bot now",
      from: { id: 5, username: "ann" },
    });
    expect(asked).toMatchObject({
      update_id: 100_001,
      message: {
        message_id: 1,
        date: NOW / 1_000,
        chat: { id: 5, type: "private" },
        from: { id: 5, username: "ann" },
        entities: [{ type: "bot_command", offset: 0, length: 14 }],
      },
    });
    const edited = sim.editedUpdate({ chatId: 5, messageId: 1, text: "stop" });
    expect(edited).toMatchObject({
      update_id: 100_002,
      edited_message: { message_id: 1, text: "stop", edit_date: NOW / 1_000, from: { id: 5 } },
    });
    expect(sim.callbackUpdate({ chatId: 5, messageId: 1, data: "d", updateId: 7 })).toMatchObject({
      update_id: 7,
      callback_query: { id: "press-1", data: "d", message: { message_id: 1, text: "stop" } },
    });
    const group = sim.messageUpdate({ chatId: -1001234567890, threadId: 3, text: "x" });
    expect(group).toMatchObject({
      message: { is_topic_message: true, chat: { type: "supergroup" }, from: { id: 1001 } },
    });
  });

  test("are delivered again as Telegram does", async () => {
    const { sim, clock } = setUp();
    const answers = [
      () => new Response(null, { status: 500 }),
      () => Promise.reject(new Error("reset")),
      () => new Response(null, { status: 503, headers: { "retry-after": "7" } }),
      () => new Response(null, { status: 200 }),
    ];
    const seen: string[] = [];
    const delivery = await sim.deliver(
      "https://bot.example/hook",
      "secret",
      sim.messageUpdate({ chatId: 5, text: "x" }),
      {
        fetch: async (request) => {
          seen.push(request.headers.get("x-telegram-bot-api-secret-token") ?? "");
          return (await answers.shift()?.()) ?? new Response(null, { status: 500 });
        },
        wait: async (ms) => {
          clock.now += ms;
        },
      },
    );
    expect(delivery.delivered).toBe(true);
    expect(delivery.tries.map((one) => [one.status, one.waitMs])).toEqual([
      [500, 0],
      [undefined, 0],
      [503, 2_000],
      [200, 7_000],
    ]);
    expect(seen).toEqual(["secret", "secret", "secret", "secret"]);
  });

  test("expire", async () => {
    const { sim, clock } = setUp();
    const delivery = await sim.deliver(
      "https://bot.example/hook",
      undefined,
      sim.callbackUpdate({ chatId: 5, messageId: 1, data: "x" }),
      {
        attempts: 100,
        fetch: async () => new Response(null, { status: 500 }),
        wait: async (ms) => {
          clock.now += ms;
        },
      },
    );
    expect(delivery.delivered).toBe(false);
    expect(delivery.tries.length).toBeLessThan(12);
    expect(clock.now - NOW).toBeLessThanOrEqual(150_000);
  });
});

describe("faults", () => {
  test("hit what they are meant for, as often as they are meant to", async () => {
    const { sim, call } = setUp();
    sim.fault({ type: "rateLimit", retryAfter: 3, method: "sendMessage", times: 2 });
    const end = sim.fault(({ params }) =>
      params.text === "bad"
        ? { type: "refuse", status: 400, description: "Bad Request: no" }
        : undefined,
    );
    expect(await call("getMe")).toMatchObject({ ok: true });
    const text = (value: string) => call("sendMessage", { chat_id: 5, text: value });
    expect(await text("a")).toMatchObject({ error_code: 429, parameters: { retry_after: 3 } });
    expect(await text("a")).toMatchObject({ error_code: 429 });
    expect(await text("a")).toMatchObject({ ok: true });
    expect(await text("bad")).toMatchObject({ description: "Bad Request: no" });
    end();
    expect(await text("bad")).toMatchObject({ ok: true });
    sim.fault({ type: "drop" });
    sim.clearFaults();
    expect(await text("c")).toMatchObject({ ok: true });
  });

  const MARKS: [FaultEffect, number][] = [
    [{ type: "5xx" }, 0],
    [{ type: "5xx", accepted: true }, 1],
    [{ type: "drop" }, 0],
    [{ type: "acceptThenDrop" }, 1],
    [{ type: "torn" }, 1],
  ];
  test.each(MARKS)("%j leaves %i in the ledger", async (fault, accepted) => {
    const { sim, call } = setUp();
    sim.fault(fault);
    await call("sendMessage", { chat_id: 5, text: "x" }).then(
      (answer) => expect(answer.ok).toBe(false),
      (error: unknown) =>
        expect(error instanceof ConnectionDropped || error instanceof SyntaxError).toBe(true),
    );
    expect(sim.sent).toHaveLength(accepted);
  });
});

describe("listen", () => {
  async function served(
    run: (setup: ReturnType<typeof setUp> & { server: Listening }) => Promise<void>,
  ) {
    let handler = (_: Request): Promise<Response> => Promise.reject(new Error("not ready"));
    const server = await listen((request) => handler(request));
    const setup = setUp(server.url, fetch);
    handler = setup.sim.fetch;
    try {
      await run({ ...setup, server });
    } finally {
      await server.close();
    }
  }

  test("is the same over a socket", () =>
    served(async ({ sim, call, server }) => {
      expect(await call("sendMessage", { chat_id: 5, text: "x" })).toMatchObject({ ok: true });
      expect(sim.sent).toHaveLength(1);
      const file = sim.addFile(new Uint8Array([1, 2, 3]));
      const path = `${server.url}/file/bot${SIM_TOKEN}/${file.path}`;
      expect(new Uint8Array(await (await fetch(path)).arrayBuffer())).toEqual(file.bytes);
      expect((await fetch(`${server.url}/elsewhere`)).status).toBe(404);
    }));

  test("destroys the socket where the platform drops it", () =>
    served(async ({ sim, call }) => {
      sim.fault({ type: "drop" });
      await expect(call("sendMessage", { chat_id: 5, text: "x" })).rejects.toThrow("fetch failed");
      expect(sim.sent).toHaveLength(0);
      sim.fault({ type: "acceptThenDrop" });
      await expect(call("sendMessage", { chat_id: 5, text: "x" })).rejects.toThrow("fetch failed");
      expect(sim.sent).toHaveLength(1);
    }));

  test("breaks off in the middle of a torn answer", () =>
    served(async ({ sim, server }) => {
      sim.fault({ type: "torn" });
      const response = await fetch(`${server.url}/bot${SIM_TOKEN}/sendMessage?chat_id=5&text=x`);
      expect(response.status).toBe(200);
      await expect(response.text()).rejects.toThrow();
      expect(sim.sent).toHaveLength(1);
    }));

  test("hangs until the caller gives up, and closes all the same", () =>
    served(async ({ sim, server }) => {
      sim.fault({ type: "hang" });
      const controller = new AbortController();
      const reached = new Promise<void>((resolve) => {
        sim.fault(() => {
          resolve();
          return { type: "hang", accepted: true };
        });
      });
      const url = `${server.url}/bot${SIM_TOKEN}/sendMessage?chat_id=5&text=x`;
      const first = fetch(url, { signal: controller.signal });
      const second = fetch(url).catch((error: unknown) => error);
      await reached;
      controller.abort();
      await expect(first).rejects.toThrow();
      await server.close();
      expect(await second).toBeInstanceOf(TypeError);
      expect(sim.sent).toHaveLength(1);
    }));

  test("shows a handler's own error", async () => {
    const server = await listen(() => {
      throw new Error("a bug in the test");
    });
    const response = await fetch(server.url);
    expect(response.status).toBe(500);
    expect(await response.text()).toContain("a bug in the test");
    await server.close();
  });
});
