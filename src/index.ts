/**
 * Holdfast: a durable actor runtime for chat bots. This entry is pure and loads in plain Node; the one
 * that needs the Workers runtime is `holdfast/cloudflare`.
 *
 * @module
 */
export type {
  AnyChannel,
  Capabilities,
  Channel,
  ChannelIo,
  Inbound,
  InboundItem,
  Outbound,
  RawRequest,
  RenderedPart,
  SendIo,
  SendResult as ChannelSendResult,
} from "./channels/channel.ts";
export type {
  Button,
  Content,
  ContentObject,
  JsonObject,
  MediaContent,
  PlainContent,
} from "./channels/content.ts";
export {
  ConfigError,
  DeliveryError,
  type ErrorKind,
  FlowAnswerError,
  FlowTimeoutError,
  HoldfastError,
  MediaUnavailableError,
  OutsideSessionWindowError,
  PayloadTooLargeError,
  RateLimitedError,
  RecipientUnreachableError,
  RetryTurn,
  SendDeferredError,
  TurnAbortedError,
  TurnEndedError,
  UnsupportedContentError,
} from "./channels/errors.ts";
export type {
  Address,
  ChatInfo,
  DeliveryStatus,
  InboundEvent,
  MediaRef,
  Sender,
} from "./channels/events.ts";
export { telegram } from "./channels/telegram/index.ts";
export { webchat } from "./channels/webchat/index.ts";
export type {
  Answer,
  Choice,
  Flow,
  FlowContext,
  FlowOptions,
  Hook,
  RunRecord,
  RunRow,
  StartedRun,
  StartOptions,
  StepOptions,
} from "./flows/types.ts";
export { formatAddress, parseAddress } from "./objects/names.ts";
export type { StreamOptions, StreamSource } from "./streams/types.ts";
export { splitText } from "./text/split.ts";
export type { Duration } from "./time/duration.ts";
export { Bot, type BotOptions } from "./turns/Bot.ts";
export type { AmbiguousEvent, DeadEvent, ErrorEvent, PausedEvent } from "./turns/BotRuntime.ts";
export type { AckPolicy, Concurrency } from "./turns/busyOptions.ts";
export type {
  ChatClient,
  Client,
  DurabilityClient,
  RetriedDead,
  UnfinishedChat,
} from "./turns/Client.ts";
export type { Context, Handler, Next } from "./turns/Context.ts";
export type { CronHandler, CronOptions } from "./turns/crons.ts";
export type { History, ModelMessage } from "./turns/history.ts";
export { type LoadedMedia, type LoadMediaOptions, loadMediaOf } from "./turns/loadMedia.ts";
export {
  AUDIO,
  DIRECT,
  FILE,
  GROUP,
  IMAGE,
  LOCATION,
  type Matcher,
  MENTION,
  TEXT,
  VIDEO,
} from "./turns/matchers.ts";
export type { DurabilityOptions, InboxOptions, OutboxOptions } from "./turns/options.ts";
export { type Action, Router, type StandardSchema } from "./turns/Router.ts";
export type {
  BatchResult,
  EnqueueOptions,
  OutgoingSend,
  Receipt,
  SendOptions,
  SendResult,
  SentEvent,
} from "./turns/sends.ts";
