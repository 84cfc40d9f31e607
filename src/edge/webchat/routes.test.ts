import { describe, expect, test } from "vitest";
import type { WebChatOptions } from "../../channels/webchat/config.ts";
import { webchat } from "../../channels/webchat/index.ts";
import { escapeHtml, html } from "./html.ts";
import { chatPage } from "./page.ts";
import { type WebChatDeps, webchatRoutes } from "./routes.ts";
import { isSessionId, sessionOfSecret } from "./session.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const COOKIE = `hf_session=${SECRET}`;

function app(options: WebChatOptions = {}, more: Partial<WebChatDeps> = {}) {
  const rooms: string[] = [];
  const crashes: string[] = [];
  const configured = webchat(options).configure({});
  if (!configured.ok) throw new Error("not configured");
  const routes = webchatRoutes(() => ({
    config: configured.options,
    local: true,
    room: (session) => ({
      async fetch() {
        rooms.push(session);
        return new Response("room");
      },
    }),
    async crash(session) {
      crashes.push(session);
    },
    ...more,
  }));
  const call = (path: string, init: RequestInit = {}) =>
    routes.request(`https://chat.example.com${path}`, init);
  return { call, rooms, crashes };
}

const upgrade = (headers: Record<string, string> = {}) => ({
  headers: { upgrade: "websocket", cookie: COOKIE, origin: "https://chat.example.com", ...headers },
});

describe("the page", () => {
  const options = { title: "Chat", base: "/chat", tag: "t", local: false };

  test("escapes whatever it is given", () => {
    const evil = `"><script>alert('x')</script>&`;
    const page = chatPage({ title: evil, base: evil, tag: evil, local: true });
    expect(page).not.toContain("<script>");
    expect(page).not.toContain(`"">`);
    expect(page).toContain("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;");
  });

  test("has no inline script or style", () => {
    const page = chatPage({ ...options, local: true });
    expect(page).not.toMatch(/<style|\sstyle=|\son[a-z]+=/i);
    expect(page.match(/<script[^>]*>/g)).toEqual([`<script src="/chat/client.js" defer>`]);
  });

  test("shows the crash panel in local mode only", () => {
    expect(chatPage(options)).not.toContain("Kill the bot");
    expect(chatPage({ ...options, local: true })).toContain("Kill the bot");
  });

  test("labels what it has", () => {
    const page = chatPage(options);
    expect(page).toContain(`<label class="hidden" for="text">`);
    expect(page).toContain(`role="log"`);
    expect(page).toContain(`<html lang="en">`);
  });

  test("the template escapes text and keeps HTML", () => {
    expect(String(html`<p>${"<b>"}${html`<i>${"&"}</i>`}${false}</p>`)).toBe(
      "<p>&lt;b&gt;<i>&amp;</i></p>",
    );
    expect(escapeHtml(`&<>"'`)).toBe("&amp;&lt;&gt;&quot;&#39;");
  });
});

