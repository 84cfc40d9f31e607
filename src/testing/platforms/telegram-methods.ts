/**
 * The methods of the simulated Bot API that write to chats or read from them.
 *
 * @module
 */
import {
  badRequest,
  checkCaption,
  checkMarkup,
  checkText,
  integer,
  type Params,
  string,
} from "./telegram-checks.ts";
import type { StoredMessage, TelegramState } from "./telegram-state.ts";

/** A file in a multipart call. */
export interface UploadedFile {
  bytes: Uint8Array;
  filename: string;
  mimeType: string;
}

/** A call as its method sees it. */
export interface MethodCall {
  /** As the client wrote it. */
  method: string;
  params: Params;
  files: ReadonlyMap<string, UploadedFile>;
  /** Notes a message that was sent. */
  onSent(message: StoredMessage): void;
  /** Notes an answered press. */
  onPressAnswered(pressId: string, text: string | undefined): void;
}

type Method = (state: TelegramState, call: MethodCall) => unknown;

/** Bots may delete messages for two days. */
const DELETABLE_SECONDS = 48 * 3_600;
/** Files above it are not given to bots. */
const MAX_DOWNLOAD = 20 * 1_048_576;

const ACTIONS =
  /^(?:typing|upload_(?:photo|video|voice|document|video_note)|record_(?:video|voice|video_note)|choose_sticker|find_location)$/;

const MEDIA_FIELDS = {
  sendphoto: "photo",
  sendaudio: "audio",
  sendvideo: "video",
  senddocument: "document",
  sendanimation: "animation",
  sendvoice: "voice",
  sendvideonote: "video_note",
  sendsticker: "sticker",
} as const;

/** Methods by their names in lower case; Telegram does not look at case either. */
export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["getme", (state) => ({ ...state.bot, can_join_groups: true, supports_inline_queries: false })],
  ["sendmessage", (state, call) => send(state, call, checkText(call.params), undefined)],
  ...Object.entries(MEDIA_FIELDS).map(([name, field]): [string, Method] => [
    name,
    (state, call) => {
      const caption = checkCaption(call.params);
      return send(state, call, caption, { field, value: mediaValue(state, call, field) });
    },
  ]),
  ["editmessagetext", (state, call) => edit(state, call, "text")],
  ["editmessagecaption", (state, call) => edit(state, call, "caption")],
  ["editmessagereplymarkup", (state, call) => edit(state, call, "markup")],
  ["sendmessagedraft", draft],
  ["deletemessage", remove],
  ["setmessagereaction", react],
  ["sendchataction", sendAction],
  ["answercallbackquery", answerPress],
  ["getfile", getFile],
]);

function send(
  state: TelegramState,
  call: MethodCall,
  text: string,
  media: StoredMessage["media"],
): unknown {
  const { params } = call;
  const chatId = string(params, "chat_id");
  const chat = state.writable(chatId);
  const threadId = integer(params, "message_thread_id");
  // The General topic is not a thread to sends (tdlib/telegram-bot-api#798).
  if (threadId === 1) throw badRequest("message thread not found");
  checkMarkup(params.reply_markup);
  const reply = params.reply_parameters as Params | undefined;
  const replyTo = reply === undefined ? undefined : integer(reply, "message_id");
  const found = replyTo !== undefined && chat.messages.has(replyTo);
  if (replyTo !== undefined && !found && reply?.allow_sending_without_reply !== true) {
    throw badRequest("message to be replied not found");
  }
  const entities = media === undefined ? params.entities : params.caption_entities;
  const message = state.store({
    chatId,
    date: state.date,
    text,
    ...(threadId === undefined ? {} : { threadId }),
    ...(media === undefined ? {} : { media }),
    ...(entities === undefined ? {} : { entities }),
    ...(params.reply_markup === undefined ? {} : { markup: params.reply_markup }),
    ...(found ? { replyTo } : {}),
  });
  call.onSent(message);
  return state.show(message);
}

/** Shows what the bot is writing; in chats with people only. */
function draft(state: TelegramState, { params }: MethodCall): true {
  const chatId = string(params, "chat_id");
  const chat = state.writable(chatId);
  if (!/^\d+$/.test(chatId)) throw badRequest("TEXTDRAFT_PEER_INVALID");
  const id = integer(params, "draft_id") ?? 0;
  if (id === 0) throw badRequest("wrong parameter draft_id in the request");
  chat.draft = { id, text: checkText(params), at: state.now() };
  return true;
}

