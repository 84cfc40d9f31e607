/**
 * The web chat's part of the edge: the page, its script and style, and the door to the session's room.
 * Who somebody is, is decided here and nowhere else.
 *
 * @module
 */
import type { Context } from "hono";
import { Hono } from "hono/tiny";
import type { WebChatConfig } from "../../channels/webchat/config.ts";
import { clientScript } from "./client.ts";
import { chatPage } from "./page.ts";
import {
  isSessionId,
  newSecret,
  readCookie,
  sessionCookie,
  sessionOfSecret,
  tagOf,
} from "./session.ts";
import { stylesheet } from "./style.ts";

/** What the routes need of the worker. Made per request where it depends on the environment. */
export interface WebChatDeps {
  /** The channel's options: `channel.configure(env).options`. */
  config: WebChatConfig;
  /** Passed on to `identify`. */
  env?: unknown;
  /** Whether this is a developer's own machine: shows the crash panel and opens its route. */
  local: boolean;
  /** The session's `WebChat` object: the stub of `scope/encodePart(sessionId)`. */
  room(sessionId: string): { fetch(request: Request): Promise<Response> };
  /**
   * Local mode: arms a crash. The next time that the bot's side of this session has sent a message and
   * not yet recorded so, it dies. Resolves once armed.
   */
  crash?(sessionId: string): Promise<unknown>;
}

/** What a route is called with; only `env` is used. */
type Env = { Bindings: Record<string, unknown> };
type Ctx = Context<Env>;

/**
 * The routes `/chat`, `/chat/client.js`, `/chat/style.css`, `/chat/ws`, `/chat/health` and, in local
 * mode, `/chat/crash`. Mount them with `app.route("/", webchatRoutes(deps))`; under another path they
 * work as well.
 *
 * @param deps what the worker gives, or how to make it of a request's environment
 */
export function webchatRoutes(deps: WebChatDeps | ((env: unknown) => WebChatDeps)): Hono<Env> {
  const depsOf = (c: Ctx) => (typeof deps === "function" ? deps(c.env) : deps);
  const app = new Hono<Env>();

  app.get("/chat", async (c) => {
    const { config, env, local } = depsOf(c);
    const url = new URL(c.req.url);
    const base = url.pathname.replace(/\/+$/, "");
    let session: string | null;
    if (config.identify === undefined) {
      const secret = readCookie(c.req.raw.headers) ?? newSecret();
      // Set again each time, so that the year counts from the last visit.
      c.header(
        "set-cookie",
        sessionCookie(secret, { path: base, secure: url.protocol === "https:" }),
      );
      session = await sessionOfSecret(secret);
    } else {
      session = await identified(config, c.req.raw, env);
    }
    pageHeaders(c, config);
    if (session === null) return c.text("Sign in to use this chat.", 401);
    const tag = await tagOf(session);
    return c.html(chatPage({ title: config.title, base, tag, local }));
  });

  app.get("/chat/client.js", (c) => asset(c, clientScript, "text/javascript; charset=utf-8"));
  app.get("/chat/style.css", (c) => asset(c, stylesheet, "text/css; charset=utf-8"));

  app.get("/chat/ws", async (c) => {
    const { config, env, room } = depsOf(c);
    if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
      return c.text("this is a WebSocket", 426, { upgrade: "websocket" });
    }
    // Browsers send cookies along to any site's socket and let it be read; only the origin tells.
    if (!isAllowedOrigin(c.req.raw, config.allowedOrigins)) return c.text("forbidden", 403);
    const session = await sessionOf(config, c.req.raw, env);
    if (session === null) return c.text("no session", 401);
    return room(session).fetch(c.req.raw);
  });

  app.get("/chat/health", async (c) => {
    const { config, env } = depsOf(c);
    c.header("cache-control", "no-store");
    // A refused socket tells a page nothing, so it asks here whether its session is the reason.
    return c.json({ ok: true, session: (await sessionOf(config, c.req.raw, env)) !== null });
  });

  app.post("/chat/crash", async (c) => {
    const { config, env, local, crash } = depsOf(c);
    if (!local || crash === undefined) return c.notFound();
    if (!isAllowedOrigin(c.req.raw, [])) return c.text("forbidden", 403);
    const session = await sessionOf(config, c.req.raw, env);
    if (session === null) return c.text("no session", 401);
    await crash(session);
    return c.json({ ok: true });
  });

  return app;
}

/** The session of a request; `null` where it has none. */
async function sessionOf(
  config: WebChatConfig,
  request: Request,
  env: unknown,
): Promise<string | null> {
  if (config.identify !== undefined) return identified(config, request, env);
  const secret = readCookie(request.headers);
  return secret === undefined ? null : sessionOfSecret(secret);
}

async function identified(
  config: WebChatConfig,
  request: Request,
  env: unknown,
): Promise<string | null> {
  const id = (await config.identify?.(request, env)) ?? null;
  return id !== null && isSessionId(id) ? id : null;
}

/** Same host, or on the list. Without an origin it is no browser, or not one that tells. */
function isAllowedOrigin(request: Request, allowed: readonly string[]): boolean {
  const origin = request.headers.get("origin");
  if (origin === null || !URL.canParse(origin)) return false;
  // Hosts only: behind a proxy that ends TLS the scheme of the request is not the page's.
  return new URL(origin).host === new URL(request.url).host || allowed.includes(origin);
}

function pageHeaders(c: Ctx, config: WebChatConfig): void {
  const embedders = ["'self'", ...config.allowedOrigins].join(" ");
  c.header(
    "content-security-policy",
    [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "img-src https: data:",
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors ${embedders}`,
    ].join("; "),
  );
  c.header("cache-control", "no-store");
  c.header("referrer-policy", "no-referrer");
  c.header("x-content-type-options", "nosniff");
}

function asset(c: Ctx, body: string, type: string): Response {
  const etag = `"${fingerprint(body)}"`;
  // Asked for each time and mostly answered with 304, so that page and script are of one version.
  c.header("cache-control", "no-cache");
  c.header("etag", etag);
  c.header("content-type", type);
  c.header("x-content-type-options", "nosniff");
  if (c.req.header("if-none-match") === etag) return c.body(null, 304);
  return c.body(body);
}

/** FNV-1a, to tell versions of an asset apart. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return `${text.length.toString(36)}-${hash.toString(36)}`;
}
