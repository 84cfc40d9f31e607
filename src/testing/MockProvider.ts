/**
 * A channel over a {@link MockPlatform}, with whatever abilities a test declares.
 *
 * @module
 */
import type {
  Capabilities,
  Channel,
  ChannelMedia,
  DeliveryClass,
  Inbound,
  InboundItem,
  Outbound,
  RenderedPart,
} from "../channels/channel.ts";
import type { JsonObject, PlainContent } from "../channels/content.ts";
import { UnsupportedContentError } from "../channels/errors.ts";
import type { Address } from "../channels/events.ts";
import { splitText } from "../text/split.ts";
import { wallClock } from "../time/Clock.ts";
import { type LedgerEntry, MockPlatform } from "./MockPlatform.ts";
import { mockMedia } from "./mockMedia.ts";

/** Options of a mock channel. */
export interface MockProviderOptions {
  platform: MockPlatform;
  name?: string;
  connection?: string;
  capabilities?: Partial<Capabilities>;
  /** Lets the bot download what users send ({@link MockPlatform.addFile}). Default false. */
  media?: boolean;
  /** Gives the channel a step before each call, as uploads and token refreshes are. */
  prepare?: boolean;
}

const DAY_MS = 86_400_000;

/**
 * A channel with its platform inside, for tests of bots and of the runtime. `testBot` uses it as it is,
 * under the test's clock, where any other channel gets a stand-in.
 *
 * ```ts
 * const provider = new MockProvider({ class: "blind" });
 * const t = testBot(new Bot({ id: "shop", channels: [provider] }));
 * ```
 */
export class MockProvider implements Channel<MockPlatform> {
  readonly name: string;
  readonly connection: string;
  readonly capabilities: Capabilities;
  readonly configure: Channel<MockPlatform>["configure"];
  readonly chatKey: Channel<MockPlatform>["chatKey"];
  readonly inbound: Inbound<MockPlatform>;
  readonly outbound: Outbound<MockPlatform>;
  readonly media?: ChannelMedia<MockPlatform>;
  /** What the channel talks to: its faults, its latency, its self test. */
  readonly platform: MockPlatform;

  /**
   * @param options as those of {@link mockProvider}, but that a platform is made where none is given: of
   * `class`, by default `"keyed"`
   */
  constructor(options: Partial<MockProviderOptions> & { class?: DeliveryClass } = {}) {
    this.platform = options.platform ?? new MockPlatform(wallClock, options.class ?? "keyed");
    const channel = mockProvider({ ...options, platform: this.platform });
    this.name = channel.name;
    this.connection = channel.connection;
    this.capabilities = channel.capabilities;
    this.configure = channel.configure;
    this.chatKey = channel.chatKey;
    this.inbound = channel.inbound;
    this.outbound = channel.outbound;
    if (channel.media !== undefined) this.media = channel.media;
  }

  /** Every message that the platform accepted, in order: the truth about what was said. */
  get ledger(): readonly LedgerEntry[] {
    return this.platform.ledger;
  }
}

function capabilitiesOf(platform: MockPlatform, given: Partial<Capabilities> = {}): Capabilities {
  return {
    text: { limit: 4_096, unit: "codepoints" },
    kinds: ["text", "markdown", "media", "buttons", "silent", "reply", "native"],
    buttonDataBytes: 64,
    threads: true,
    edit: true,
    delete: true,
    typing: true,
    reactions: true,
    finalizeInPlace: true,
    streaming: { everyMs: 1_000 },
    redelivery: { behaviour: "until answered with success", windowMs: DAY_MS },
    deadlineMs: 10_000,
    journalFailure: { status: 503, retryAfterSeconds: 1 },
    dedupe: "event id",
    ...given,
    delivery: {
      class: platform.class,
      ...(platform.class === "provable" ? { settleAfterMs: 1_000 } : {}),
      ...given.delivery,
    },
  };
}

