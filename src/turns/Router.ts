/**
 * Routing: entries run in the order in which they were registered, the first that matches wins, and
 * its handler may pass on with `next()`.
 *
 * @module
 */

import type { Button } from "../channels/content.ts";
import { ConfigError } from "../channels/errors.ts";
import { isChoice } from "../flows/choices.ts";
import type { Context, Handler, Next } from "./Context.ts";
import type { Matcher } from "./matchers.ts";

/** Checks and converts untrusted data: any implementation of Standard Schema (zod, valibot, arktype …). */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    validate(
      value: unknown,
    ):
      | { readonly value: T; readonly issues?: undefined }
      | { readonly issues: readonly { readonly message: string }[] }
      | Promise<
          | { readonly value: T; readonly issues?: undefined }
          | { readonly issues: readonly { readonly message: string }[] }
        >;
  };
}

/** A button's action: what `bot.action` returns. */
export interface Action<Data> {
  readonly name: string;
  /** A button that runs this action with `data`. */
  button(text: string, ...data: undefined extends Data ? [data?: Data] : [data: Data]): Button;
}

/** Kinds of events that `on` routes as turns. */
export type RoutedKind =
  | "edited"
  | "deleted"
  | "reaction"
  | "membership"
  | "action:expired"
  | `event:${string}`
  | `${string}:${string}`;

interface Entry {
  /** Runs for every event, before flows and handlers. */
  middleware?: true;
  /** Sets `ctx.match` where it has one; false when it does not match. */
  matches(ctx: MutableContext): boolean | RegExpMatchArray;
  run(ctx: Context, next: Next): unknown;
}

/** The context as the router sees it: `match` belongs to the entry that runs. */
interface MutableContext extends Context {
  match: RegExpMatchArray;
}

type ContextOf<Env, Shape> = Context<Env, Shape>;

const COMMAND_NAME = /^[A-Za-z0-9_]{1,64}$/;

/** Splits a bot into parts: `bot.use(router)`. */
export class Router<Env = Cloudflare.Env, Shape = unknown> {
  readonly #entries: Entry[] = [];
  readonly #last: Entry[] = [];
  readonly #kinds = new Set<string>();
  readonly #commands: RegExp[] = [];
  readonly #parts: Pick<Router, "handles" | "isCommand">[] = [];