function mediaValue(state: TelegramState, call: MethodCall, field: string): unknown {
  const uploaded = call.files.get(field);
  const source = call.params[field];
  let file = typeof source === "string" ? state.files.get(source) : undefined;
  if (uploaded !== undefined) {
    if (uploaded.bytes.byteLength === 0) throw badRequest("file must be non-empty");
    file = state.addFile(uploaded.bytes, uploaded);
  } else if (typeof source === "string" && /^https?:\/\//.test(source)) {
    file = state.addFile(new Uint8Array());
  }
  if (file === undefined) throw badRequest("wrong file identifier/HTTP URL specified");
  const shown = {
    file_id: file.fileId,
    file_unique_id: file.uniqueId,
    file_size: file.bytes.byteLength,
  };
  return field === "photo" ? [{ ...shown, width: 90, height: 90 }] : shown;
}

function edit(
  state: TelegramState,
  call: MethodCall,
  what: "text" | "caption" | "markup",
): unknown {
  const { params } = call;
  const message = find(state, params, "edit");
  if (message.from !== undefined) throw badRequest("message can't be edited");
  if (what === "text" && message.media !== undefined) {
    throw badRequest("there is no text in the message to edit");
  }
  if (what === "caption" && message.media === undefined) {
    throw badRequest("there is no caption in the message to edit");
  }
  checkMarkup(params.reply_markup);
  const before = JSON.stringify([message.text, message.entities, message.markup]);
  const text =
    what === "text" ? checkText(params) : what === "caption" ? checkCaption(params) : message.text;
  const entities =
    what === "markup"
      ? message.entities
      : params[what === "text" ? "entities" : "caption_entities"];
  // An edit without a keyboard takes the old one away.
  const after = JSON.stringify([text, entities, params.reply_markup]);
  if (before === after) {
    throw badRequest(
      "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
    );
  }
  message.text = text;
  if (entities === undefined) delete message.entities;
  else message.entities = entities;
  if (params.reply_markup === undefined) delete message.markup;
  else message.markup = params.reply_markup;
  message.edited = true;
  return state.show(message);
}

function remove(state: TelegramState, { params }: MethodCall): true {
  const message = find(state, params, "delete");
  if (state.date - message.date > DELETABLE_SECONDS) {
    throw badRequest("message can't be deleted for everyone");
  }
  state.chat(message.chatId).messages.delete(message.id);
  return true;
}

function react(state: TelegramState, { params }: MethodCall): true {
  const message = find(state, params, "react");
  const reactions = params.reaction ?? [];
  if (!Array.isArray(reactions)) throw badRequest("reaction must be an Array");
  message.reactions = reactions.map((reaction: Params) =>
    String(reaction.emoji ?? reaction.custom_emoji_id ?? reaction.type),
  );
  return true;
}

function sendAction(state: TelegramState, { params }: MethodCall): true {
  state.writable(string(params, "chat_id"));
  if (!ACTIONS.test(string(params, "action")))
    throw badRequest("wrong parameter action in request");
  return true;
}

function answerPress(state: TelegramState, call: MethodCall): true {
  const pressId = string(call.params, "callback_query_id");
  if (!state.presses.has(pressId)) {
    throw badRequest("query is too old and response timeout expired or query ID is invalid");
  }
  const { text } = call.params;
  if (typeof text === "string" && [...text].length > 200) throw badRequest("MESSAGE_TOO_LONG");
  call.onPressAnswered(pressId, typeof text === "string" ? text : undefined);
  return true;
}

function getFile(state: TelegramState, { params }: MethodCall): unknown {
  const file = state.files.get(string(params, "file_id"));
  if (file === undefined) throw badRequest("wrong file_id or the file is temporarily unavailable");
  if (file.bytes.byteLength > MAX_DOWNLOAD) throw badRequest("file is too big");
  return {
    file_id: file.fileId,
    file_unique_id: file.uniqueId,
    file_size: file.bytes.byteLength,
    file_path: file.path,
  };
}

function find(state: TelegramState, params: Params, verb: string): StoredMessage {
  const chat = state.writable(string(params, "chat_id"));
  const message = chat.messages.get(integer(params, "message_id") ?? 0);
  if (message === undefined) throw badRequest(`message to ${verb} not found`);
  return message;
}
