/**
 * The Durable Object of a web chat session: a thin shell around `WebChatRoom`. Its sockets hibernate, so
 * that an open page costs nothing while nobody says anything; all that a socket has to remember is in
 * its attachment, and all that the session has to remember is in storage.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { ConfigError } from "../channels/errors.ts";
import type { ServedChannel, ServedRoom, SocketGate } from "../channels/served.ts";
import type { SocketReply } from "../channels/webchat/WebChatRoom.ts";
import type { Host } from "../host/Host.ts";

/** Sockets of one session: tabs and devices. The oldest makes way for the newest. */
const MAX_SOCKETS = 20;

/**
 * Makes the class that the worker exports as `WebChat`.
 *
 * @param makeHost the machine under one incarnation
 * @param served the channel's part of it; absent when the bot has no web chat
 */
export function defineWebChat(
  makeHost: (ctx: DurableObjectState, env: unknown) => Host,
  served: ServedChannel | undefined,
) {
  return class WebChat extends DurableObject<unknown> {
    readonly #host: Host;
    readonly #room: ServedRoom;
    readonly #gate: SocketGate;

    constructor(ctx: DurableObjectState, env: unknown) {
      super(ctx, env);
      this.#host = makeHost(ctx, env);
      if (served === undefined) {
        throw new ConfigError(
          "the bot has no webchat() in `channels`, so it has no web chat sessions",
        );
      }
      this.#gate = served.gate;
      this.#room = served.makeRoom(this.#host, ctx.id.name ?? "", {
        send: (text) => this.#broadcast(text),
        count: () => ctx.getWebSockets().length,
      });
      // Answered by the runtime: a page can tell a dead connection from a quiet one without waking us.
      ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
    }

    /** What the bot calls: `deliver`, `edit`, `remove`, `typing`, `draft`. JSON both ways. */
    call(method: string, payload: string): Promise<string> {
      return this.#room.call(method, payload);
    }

    /** Opens a socket. Who may is decided at the edge. */
    override fetch(request: Request): Response {
      if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
        return new Response("this is a WebSocket", {
          status: 426,
          headers: { upgrade: "websocket" },
        });
      }
      this.#makeRoom();
      const { 0: client, 1: server } = new WebSocketPair();
      this.ctx.acceptWebSocket(server);
      server.serializeAttachment(this.#gate.open(this.#host.clock.now()));
      return new Response(null, { status: 101, webSocket: client });
    }

    /** A frame came. */
    override async webSocketMessage(socket: WebSocket, frame: string | ArrayBuffer): Promise<void> {
      const now = this.#host.clock.now();
      const admission = this.#gate.admit(this.#stateOf(socket, now), frame, now);
      if (!admission.ok) {
        socket.close(admission.close.code, admission.close.reason);
        return;
      }
      socket.serializeAttachment(admission.state);
      if (typeof frame === "string") await this.#room.message(frame, this.#replyTo(socket, now));
    }

    /**
     * A page left; what it has not got stays in the log. Its close has to be answered here: workerd
     * 1.20261102 does not do so by itself for sockets that hibernate, and the browser then waits 10 s
     * (measured, at compatibility date 2026-10-20).
     */
    override webSocketClose(socket: WebSocket, code: number): void {
      try {
        // The reserved codes stand for closes without a code and cannot be sent.
        socket.close(code === 1005 || code === 1006 || code === 1015 ? 1000 : code);
      } catch {
        // It is closed already.
      }
    }

    /** A connection broke. The page comes back by itself. */
    override webSocketError(_socket: WebSocket, error: unknown): void {
      this.#host.log.debug("a socket of a web chat broke", { error: String(error) });
    }

    /** Wakes for messages that the bot did not take, and for what is too old. */
    override alarm(): Promise<void> {
      return this.#room.alarm();
    }

    #makeRoom(): void {
      const sockets = this.ctx.getWebSockets();
      if (sockets.length < MAX_SOCKETS) return;
      const now = this.#host.clock.now();
      const since = (socket: WebSocket) => this.#stateOf(socket, now).since;
      const oldest = sockets.reduce((a, b) => (since(b) < since(a) ? b : a));
      oldest.close(4409, "the chat is open in too many tabs");
    }

    #stateOf(socket: WebSocket, now: number) {
      return this.#gate.read(socket.deserializeAttachment(), now);
    }

    #replyTo(socket: WebSocket, now: number): SocketReply {
      return {
        send: (text) => trySend(socket, text),
        greet: () => {
          socket.serializeAttachment({ ...this.#stateOf(socket, now), greeted: true });
        },
      };
    }

    #broadcast(text: string): void {
      const now = this.#host.clock.now();
      for (const socket of this.ctx.getWebSockets()) {
        if (this.#stateOf(socket, now).greeted) trySend(socket, text);
      }
    }
  };
}

/** A socket that closes at this moment throws; its page asks again when it is back. */
function trySend(socket: WebSocket, text: string): void {
  try {
    socket.send(text);
  } catch {
    // Nothing to do.
  }
}
