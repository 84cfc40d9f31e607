/** `npx holdfast connect telegram` against the simulated Telegram and the real edge: each way it can fail. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import {
  connectDeployed,
  connectLocal,
  type DeployedSettings,
} from "../../src/cli/connectTelegram.ts";
import { CommandError } from "../../src/cli/terminal.ts";
import { SIM_TOKEN, SimTelegram } from "../../src/testing/platforms/telegram.ts";
import { ConnectionLab, SECRET } from "./connectionLab.ts";

const WORKER = "https://shop.example";
const HOOK = `${WORKER}/webhooks/telegram`;

/** What a test may change about the world and the settings. */
interface World extends Partial<DeployedSettings> {
  env?: Record<string, unknown>;
  sim?: SimTelegram;
  /** Somebody else changes something, right after the webhook was set. */
  afterSet?: (sim: SimTelegram) => unknown;
  /** Answers for the Worker instead of the bot. */
  worker?: (request: Request) => Promise<Response> | Response;
}

function setUp(world: World = {}) {
  const { env, worker, afterSet, sim: given, ...settings } = world;
  const lab = new ConnectionLab(env === undefined ? {} : { env });
  const sim = given ?? new SimTelegram();
  const said: string[] = [];
  const fetcher: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const { host } = new URL(request.url);
    if (host === "api.telegram.org") {
      const answer = await sim.fetch(request);
      if (request.url.endsWith("/setWebhook")) await afterSet?.(sim);
      return answer;
    }
    if (host === "shop.example") return worker === undefined ? lab.fetch(request) : worker(request);
    throw Object.assign(new TypeError("fetch failed"), {
      cause: Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND" }),
    });
  };
  const all: DeployedSettings = {
    token: SIM_TOKEN,
    tokenName: "TELEGRAM_BOT_TOKEN",
    secretName: "TELEGRAM_WEBHOOK_SECRET",
    apiBase: undefined,
    connection: "telegram",
    dropPending: false,
    removeWebhook: false,
    fetch: fetcher,
    say: (line) => said.push(line),
    done: (line) => said.push(line),
    note: (line) => said.push(`note ${line}`),
    url: WORKER,
    workerName: "shop",
    secret: SECRET,
    secretFile: undefined,
    ...settings,
  };
  /** The error that ends the command. */
  const failure = async (run: (settings: DeployedSettings) => Promise<void>) => {
    const error: unknown = await run(all).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    if (!(error instanceof CommandError)) throw new Error(`no CommandError, but ${String(error)}`);
    expect(`${error.message} ${error.fix} ${said.join()}`).not.toContain(all.token || SIM_TOKEN);
    return { cause: error.message, fix: error.fix };
  };
  return { lab, sim, said, all, failure };
}

test("a deployed bot: everything is checked, the webhook is set, and messages come", async () => {
  const { lab, sim, said, all } = setUp();
  await connectDeployed(all);
  expect(sim.webhook).toMatchObject({ url: HOOK, secret_token: SECRET });
  expect(sim.webhook.allowed_updates).toEqual(
    expect.arrayContaining(["message", "message_reaction", "chat_member"]),
  );
  expect(said.join("\n")).toContain("@sim_bot");
  expect(said.join("\n")).not.toContain(SIM_TOKEN);
  expect(said.join("\n")).not.toContain(SECRET);
  // The update that went through is on record, and ran nothing.
  expect(await lab.call("events")).toMatchObject({ events: [{ kind: "telegram:holdfast_check" }] });
  expect(lab.runtime.names("ChatActor")).toEqual([]);
  sim.enqueue(sim.messageUpdate({ chatId: 11, text: "hi" }));
  await sim.push({ fetch: (request) => lab.fetch(request) });
  await lab.until(() => lab.said(11).length === 1);
});

test("a second account has its own path", async () => {
  const health = {
    bot: "shop",
    connections: [{ connection: "sales", channel: "telegram", ready: true }],
  };
  const { sim, all } = setUp({
    connection: "sales",
    worker: (request) => {
      if (request.url.endsWith("/health")) return Response.json(health);
      const given = request.headers.get("x-telegram-bot-api-secret-token");
      return new Response(null, { status: given === SECRET ? 200 : 401 });
    },
  });
  await connectDeployed(all);
  expect(sim.webhook.url).toBe(`${HOOK}/sales`);
});