/** Makes a mock channel. Its webhooks are JSON: `{ items: InboundItem[] }`. */
export function mockProvider(options: MockProviderOptions): Channel<MockPlatform> {
  const { platform } = options;
  const name = options.name ?? "mock";
  const capabilities = capabilitiesOf(platform, options.capabilities);
  const channel: Channel<MockPlatform> = {
    name,
    connection: options.connection ?? name,
    capabilities,
    configure: () => ({ ok: true, options: platform }),
    chatKey: (chat) => (chat.thread === undefined ? chat.id : `${chat.id}:${chat.thread}`),
    inbound: {
      maxBodyBytes: 1_000_000,
      verify: (request) => request.headers.get("x-mock-secret") === "mock",
      parse: (request) =>
        (JSON.parse(new TextDecoder().decode(request.body)) as { items: InboundItem[] }).items,
      answer: (_items, outcome) => new Response(null, { status: outcome.committed ? 200 : 503 }),
    },
    outbound: {
      render: (content, target) => renderMock(content, target.address, capabilities),
      plain: (request) => ({ ...request, format: "plain" }),
      readdress: (request, address) => ({ ...request, chat: address.chat }),
      ...(options.prepare === true
        ? { prepare: async (request: JsonObject) => ({ ok: true as const, request }) }
        : {}),
      send: (request, io) =>
        platform.send(textOf(request.chat), textOf(request.text), buttonsOf(request), io.marker),
      ...(platform.class === "provable"
        ? { reconcile: (query) => platform.reconcile(query.marker) }
        : {}),
      selfTest: async () => platform.healthy(),
      edit: async (message, content) =>
        platform.edit(message.id, content.text ?? "")
          ? { ok: true, receipt: { id: message.id, kind: "text" } }
          : { ok: false, kind: "not_found", evidence: "not_sent", message: "no such message" },
      revise: (message, request) =>
        platform.revise(message.address.chat, message.id, textOf(request.text), buttonsOf(request)),
      ...(capabilities.streaming?.draft === undefined
        ? {}
        : {
            draft: (draft) =>
              platform.draft(draft.address.chat, draft.id, textOf(draft.request.text)),
          }),
      delete: async (message) =>
        platform.remove(message.id)
          ? { ok: true, receipt: { id: message.id, kind: "text" } }
          : { ok: false, kind: "not_found", evidence: "not_sent", message: "no such message" },
      typing: async (address) => {
        platform.typing.push(address.chat);
      },
      react: async (message) => ({ ok: true, receipt: { id: message.id, kind: "other" } }),
      answerPress: async () => {},
    },
    ...(options.media === true ? { media: mockMedia(platform, name) } : {}),
  };
  return channel;
}

function buttonsOf(request: JsonObject): LedgerEntry["buttons"] {
  return (request.buttons ?? []) as LedgerEntry["buttons"];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function renderMock(
  content: PlainContent,
  address: Address,
  capabilities: Capabilities,
): RenderedPart[] {
  if (content.template !== undefined && !capabilities.kinds.includes("template")) {
    throw new UnsupportedContentError("this channel has no templates");
  }
  if (content.media !== undefined && !capabilities.kinds.includes("media")) {
    throw new UnsupportedContentError("this channel carries no media");
  }
  const { limit, unit } = capabilities.text;
  const texts = splitText(
    content.text ?? content.media?.map((one) => `[${one.kind}]`).join(" ") ?? "",
    limit,
    unit,
  );
  return texts.map((text, index) => {
    const last = index === texts.length - 1;
    const buttons = (last ? (content.buttons ?? []).flat() : []).map((button) => ({
      text: button.text,
      value: "value" in button ? button.value : button.url,
    }));
    const request: JsonObject = {
      chat: address.chat,
      text,
      format: content.format,
      ...(buttons.length > 0 ? { buttons } : {}),
    };
    return { kind: "text", request };
  });
}
