/**
 * The page of the web chat. It holds no conversation: the script fetches that over the socket, so the
 * page is the same for everybody but for its title and two names.
 *
 * @module
 */
import { TEXT_LIMIT } from "../../channels/webchat/protocol.ts";
import { type Html, html } from "./html.ts";

/** What differs from page to page. */
export interface PageOptions {
  title: string;
  /** The path that the page was asked for under, without a slash at its end. */
  base: string;
  /** Names the session in the browser's storage. */
  tag: string;
  /** Shows the crash panel. */
  local: boolean;
}

/** The page as text. */
export function chatPage({ title, base, tag, local }: PageOptions): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/style.css">
<script src="${base}/client.js" defer></script>
</head>
<body data-base="${base}" data-tag="${tag}" class="${local && "local"}">
<a class="skip" href="#text">Skip to the message box</a>
<header class="bar">
<h1>${title}</h1>
<p id="status" class="status" role="status" data-state="connecting">Connecting…</p>
</header>
<main>
<section class="talk" aria-label="Conversation">
<div id="log" class="log" role="log" aria-label="Messages" aria-live="polite" aria-busy="true" tabindex="0">
<ol id="messages" class="messages"></ol>
<p id="empty" class="empty" hidden>No messages yet. Write the first one below.</p>
</div>
<p id="typing" class="typing" hidden><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span> The bot is typing</p>
<button id="newer" class="newer" type="button" hidden>New messages</button>
<div id="notice" class="notice" role="alert" hidden><p id="notice-text"></p><button id="notice-action" type="button"></button></div>
<form id="composer" class="composer">
<label class="hidden" for="text">Message</label>
<textarea id="text" rows="1" maxlength="${String(TEXT_LIMIT)}" placeholder="Write a message" enterkeyhint="send" autocomplete="off" aria-describedby="hint"></textarea>
<button class="send" type="submit">Send</button>
<p id="hint" class="hint">Enter sends, Shift and Enter make a new line.</p>
</form>
</section>
${local && crashPanel()}
</main>
<noscript><p class="noscript">This chat needs JavaScript.</p></noscript>
</body>
</html>
`.toString();
}

/** Local mode: kill the bot at the worst moment, and see what becomes of the answer. */
function crashPanel(): Html {
  return html`<aside id="crash" class="crash" aria-labelledby="crash-title">
<details id="crash-fold" open>
<summary id="crash-title">Crash test</summary>
<p>Sends a message and kills the bot right after its answer went out, before it could record that: the moment at which a bot would answer twice.</p>
<button id="crash-go" class="danger" type="button">Kill the bot between sending and recording</button>
<ol id="crash-steps" class="steps" aria-live="polite" hidden></ol>
<p id="crash-verdict" class="verdict" role="status" hidden></p>
<p class="small">Only in local mode.</p>
</details>
</aside>`;
}