test("the Worker is given its secrets where that was asked for, before it is looked at", async () => {
  const put: [string, string][] = [];
  const { lab, all } = setUp({
    env: { TELEGRAM_WEBHOOK_SECRET: "" },
    putSecret: (name, value) => {
      put.push([name, value]);
      lab.runtime.env[name] = value;
    },
  });
  await connectDeployed(all);
  expect(put).toEqual([
    ["TELEGRAM_BOT_TOKEN", SIM_TOKEN],
    ["TELEGRAM_WEBHOOK_SECRET", SECRET],
  ]);
});

/** What goes wrong, the words of the cause, and the words of the fix. */
const FAILURES: [string, World, RegExp, RegExp][] = [
  ["no token", { token: "" }, /TELEGRAM_BOT_TOKEN is not set/, /@BotFather/],
  [
    "a token that Telegram does not know",
    { token: "77:wrong" },
    /does not know this token \(401/,
    /@BotFather/,
  ],
  ["a token that is none", { token: "nonsense" }, /does not know this token \(404/, /@BotFather/],
  [
    "an API that is elsewhere",
    { apiBase: "https://nowhere.example" },
    /nowhere\.example\) could not be reached/,
    /TELEGRAM_API_BASE/,
  ],
  [
    "an API base that is none",
    { apiBase: "api.telegram.org" },
    /is no address/,
    /https:\/\/api\.telegram\.org/,
  ],
  [
    "no address of the Worker",
    { url: undefined },
    /not known.*calls the Worker "shop".*subdomain/s,
    /wrangler deploy.*--url https:\/\/shop\./s,
  ],
  ["an address that is none", { url: "shop" }, /is no address/, /--url https/],
  ["an address without TLS", { url: "http://shop.example" }, /https only/, /npm start/],
  [
    "an address with a path",
    { url: `${WORKER}/webhooks/telegram` },
    /has a path/,
    /--url https:\/\/shop\.example$/,
  ],
  [
    "a host that does not exist",
    { url: "https://gone.example" },
    /gone\.example could not be reached: there is no such host/,
    /wrangler deploy/,
  ],
  [
    "no Worker there",
    { worker: () => new Response("no", { status: 404 }) },
    /health answered 404/,
    /wrangler deploy/,
  ],
  [
    "another program there",
    { worker: () => Response.json({ ok: true }) },
    /not a Holdfast Worker/,
    /--url/,
  ],
  [
    "a connection that the bot does not have",
    { connection: "sales" },
    /no Telegram connection "sales", but: telegram/,
    /--connection telegram/,
  ],
  [
    "secrets that the Worker lacks",
    { env: { TELEGRAM_BOT_TOKEN: "" } },
    /lacks TELEGRAM_BOT_TOKEN/,
    /npx wrangler secret put TELEGRAM_BOT_TOKEN\n.*TELEGRAM_WEBHOOK_SECRET.*--put-secrets/s,
  ],
  [
    "another secret in the Worker",
    { secret: "another-secret" },
    /does not accept the webhook's secret/,
    /npx wrangler secret put TELEGRAM_WEBHOOK_SECRET/,
  ],
  [
    "a secret with letters that Telegram does not take",
    { secret: "no spaces please", env: { TELEGRAM_WEBHOOK_SECRET: "no spaces please" } },
    /refused setWebhook.*unallowed characters/,
    /A-Z/,
  ],
  [
    "a host that Telegram does not find",
    { sim: new SimTelegram({ resolves: () => false }) },
    /Failed to resolve host/,
    /DNS/,
  ],
];

test.each(FAILURES)(
  "%s: the command says so, and sets no webhook",
  async (_what, world, cause, fix) => {
    const { sim, failure } = setUp(world);
    const found = await failure(connectDeployed);
    expect(found.cause).toMatch(cause);
    expect(found.fix).toMatch(fix);
    expect(sim.webhook).toEqual({});
  },
);

test("a webhook that answers anything to anybody is not set", async () => {
  const health = {
    bot: "b",
    connections: [{ connection: "telegram", channel: "telegram", ready: true }],
  };
  for (const [statuses, cause] of [
    [[500, 401], /answered 500/],
    [[200, 200], /answered 200 to an update with a wrong secret/],
  ] as const) {
    const { sim, failure } = setUp({
      worker: (request) => {
        if (request.url.endsWith("/health")) return Response.json(health);
        const right = request.headers.get("x-telegram-bot-api-secret-token") === SECRET;
        return new Response(null, { status: statuses[right ? 0 : 1] });
      },
    });
    expect((await failure(connectDeployed)).cause).toMatch(cause);
    expect(sim.webhook).toEqual({});
  }
});

test("Telegram refuses, limits or does not answer: each has its words", async () => {
  const limited = setUp();
  limited.sim.fault({ type: "rateLimit", retryAfter: 7, method: "setWebhook" });
  expect((await limited.failure(connectDeployed)).cause).toMatch(/wait 7 seconds/);
  const silent = setUp();
  silent.sim.fault({ type: "drop", method: "getWebhookInfo" });
  expect((await silent.failure(connectDeployed)).cause).toMatch(/could not be reached/);
  const refused = setUp();
  refused.sim.fault({
    type: "refuse",
    status: 400,
    description: "Bad Request: bad webhook: IP address 10.0.0.1 is reserved",
    method: "setWebhook",
  });
  expect((await refused.failure(connectDeployed)).cause).toMatch(/10\.0\.0\.1 is reserved/);
});

test("what Telegram made of it is read back: another address, kinds left out, an error", async () => {
  const call = (sim: SimTelegram, query: string) =>
    sim.fetch(new Request(`https://api.telegram.org/bot${SIM_TOKEN}/setWebhook?${query}`));
  const elsewhere = setUp({ afterSet: (sim) => call(sim, "url=https://other.example/x") });
  expect((await elsewhere.failure(connectDeployed)).cause).toMatch(
    /has the webhook on other\.example/,
  );
  const fewer = setUp({ afterSet: (sim) => call(sim, `url=${HOOK}&allowed_updates=["message"]`) });
  expect((await fewer.failure(connectDeployed)).cause).toMatch(/message_reaction, .*will not come/);
  const broken = setUp({
    afterSet: (sim) => sim.failWebhook("Wrong response from the webhook: 502 Bad Gateway"),
  });
  const { cause, fix } = await broken.failure(connectDeployed);
  expect(cause).toMatch(/could not deliver: .*502/);
  expect(fix).toMatch(/wrangler tail/);
});

test("messages that wait are told of, or forgotten where that was asked for", async () => {
  for (const dropPending of [false, true]) {
    const { sim, said, all } = setUp({ dropPending });
    for (const text of ["a", "b"]) sim.enqueue(sim.messageUpdate({ chatId: 11, text }));
    await connectDeployed(all);
    expect(said.some((line) => line.includes("2 messages wait"))).toBe(!dropPending);
    expect(sim.pending).toHaveLength(dropPending ? 0 : 2);
  }
});

test("this machine: the token is checked, a webhook elsewhere is named, and removed only on request", async () => {
  const { sim, said, all, failure } = setUp();
  await connectLocal(all);
  expect(said.join("\n")).toMatch(/npm start/);
  await connectDeployed(all);
  const { cause, fix } = await failure(connectLocal);
  expect(cause).toMatch(/webhook on shop\.example/);
  expect(fix).toMatch(/--remove-webhook/);
  expect(sim.webhook.url).toBe(HOOK);
  await connectLocal({ ...all, removeWebhook: true });
  expect(sim.webhook).toEqual({});
});

test("this machine, while the bot runs: it fetches at once, and that is what is said", async () => {
  const { sim, said, all } = setUp();
  await sim.fetch(new Request(`https://x/bot${SIM_TOKEN}/setWebhook?url=${HOOK}`));
  const asked: string[] = [];
  const running = (works: boolean) => ({
    url: "http://localhost:8787",
    poll: async (connection: string) => {
      // Before the webhook is gone it would only fail once more.
      asked.push(`${connection} ${JSON.stringify(sim.webhook)}`);
      return works;
    },
  });
  await connectLocal({ ...all, removeWebhook: true, running: running(true) });
  expect(asked).toEqual(["telegram {}"]);
  expect(said.at(-1)).toContain("The bot on http://localhost:8787 fetches the messages now.");
  await connectLocal({ ...all, running: running(false) });
  expect(said.at(-1)).toContain("did not say that it fetches the messages");
  expect(said.join()).not.toContain("npm start");
});

test("an address where plain http is spoken: that is what is said", async () => {
  const server = createServer((_request, response) => response.end("hello"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const { sim, all, failure } = setUp();
  const fetcher: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    return request.url.startsWith("https://127") ? fetch(request) : all.fetch(request);
  };
  const world = { ...all, url: `https://127.0.0.1:${port}`, fetch: fetcher };
  const { cause } = await failure(() => connectDeployed(world));
  server.close();
  expect(cause).toBe(`127.0.0.1:${port} could not be reached: it does not speak https`);
  expect(sim.webhook).toEqual({});
});
