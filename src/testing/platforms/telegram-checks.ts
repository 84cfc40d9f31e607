/**
 * What the Bot API refuses, in its own words as far as a client may depend on them.
 *
 * @module
 */

/** A refusal of the simulated Bot API. */
export class ApiError extends Error {
  readonly status: number;
  readonly parameters: Record<string, unknown> | undefined;
  constructor(status: number, description: string, parameters?: Record<string, unknown>) {
    super(description);
    this.status = status;
    this.parameters = parameters;
  }
}

/** A "Bad Request". */
export function badRequest(description: string): ApiError {
  return new ApiError(400, `Bad Request: ${description}`);
}

/** Parameters of a call, decoded. */
export type Params = Record<string, unknown>;

const FORMATS = new Set([
  "bold",
  "italic",
  "underline",
  "strikethrough",
  "spoiler",
  "blockquote",
  "expandable_blockquote",
  "code",
  "pre",
  "text_link",
  "text_mention",
  "custom_emoji",
  "date_time",
]);
/** Types that Telegram finds by itself, and ignores where a bot sends them. */
const FOUND = new Set([
  "mention",
  "hashtag",
  "cashtag",
  "bot_command",
  "url",
  "email",
  "phone_number",
]);

/** The text of a message as Telegram keeps it: trimmed, not empty, within the limit. */
export function checkText(params: Params): string {
  const text = string(params, "text").trim();
  checkFormat(params, string(params, "text"), "entities");
  if (text === "") throw badRequest("message text is empty");
  if ([...text].length > 4_096) throw badRequest("message is too long");
  return text;
}

/** The caption of media, empty where there is none. */
export function checkCaption(params: Params): string {
  if (params.caption === undefined) return "";
  const caption = string(params, "caption").trim();
  checkFormat(params, string(params, "caption"), "caption_entities");
  if ([...caption].length > 1_024) throw badRequest("message caption is too long");
  return caption;
}

/** Refuses keyboards that Telegram would refuse. */
export function checkMarkup(markup: unknown): void {
  if (markup === undefined) return;
  if (typeof markup !== "object" || markup === null)
    throw badRequest("object expected as reply markup");
  if (!("inline_keyboard" in markup)) return;
  const rows = markup.inline_keyboard;
  if (!Array.isArray(rows))
    throw badRequest('field "inline_keyboard" of the InlineKeyboardMarkup must be an Array');
  for (const button of rows.flat() as Record<string, unknown>[]) {
    if (typeof button.text !== "string" || button.text === "") {
      throw badRequest("inline keyboard button text is empty");
    }
    if (button.url !== undefined && !isTelegramUrl(button.url)) {
      throw badRequest(
        `inline keyboard button URL '${String(button.url)}' is invalid: Wrong HTTP URL`,
      );
    }
    const data = button.callback_data;
    if (data === undefined && button.url === undefined) {
      throw badRequest("text buttons are unallowed in the inline keyboard");
    }
    if (data !== undefined) {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data).byteLength : 0;
      if (bytes < 1 || bytes > 64) throw badRequest("BUTTON_DATA_INVALID");
    }
  }
}

/** A parameter that must be text. */
export function string(params: Params, name: string): string {
  const value = params[name] ?? "";
  if (typeof value !== "string" && typeof value !== "number") {
    throw badRequest(`invalid parameters: field "${name}" must be of type String`);
  }
  return String(value);
}

/** A parameter that must be an integer, `undefined` where it is absent. */
export function integer(params: Params, name: string): number | undefined {
  const value = params[name];
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw badRequest(`wrong parameter ${name} in the request`);
  return number;
}

function checkFormat(params: Params, text: string, name: string): void {
  const mode = params.parse_mode;
  if (mode !== undefined && !["HTML", "Markdown", "MarkdownV2"].includes(String(mode))) {
    throw badRequest("unsupported parse_mode");
  }
  const entities = params[name];
  if (entities === undefined) return;
  if (!Array.isArray(entities)) throw badRequest("can't parse entities: expected an Array");
  for (const entity of entities as Record<string, unknown>[]) checkEntity(text, entity);
}

function checkEntity(text: string, entity: Record<string, unknown>): void {
  const { type, offset, length } = entity;
  if (typeof type === "string" && FOUND.has(type)) return;
  if (typeof type !== "string" || !FORMATS.has(type)) {
    throw badRequest("can't parse MessageEntity: Unsupported type specified");
  }
  if (!isCount(offset) || !isCount(length) || length === 0) {
    throw badRequest('can\'t parse MessageEntity: Can\'t find field "offset" or "length"');
  }
  const end = offset + length;
  if (end > text.length) {
    throw badRequest(
      `entity beginning at UTF-16 offset ${offset} ends after the end of the text at UTF-16 offset ${end}`,
    );
  }
  if (isLowSurrogate(text, offset) || isLowSurrogate(text, end)) {
    throw badRequest(`entity beginning at UTF-16 offset ${offset} cuts a character in two`);
  }
  if (type === "text_link" && !isTelegramUrl(entity.url)) {
    throw badRequest(`entity URL '${String(entity.url)}' is invalid: Wrong HTTP URL`);
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Whether `index` lies between the halves of a surrogate pair. */
function isLowSurrogate(text: string, index: number): boolean {
  return index < text.length && (text.codePointAt(index - 1) ?? 0) > 0xffff;
}

function isTelegramUrl(url: unknown): boolean {
  return (
    typeof url === "string" && /^(?:https?:\/\/[^\s/]+\.[^\s]+|(?:tg|ton):\/\/\S+)$/i.test(url)
  );
}
