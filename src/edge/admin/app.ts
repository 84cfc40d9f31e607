/**
 * The admin API, `/admin/*`: off where `HOLDFAST_ADMIN_TOKEN` is not set, else for its bearer only. It
 * keeps no state; everything goes through the client.
 *
 * @module
 */
import { Hono } from "hono/tiny";
import { sameSecret } from "../../safety/compare.ts";
import { errorText } from "../../safety/redact.ts";
import { chatRoutes } from "./chats.ts";
import { connectionRoutes } from "./connections.ts";
import { metricRoutes } from "./metrics.ts";
import { type AdminEnv, AdminError, type AdminParts, answerOf, toolsOf } from "./parts.ts";
import { recordRoutes } from "./records.ts";

/** Makes the app, to be mounted at `/admin`. */
export function adminApp(parts: AdminParts): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();

  app.use("*", async (c, next) => {
    const token = c.env.HOLDFAST_ADMIN_TOKEN;
    // As if there were no such path: an API that is off shows nothing, not even that it is there.
    if (typeof token !== "string" || token.trim() === "") return c.text("not found\n", 404);
    c.header("cache-control", "no-store");
    c.header("x-content-type-options", "nosniff");
    const given = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
    if (!sameSecret(given ?? "", token.trim())) {
      c.header("www-authenticate", "Bearer");
      throw new AdminError(401, "unauthorized", "unauthorized");
    }
    c.set("tools", toolsOf(parts, c.env));
    return next();
  });

  recordRoutes(app);
  chatRoutes(app);
  metricRoutes(app);
  connectionRoutes(app);

  app.all("*", () => {
    throw new AdminError(404, "not_found", "there is no such route");
  });

  app.onError((error, c) => {
    const answer = answerOf(error);
    if (answer.status >= 500) {
      parts.log(c.env).error("an admin request failed", {
        path: new URL(c.req.url).pathname,
        error: errorText(error, c.env),
      });
    }
    return c.json({ error: { code: answer.code, message: answer.message } }, answer.status);
  });
  return app;
}