  /** Runs for every event, before what is registered later; passes on with `next()`. */
  use(middleware: Handler<ContextOf<Env, Shape>> | Router<Env, Shape>): this {
    if (middleware instanceof Router) {
      this.#parts.push(middleware);
      this.#entries.push({ matches: () => true, run: (ctx, next) => middleware.route(ctx, next) });
    } else {
      if (typeof middleware !== "function") throw new ConfigError("a handler must be a function");
      this.#entries.push({
        middleware: true,
        matches: () => true,
        run: (ctx, next) => (middleware as Handler<unknown>)(ctx, next),
      });
    }
    return this;
  }

  /** A `/name` message. `ctx.match[1]` is what follows the name. */
  command(name: string, handler: Handler<ContextOf<Env, Shape>>): this {
    if (!COMMAND_NAME.test(name)) {
      throw new ConfigError(
        `command is ${JSON.stringify(name)}, but must be 1 to 64 letters, digits or "_", without the slash`,
      );
    }
    const pattern = new RegExp(`^/${name}(?:@\\w+)?(?:\\s+([\\s\\S]*))?$`, "i");
    this.#commands.push(pattern);
    this.#add((ctx) => (isMessage(ctx) ? (pattern.exec(ctx.text) ?? false) : false), handler);
    return this;
  }

  /** A message that matches: its exact text, a regular expression (`ctx.match`), a matcher or a predicate. */
  when<Narrow>(matcher: Matcher<Narrow>, handler: Handler<ContextOf<Env, Shape> & Narrow>): this;
  when<C extends ContextOf<Env, Shape>>(
    predicate: (ctx: ContextOf<Env, Shape>) => ctx is C,
    handler: Handler<C>,
  ): this;
  when(
    matcher: string | RegExp | ((ctx: ContextOf<Env, Shape>) => boolean),
    handler: Handler<ContextOf<Env, Shape>>,
  ): this;
  when(matcher: unknown, handler: Handler<never>): this {
    const test = tester(matcher);
    this.#add((ctx) => (isMessage(ctx) ? test(ctx) : false), handler);
    return this;
  }

  /** A pressed button. Its data comes from outside: give a schema where its shape matters. */
  action<Data = undefined>(
    name: string,
    handler: (ctx: ContextOf<Env, Shape>, data: Data, next: Next) => unknown,
  ): Action<Data>;
  action<Data>(
    name: string,
    options: { schema: StandardSchema<Data> },
    handler: (ctx: ContextOf<Env, Shape>, data: Data, next: Next) => unknown,
  ): Action<Data>;
  action(
    name: string,
    first: unknown,
    second?: (ctx: never, data: never, next: Next) => unknown,
  ): Action<unknown> {
    const handler = (second ?? first) as (ctx: Context, data: unknown, next: Next) => unknown;
    const schema =
      second === undefined ? undefined : (first as { schema: StandardSchema<unknown> }).schema;
    if (typeof handler !== "function")
      throw new ConfigError(`action "${name}" needs a handler function`);
    this.#entries.push({
      matches: (ctx) =>
        ctx.press !== undefined && "action" in ctx.press && ctx.press.action === name,
      run: async (ctx, next) => {
        const data = ctx.press !== undefined && "data" in ctx.press ? ctx.press.data : undefined;
        if (schema === undefined) return handler(ctx, data, next);
        const checked = await schema["~standard"].validate(data);
        if (checked.issues !== undefined) {
          ctx.log.warn("a button's data was refused by its schema", {
            action: name,
            issue: checked.issues[0]?.message ?? "",
          });
          return undefined;
        }
        return handler(ctx, checked.value, next);
      },
    });
    return {
      name,
      button: (text: string, ...data: unknown[]) =>
        data[0] === undefined ? { text, action: name } : { text, action: name, data: data[0] },
    };
  }

  /** Whatever no other handler took: messages and presses. */
  otherwise(handler: Handler<ContextOf<Env, Shape>>): this {
    this.#last.push({
      matches: (ctx) => isMessage(ctx) || (ctx.event.kind === "action" && !isChoice(ctx.press)),
      run: (ctx, next) => (handler as Handler<Context>)(ctx, next),
    });
    return this;
  }

  /** Events other than messages and presses, each a turn of its own. */
  onEvent(kind: RoutedKind, handler: Handler<ContextOf<Env, Shape>>): this {
    this.#add((ctx) => kindOf(ctx) === kind, handler);
    this.#kinds.add(kind);
    return this;
  }

  /** Whether a handler was registered for this kind of event by name. */
  handles(kind: string): boolean {
    return this.#kinds.has(kind) || this.#parts.some((part) => part.handles(kind));
  }

  /** Whether a text is one of the commands. */
  isCommand(text: string): boolean {
    return (
      this.#commands.some((one) => one.test(text)) ||
      this.#parts.some((part) => part.isCommand(text))
    );
  }

  /**
   * Runs the entries for an event, then `after`.
   * @param between asked after the first middleware and before everything else; true: the event is taken
   */
  async route(context: Context, after: Next, between?: () => Promise<boolean>): Promise<void> {
    const ctx = context as MutableContext;
    const entries = [...this.#entries, ...this.#last];
    let asked = between === undefined;
    const run = async (from: number): Promise<void> => {
      for (let at = from; at < entries.length; at += 1) {
        const entry = entries[at];
        if (!asked && entry?.middleware !== true) {
          asked = true;
          if (await between?.()) return;
        }
        const found = entry?.matches(ctx) ?? false;
        if (entry === undefined || found === false) continue;
        const before = ctx.match;
        if (found !== true) ctx.match = found;
        await entry.run(ctx, () => run(at + 1));
        ctx.match = before;
        return;
      }
      if (!asked) {
        asked = true;
        if (await between?.()) return;
      }
      await after();
    };
    await run(0);
  }

  #add<C>(matches: (ctx: Context) => boolean | RegExpMatchArray, handler: Handler<C>): void {
    if (typeof handler !== "function") throw new ConfigError("a handler must be a function");
    this.#entries.push({ matches, run: (ctx, next) => (handler as Handler<unknown>)(ctx, next) });
  }
}

function isMessage(ctx: Context): boolean {
  return ctx.event.kind === "message";
}

/** The kind that `on` names: `event:<type>` for external events. */
function kindOf(ctx: Context): string {
  if (ctx.event.kind === "event") return `event:${ctx.event.type ?? ""}`;
  // A choice of a question that is no longer asked is as good as gone.
  if (ctx.press !== undefined && ("expired" in ctx.press || isChoice(ctx.press)))
    return "action:expired";
  return ctx.event.kind;
}

function tester(matcher: unknown): (ctx: Context) => boolean | RegExpMatchArray {
  if (typeof matcher === "string") return (ctx) => ctx.text.trim() === matcher;
  if (matcher instanceof RegExp) {
    // A sticky or global expression remembers where it stopped; a fresh one does not.
    const pattern = new RegExp(matcher.source, matcher.flags.replace(/[gy]/g, ""));
    return (ctx) => pattern.exec(ctx.text) ?? false;
  }
  if (typeof matcher === "function")
    return (ctx) => Boolean((matcher as (ctx: Context) => unknown)(ctx));
  if (typeof matcher === "object" && matcher !== null && "test" in matcher) {
    return (ctx) => (matcher as Matcher).test(ctx);
  }
  throw new ConfigError("`when` takes a string, a regular expression, a matcher or a predicate");
}
