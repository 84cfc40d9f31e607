/** What `npm start` tells people: pure functions from facts to lines. @module */
import { relative } from "node:path";
import type { OutputEvent } from "./output.ts";
import { paint } from "./terminal.ts";

/** One connection, as `/health` shows it. */
export interface Connection {
  connection: string;
  channel: string;
  ready: boolean;
  missing?: readonly string[];
}

/** What `/health` answers. */
export interface Health {
  bot: string;
  connections: readonly Connection[];
}

/** Where things are. */
export interface Places {
  root: string;
  /** Storage. */
  state: string;
  /** The file of local secrets. */
  secrets: string;
}

/** Reads an answer of `/health`; `undefined` when it is something else. */
export function readHealth(body: unknown): Health | undefined {
  const { bot, connections } = (body ?? {}) as Partial<Health>;
  return typeof bot === "string" && Array.isArray(connections) ? { bot, connections } : undefined;
}

/** The lines about connections: the page, and each webhook with what it lacks. */
export function connectionLines(health: Health, url: string): string[] {
  const lines: string[] = [];
  if (health.connections.some((one) => one.channel === "webchat")) {
    lines.push(row("Chat page", paint("cyan", `${url}/chat`)));
  } else {
    lines.push(row("Chat page", "none: add webchat() to `channels` in src/bot.ts"));
  }
  for (const [index, one] of health.connections.filter(hasWebhook).entries()) {
    const path = `/webhooks/${one.channel}${one.connection === one.channel ? "" : `/${one.connection}`}`;
    const state = one.ready
      ? paint("green", "configured")
      : `${paint("yellow", "not configured")}: set ${(one.missing ?? []).join(", ")} in .dev.vars`;
    lines.push(row(index === 0 ? "Webhooks" : "", `${path}   ${state}`));
  }
  return lines;
}

/** Everything that somebody wants to know once the bot runs. */
export function banner(health: Health, url: string, places: Places, pid: number): string[] {
  const state = relative(places.root, places.state) || ".";
  return [
    "",
    paint("bold", `Bot "${health.bot}" is running on ${url}`),
    "",
    ...connectionLines(health, url),
    row("Health", `${url}/health`),
    row("State", `${state}  (stays between runs; \`npm run reset\` clears it)`),
    row("Secrets", `${relative(places.root, places.secrets)}  (made for this machine)`),
    row("Edit", "src/bot.ts  (a saved change is live at once)"),
    row("Stop", "Ctrl-C"),
    row("Try it", `kill -9 ${pid} at any moment, then \`npm start\` again: nothing is lost`),
    "",
  ];
}

/** An event as a line; `undefined` for what nobody needs to see. */
export function eventLine(event: OutputEvent): string | undefined {
  switch (event.type) {
    case "log":
      return `${levelTag(event.level)} ${event.message}${fieldsText(event.fields)}`;
    case "console":
      return event.level === "info" ? event.text : `${levelTag(event.level)} ${event.text}`;
    case "request": {
      const { method, path, status, ms } = event;
      const failed = status >= 500;
      // Pages and polls are many; what a platform asks, and what went wrong, is worth a line.
      if (!failed && !path.startsWith("/webhooks/")) return undefined;
      const line = `${method} ${path} ${status} (${ms} ms)`;
      return failed ? paint("yellow", line) : paint("dim", line);
    }
    case "reloading":
      return undefined;
    case "reloaded":
      return paint("green", "Reloaded.");
    case "crashed":
      return undefined;
    case "problem":
      return [
        paint("red", problemTitle(event.of)),
        indent(event.text),
        ...(event.of === "build" ? [paint("yellow", "Requests wait until it builds again.")] : []),
      ].join("\n");
  }
}

/** What a problem is, in words. */
export function problemTitle(of: Extract<OutputEvent, { type: "problem" }>["of"]): string {
  switch (of) {
    case "build":
      return "The bot does not build:";
    case "script":
      return "The bot threw while it was loaded:";
    case "port":
      return "The port is taken:";
  }
}

/** Indents every line. */
export function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}

function hasWebhook(one: Connection): boolean {
  return one.channel !== "webchat";
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(11)}${text}`;
}

function levelTag(level: string): string {
  const style = level === "error" ? "red" : level === "warn" ? "yellow" : "dim";
  return paint(style, level.padEnd(5));
}

/** Fields of a log line: the chat first, the error last. */
function fieldsText({ bot: _bot, actor, error, ...rest }: Record<string, unknown>): string {
  const named = Object.entries(rest).map(([name, value]) => `${name} ${String(value)}`);
  const chat = typeof actor === "string" ? [actor.split("/").slice(3).join("/")] : [];
  const about = [...chat, ...named].join(", ");
  return `${about === "" ? "" : ` (${about})`}${error === undefined ? "" : `: ${String(error)}`}`;
}
