/**
 * What the demo plays on: a simulated Telegram and a ledger in this process, the bot on the real runtime
 * in another, which is killed and started again on the same storage.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { WorkerdProcess } from "../../test/kill/WorkerdProcess.ts";
import { ConnectionDropped } from "../testing/platforms/faults.ts";
import { type Listening, listen } from "../testing/platforms/serve.ts";
import { SimTelegram } from "../testing/platforms/telegram.ts";
import { DemoLedger } from "./demoLedger.ts";

const SECRET = "demo-webhook-secret";
/** The most that the platform's network takes each way, in ms: a window for a kill to fall into. */
const NETWORK_MS = 30;
/** Telegram waits up to a minute between two deliveries; the demo has less time. */
const REDELIVERY_MS = 250;
/** How long one delivery may take, in ms. */
const ANSWER_MS = 5_000;
const CLASSES = { CHAT_ACTOR: "ChatActor", CONNECTION: "Connection", REGISTRY: "Registry" };

/** Where the demo takes place. */
export class DemoStage {
  readonly ledger = new DemoLedger();
  readonly #sim = new SimTelegram();
  readonly #random: () => number;
  readonly #signal: AbortSignal;
  readonly #directory = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
  readonly #onExit = () => rmSync(this.#directory, { recursive: true, force: true });
  #server: Listening | undefined;
  #workerd: WorkerdProcess | undefined;
  #kills = 0;
  #hit = 0;
  #upSince: number | undefined;
  #sending = 0;
  /** How many of the platform's messages are in the ledger. */
  #seen = 0;

  /**
   * @param random decides how slow the network is
   * @param signal ends deliveries that are still tried
   */
  constructor(random: () => number, signal: AbortSignal) {
    this.#random = random;
    this.#signal = signal;
    // Also where the process ends in the middle.
    process.once("exit", this.#onExit);
  }

  /** How often the runtime was killed. */
  get kills(): number {
    return this.#kills;
  }

  /** How many sends were under way at the moment of a kill, in all. */
  get hit(): number {
    return this.#hit;
  }

  /** How long the runtime has been up, in ms; `undefined` while it is down. */
  get upMs(): number | undefined {
    return this.#upSince === undefined ? undefined : Date.now() - this.#upSince;
  }

  /** Opens the platform and starts the runtime. */
  async open(): Promise<void> {
    this.#server = await listen((request) => this.#answer(request));
    this.#workerd = new WorkerdProcess({
      entry: join(import.meta.dirname, "demoBot.ts"),
      directory: this.#directory,
      namespaces: Object.entries(CLASSES).map(([bindingName, className]) => ({
        bindingName,
        className,
        uniqueKey: className,
      })),
      vars: {
        TELEGRAM_BOT_TOKEN: this.#sim.token,
        TELEGRAM_WEBHOOK_SECRET: SECRET,
        TELEGRAM_API_BASE: this.#server.url,
        LEDGER: `${this.#server.url}/ledger`,
      },
    });
    await this.#workerd.start();
    this.#upSince = Date.now();
  }

  /** A user writes; resolves once the runtime took it, or the demo is over. */
  async write(chatId: number, text: string, number: number): Promise<void> {
    const update = this.#sim.messageUpdate({ chatId, text });
    const id = String(update.update_id);
    this.ledger.sent(id, text, number);
    const { delivered } = await this.#sim.deliver(
      `${this.#workerd?.url}/webhooks/telegram`,
      SECRET,
      update,
      {
        attempts: Number.POSITIVE_INFINITY,
        fetch: (request) =>
          fetch(request, {
            signal: AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWER_MS)]),
          }),
        wait: (ms) => delay(Math.min(ms, REDELIVERY_MS), undefined, { signal: this.#signal }),
      },
    );
    if (delivered) this.ledger.admitted(id);
  }

  /** Waits until a send is under way. Bounded. */
  async sending(mostMs: number): Promise<void> {
    const deadline = Date.now() + mostMs;
    while (this.#sending === 0 && Date.now() < deadline) {
      await delay(2, undefined, { signal: this.#signal });
    }
  }

  /** SIGKILL, a moment of nothing, and a start on the same storage. */
  async crash(downMs: number): Promise<void> {
    const workerd = this.#workerd;
    if (workerd === undefined) throw new Error("the stage is not open");
    this.#kills += 1;
    this.#hit += this.#sending;
    this.#upSince = undefined;
    await workerd.kill();
    await delay(downMs, undefined, { signal: this.#signal });
    await workerd.start();
    this.#upSince = Date.now();
  }

  /** Ends the runtime and the platform, and removes the storage. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#workerd?.stop();
    await this.#server?.close();
    this.#onExit();
    process.off("exit", this.#onExit);
  }

  /** Enters into the ledger what the platform has accepted since the last look. */
  #read(): void {
    for (const { chatId, text } of this.#sim.sent.slice(this.#seen)) {
      this.ledger.accepted(chatId, text);
    }
    this.#seen = this.#sim.sent.length;
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/ledger/")) {
      const { key, id } = (await request.json()) as { key?: string; id?: string };
      this.ledger.announced(key ?? id ?? "");
      return new Response(null, { status: 204 });
    }
    this.#sending += 1;
    try {
      await delay(this.#random() * NETWORK_MS);
      // The kill came before the call was through: it never arrived.
      if (request.signal.aborted) throw new ConnectionDropped();
      const response = await this.#sim.fetch(request);
      this.#read();
      await delay(this.#random() * NETWORK_MS);
      return response;
    } finally {
      this.#sending -= 1;
    }
  }
}
