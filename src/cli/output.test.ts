import { expect, test } from "vitest";
import { type OutputEvent, OutputReader } from "./output.ts";

/** Events of a text that comes in pieces of `size` characters. */
function read(text: string, size = text.length): OutputEvent[] {
  const events: OutputEvent[] = [];
  const reader = new OutputReader((event) => events.push(event));
  for (let at = 0; at < text.length; at += size) reader.push(text.slice(at, at + size));
  reader.end();
  return events;
}

const RED = "\u001b[31m✘ \u001b[41;31m[\u001b[41;97mERROR\u001b[41;31m]\u001b[0m \u001b[1m";

test("wrangler's own remarks are dropped, the Worker's log is not", () => {
  const events = read(
    `Your Worker has access to the following bindings:
Binding                          Resource            Mode
env.CHAT_ACTOR (ChatActor)       Durable Object      local
env.HOLDFAST_LOCAL ("(hidden)")      Environment Variable      local

⎔ Starting local server...
[wrangler:info] Ready on http://127.0.0.1:8787
hello { a: 1 }
[wrangler:info] POST /webhooks/telegram 200 OK (45ms)
⎔ Reloading local server...
⎔ Local server updated and ready
{"level":"info","message":"a turn will run again","actor":"main/production/example/telegram/5","waitMs":900}
`,
    7,
  );
  expect(events).toEqual([
    { type: "console", level: "info", text: "hello { a: 1 }" },
    { type: "request", method: "POST", path: "/webhooks/telegram", status: 200, ms: 45 },
    { type: "reloading" },
    { type: "reloaded" },
    {
      type: "log",
      level: "info",
      message: "a turn will run again",
      fields: { actor: "main/production/example/telegram/5", waitMs: 900 },
    },
  ]);
});

test("a build that fails is told by what is wrong", () => {
  const [event] = read(`${RED}Build failed with 1 error:\u001b[0m

  ${RED}Unexpected ";"\u001b[0m

      src/bot.ts:14:10:
        14 │ const x = ;

`);
  expect(event).toEqual({
    type: "problem",
    of: "build",
    text: 'Unexpected ";"\n    src/bot.ts:14:10:\n      14 │ const x = ;',
  });
});

test("a bot that throws while it is loaded is told by its error", () => {
  const [event, ...more] =
    read(`${RED}service core:user:holdfast: Uncaught Error: ConfigError: id is 7\u001b[0m

    at null.<anonymous> (worker.js:1399:11612)


${RED}The Workers runtime failed to start. There was likely a problem with the workerd binary.\u001b[0m

  Runtime stderr:
`);
  expect(event).toEqual({ type: "problem", of: "script", text: "ConfigError: id is 7" });
  expect(more).toEqual([]);
});

test("errors that the bot prints keep their lines, and logged ones their fields", () => {
  expect(
    read(`${RED}Error: boom\u001b[0m

      at handler (file:///bot.ts:14:211)


${RED}{"level":"error","message":"a handler threw","id":"1","error":"Error: boom"}\u001b[0m

`),
  ).toEqual([
    {
      type: "console",
      level: "error",
      text: "Error: boom\n    at handler (file:///bot.ts:14:211)",
    },
    {
      type: "log",
      level: "error",
      message: "a handler threw",
      fields: { id: "1", error: "Error: boom" },
    },
  ]);
});

test("a runtime that died is noticed", () => {
  expect(
    read(
      "[wrangler:warn] The Workers runtime crashed unexpectedly and is being restarted (crash #1).\n",
    ),
  ).toEqual([{ type: "crashed" }]);
});

test("the web chat's crash button is told once and in words, not as two errors", () => {
  const kill = `${RED}Uncaught Error: killed on request, in local mode\u001b[0m\n\n\n`;
  const [event, ...more] = read(`${kill}${kill}`);
  expect(event).toMatchObject({ type: "console", level: "info" });
  expect(event).toMatchObject({ text: expect.stringContaining("goes on by itself") });
  expect(more).toEqual([]);
});
