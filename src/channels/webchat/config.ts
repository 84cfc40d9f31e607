/**
 * Options of the web chat. There is nothing secret in it, so it is always configured.
 *
 * @module
 */
import { ConfigError } from "../errors.ts";

/** Options of {@link webchat}. */
export interface WebChatOptions {
  /** The connection's id. Default `"webchat"`. */
  connection?: string | undefined;
  /** The page's heading. Default `"Chat"`. */
  title?: string | undefined;
  /** Other origins whose pages may open the socket, such as `https://www.example.com`. Default none. */
  allowedOrigins?: readonly string[] | undefined;
  /**
   * Who is asking, where the site knows its users: the id becomes the chat's, and all devices of a user
   * share it. `null` refuses the visitor. Default: each browser is a session of its own.
   */
  identify?: Identify | undefined;
}

/** Reads a visitor's identity out of a request. */
export type Identify = (request: Request, env: unknown) => string | null | Promise<string | null>;

/** Options as the channel and the edge use them. */
export interface WebChatConfig {
  readonly title: string;
  readonly allowedOrigins: readonly string[];
  readonly identify?: Identify;
}

/** @throws {ConfigError} for an origin that is none */
export function configOf(options: WebChatOptions): WebChatConfig {
  const allowedOrigins = (options.allowedOrigins ?? []).map((origin) => {
    // "null" is what a sandboxed frame of any site sends, so it must never be on the list.
    if (!URL.canParse(origin) || new URL(origin).origin === "null") {
      throw new ConfigError(
        `webchat(): allowedOrigins has ${JSON.stringify(origin)}; it must be like https://www.example.com`,
      );
    }
    return new URL(origin).origin;
  });
  const config = { title: options.title ?? "Chat", allowedOrigins };
  return options.identify === undefined ? config : { ...config, identify: options.identify };
}