describe("GET /chat", () => {
  test("gives a session of 128 random bits, which no script can read", async () => {
    const { call } = app();
    const first = await call("/chat");
    const cookie = first.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(
      /^hf_session=[0-9a-f]{32}; Path=\/chat; Max-Age=31536000; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect((await call("/chat")).headers.get("set-cookie")).not.toBe(cookie);
  });

  test("keeps a session that there is, and its id is not its secret", async () => {
    const { call } = app();
    const page = await call("/chat", { headers: { cookie: `a=b; ${COOKIE}; c=d` } });
    expect(page.headers.get("set-cookie")).toContain(COOKIE);
    expect(await page.text()).not.toContain(SECRET);
    expect(await sessionOfSecret(SECRET)).toMatch(/^[0-9a-f]{32}$/);
    expect(await sessionOfSecret(SECRET)).not.toBe(SECRET);
  });

  test.each(["hf_session=short", "hf_session=../../admin", `xhf_session=${SECRET}`, `${COOKIE}0`])(
    "%s is no session of ours",
    async (cookie) => {
      const page = await app().call("/chat", { headers: { cookie } });
      expect(page.headers.get("set-cookie")).not.toContain(SECRET);
    },
  );

  test("allows nothing inline", async () => {
    const page = await app({ allowedOrigins: ["https://www.example.com"] }).call("/chat");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("frame-ancestors 'self' https://www.example.com");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(page.headers.get("content-type")).toContain("text/html");
  });

  test("with identify, sets no cookie, and refuses whom it does not know", async () => {
    const known = await app({ identify: () => "ann" }).call("/chat");
    expect(known.status).toBe(200);
    expect(known.headers.get("set-cookie")).toBeNull();
    expect((await app({ identify: () => null }).call("/chat")).status).toBe(401);
    expect((await app({ identify: async () => "" }).call("/chat")).status).toBe(401);
  });

  test("works under another path", async () => {
    const { Hono } = await import("hono");
    const configured = webchat().configure({});
    if (!configured.ok) throw new Error("not configured");
    const config = configured.options;
    const room = () => ({ fetch: async () => new Response("room") });
    const outer = new Hono().route("/help", webchatRoutes({ config, local: false, room }));
    const page = await outer.request("http://localhost/help/chat");
    expect(page.headers.get("set-cookie")).toMatch(/Path=\/help\/chat;.*SameSite=Lax$/);
    expect(await page.text()).toContain(`src="/help/chat/client.js"`);
  });
});

describe("assets", () => {
  test.each([
    ["/chat/client.js", "text/javascript"],
    ["/chat/style.css", "text/css"],
  ])("%s has its type, and is not sent twice", async (path, type) => {
    const { call } = app();
    const first = await call(path);
    expect(first.headers.get("content-type")).toContain(type);
    expect(first.headers.get("x-content-type-options")).toBe("nosniff");
    const etag = first.headers.get("etag") ?? "";
    const again = await call(path, { headers: { "if-none-match": etag } });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe("");
  });
});

describe("GET /chat/ws", () => {
  test("leads to the room of the session", async () => {
    const { call, rooms } = app();
    expect(await (await call("/chat/ws", upgrade())).text()).toBe("room");
    expect(rooms).toEqual([await sessionOfSecret(SECRET)]);
  });

  test("or of the user", async () => {
    const seen: unknown[] = [];
    const identify = (request: Request, env: unknown) => {
      seen.push(env);
      return request.headers.get("x-user");
    };
    const { call, rooms } = app({ identify }, { env: { A: 1 } });
    await call("/chat/ws", upgrade({ "x-user": "ann" }));
    expect(rooms).toEqual(["ann"]);
    expect(seen).toEqual([{ A: 1 }]);
    // The cookie is worth nothing where users are known.
    expect((await call("/chat/ws", upgrade())).status).toBe(401);
  });

  test.each([
    ["another site", "https://evil.example"],
    ["a sandboxed frame", "null"],
    ["a longer name", "https://chat.example.com.evil.example"],
    ["another port", "https://chat.example.com:8443"],
  ])("refuses %s", async (_name, origin) => {
    const { call, rooms } = app({ allowedOrigins: ["https://www.example.com"] });
    expect((await call("/chat/ws", upgrade({ origin }))).status).toBe(403);
    expect(rooms).toEqual([]);
  });

  test("refuses a request without origin", async () => {
    const { call } = app();
    const headers = { upgrade: "websocket", cookie: COOKIE };
    expect((await call("/chat/ws", { headers })).status).toBe(403);
  });

  test("takes an origin from the list", async () => {
    const { call } = app({ allowedOrigins: ["https://www.example.com"] });
    const answer = await call("/chat/ws", upgrade({ origin: "https://www.example.com" }));
    expect(answer.status).toBe(200);
  });

  test("needs a session, and an upgrade", async () => {
    const { call } = app();
    expect((await call("/chat/ws", upgrade({ cookie: "" }))).status).toBe(401);
    expect((await call("/chat/ws")).status).toBe(426);
  });
});

describe("GET /chat/health", () => {
  test("tells a page whether it has a session", async () => {
    const { call } = app();
    expect(await (await call("/chat/health")).json()).toEqual({ ok: true, session: false });
    const known = await call("/chat/health", { headers: { cookie: COOKIE } });
    expect(await known.json()).toEqual({ ok: true, session: true });
  });
});

describe("POST /chat/crash", () => {
  const post = (headers: Record<string, string>) => ({ method: "POST", headers });

  test("arms the crash of the session", async () => {
    const { call, crashes } = app();
    const headers = { cookie: COOKIE, origin: "https://chat.example.com" };
    expect((await call("/chat/crash", post(headers))).status).toBe(200);
    expect(crashes).toEqual([await sessionOfSecret(SECRET)]);
  });

  test("is not there outside local mode", async () => {
    const { call, crashes } = app({}, { local: false });
    const headers = { cookie: COOKIE, origin: "https://chat.example.com" };
    expect((await call("/chat/crash", post(headers))).status).toBe(404);
    expect(crashes).toEqual([]);
  });

  test("is for the page's own host alone", async () => {
    const { call, crashes } = app({ allowedOrigins: ["https://www.example.com"] });
    for (const origin of ["https://www.example.com", "https://evil.example"]) {
      expect((await call("/chat/crash", post({ cookie: COOKIE, origin }))).status).toBe(403);
    }
    expect((await call("/chat/crash", post({ cookie: COOKIE }))).status).toBe(403);
    expect(crashes).toEqual([]);
  });
});

test("ids that can name a session", () => {
  expect(isSessionId("ann@example.com")).toBe(true);
  expect(isSessionId("ü".repeat(85))).toBe(true);
  expect(isSessionId("ü".repeat(86))).toBe(false);
  expect(isSessionId("\ud800")).toBe(false);
  expect(isSessionId("")).toBe(false);
});
