/**
 * The page's style: one column that fills the window, light and dark by the reader's own setting.
 *
 * @module
 */

/** The whole stylesheet. */
export const stylesheet = `
:root {
  color-scheme: light dark;
  --ground: #f4f5f7;
  --card: #ffffff;
  --ink: #1b1f24;
  --soft: #57606a;
  --line: #d5d9de;
  --mine: #1f4fbf;
  --on-mine: #ffffff;
  --accent: #1f4fbf;
  --good: #1a6b34;
  --warn: #8a5300;
  --bad: #b3261e;
  --code: #eceff2;
  --focus: #0b57d0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b;
    --card: #1e2329;
    --ink: #e8ebee;
    --soft: #a3acb6;
    --line: #363d46;
    --mine: #2f5fcc;
    --on-mine: #ffffff;
    --accent: #9dbcff;
    --good: #7fd197;
    --warn: #f0b866;
    --bad: #ff9b92;
    --code: #2a3038;
    --focus: #a8c7fa;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html, body { height: 100%; }
body {
  margin: 0;
  display: flex;
  flex-direction: column;
  height: 100dvh;
  background: var(--ground);
  color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.hidden {
  position: absolute;
  width: 1px;
  height: 1px;
  margin: -1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
.skip {
  position: absolute;
  inset-inline-start: 8px;
  top: -60px;
  z-index: 2;
  padding: 8px 12px;
  border-radius: 8px;
  background: var(--card);
  color: var(--accent);
}
.skip:focus { top: 8px; }

.bar {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  justify-content: space-between;
  gap: 4px 16px;
  padding: 10px max(16px, env(safe-area-inset-left));
  background: var(--card);
  border-bottom: 1px solid var(--line);
}
.bar h1 { margin: 0; font-size: 1.05rem; font-weight: 650; }
.status {
  display: flex;
  align-items: center;
  gap: 8px;
  margin: 0;
  font-size: 0.875rem;
  color: var(--soft);
}
.status::before {
  content: "";
  width: 9px;
  height: 9px;
  border-radius: 50%;
  background: var(--soft);
}
.status[data-state="online"]::before { background: var(--good); }
.status[data-state="reconnecting"] { color: var(--warn); }
.status[data-state="reconnecting"]::before,
.status[data-state="connecting"]::before { background: var(--warn); animation: pulse 1.2s ease-in-out infinite; }
.status[data-state="ended"]::before,
.status[data-state="elsewhere"]::before { background: var(--bad); }
@keyframes pulse { 50% { opacity: 0.25; } }

main { flex: 1; min-height: 0; display: flex; flex-direction: column; }
.talk {
  position: relative;
  flex: 1;
  min-height: 0;
  width: 100%;
  max-width: 800px;
  margin: 0 auto;
  display: flex;
  flex-direction: column;
}
.log { flex: 1; min-height: 0; overflow-y: auto; padding: 16px; overscroll-behavior: contain; }
.log:focus-visible { outline-offset: -3px; }
.messages { display: flex; flex-direction: column; gap: 12px; margin: 0; padding: 0; list-style: none; }
.empty { margin: 20vh 0 0; text-align: center; text-wrap: balance; color: var(--soft); }

.message { position: relative; display: flex; flex-direction: column; max-width: min(85%, 620px); }
.message.bot { align-self: flex-start; align-items: flex-start; }
.message.user { align-self: flex-end; align-items: flex-end; }
.bubble { max-width: 100%; padding: 9px 14px; border-radius: 16px; }
.bot .bubble { background: var(--card); border: 1px solid var(--line); border-end-start-radius: 5px; }
.user .bubble { background: var(--mine); color: var(--on-mine); border-end-end-radius: 5px; }
.press .bubble { background: transparent; color: var(--ink); border: 2px solid var(--mine); padding: 7px 14px; }
.text { white-space: pre-wrap; }
.meta { display: flex; flex-wrap: wrap; gap: 0 8px; margin: 3px 6px 0; font-size: 0.78rem; color: var(--soft); }
.draft .meta { display: none; }
.delivery[data-state="received"]::before { content: "✓ "; }
.delivery[data-state="waiting"], .delivery[data-state="retrying"] { color: var(--warn); }
.delivery[data-state="failed"] { color: var(--bad); font-weight: 600; }
.answered {
  margin: 0 0 6px;
  padding-inline-start: 8px;
  border-inline-start: 3px solid var(--line);
  font-size: 0.875rem;
  color: var(--soft);
  display: -webkit-box;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
  overflow: hidden;
}
.bubble a { color: var(--accent); text-underline-offset: 2px; }
.bubble code { padding: 1px 4px; border-radius: 4px; background: var(--code); font: 0.9em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.bubble pre { margin: 8px 0; padding: 10px 12px; border-radius: 8px; background: var(--code); overflow-x: auto; white-space: pre; overflow-wrap: normal; }
.bubble pre code { padding: 0; background: none; }
.bubble blockquote { margin: 8px 0; padding-inline-start: 10px; border-inline-start: 3px solid var(--line); color: var(--soft); }
.text > :first-child:is(pre, blockquote) { margin-top: 2px; }
.text > :last-child:is(pre, blockquote) { margin-bottom: 2px; }
.media { margin: 0 0 6px; }
.media:last-child { margin-bottom: 0; }
.picture { display: inline-block; border-radius: 10px; }
.picture img { display: block; max-width: 100%; max-height: 360px; min-height: 24px; border-radius: 10px; }
.media figcaption { margin-top: 4px; font-size: 0.9rem; color: var(--soft); }
.file { display: inline-block; padding: 4px 0; }

.choices { display: flex; flex-direction: column; gap: 6px; margin: 8px 0 2px; }
.choice-row { display: flex; flex-wrap: wrap; gap: 6px; }
.choice {
  flex: 1 1 auto;
  min-height: 44px;
  padding: 8px 16px;
  border: 1px solid var(--accent);
  border-radius: 10px;
  background: var(--card);
  color: var(--accent);
  font: inherit;
  font-weight: 550;
  text-align: center;
  cursor: pointer;
}
a.choice { text-decoration: none; display: inline-flex; align-items: center; justify-content: center; }
a.choice::after { content: " ↗" / ""; white-space: pre; }
.choice:hover { background: var(--code); }
.choice.chosen { border-width: 2px; font-weight: 650; }
.choice.chosen::before { content: "✓ " / ""; }

.typing { display: flex; align-items: center; gap: 8px; margin: 0; padding: 4px 22px; font-size: 0.875rem; color: var(--soft); }
.dots { display: inline-flex; gap: 4px; }
.dots i { width: 6px; height: 6px; border-radius: 50%; background: currentColor; animation: pulse 1.2s ease-in-out infinite; }
.dots i:nth-child(2) { animation-delay: 0.2s; }
.dots i:nth-child(3) { animation-delay: 0.4s; }
.newer {
  align-self: center;
  margin: 0 0 8px;
  min-height: 36px;
  padding: 4px 16px;
  border: 1px solid var(--line);
  border-radius: 18px;
  background: var(--card);
  color: var(--accent);
  font: inherit;
  font-size: 0.9rem;
  cursor: pointer;
}
.newer::after { content: " ↓" / ""; }

.notice { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; margin: 0 16px 8px; padding: 10px 14px; border: 1px solid var(--bad); border-radius: 10px; background: var(--card); }
.notice p { flex: 1; margin: 0; }
.notice button, .send, .danger {
  min-height: 44px;
  padding: 8px 18px;
  border: 1px solid transparent;
  border-radius: 10px;
  background: var(--mine);
  color: var(--on-mine);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
.composer {
  display: grid;
  grid-template-columns: 1fr auto;
  gap: 0 8px;
  align-items: end;
  padding: 10px 16px max(10px, env(safe-area-inset-bottom));
  border-top: 1px solid var(--line);
  background: var(--ground);
}
.composer textarea {
  width: 100%;
  min-height: 44px;
  max-height: 160px;
  padding: 9px 14px;
  border: 1px solid var(--soft);
  border-radius: 10px;
  background: var(--card);
  color: var(--ink);
  font: inherit;
  resize: none;
}
.composer textarea::placeholder { color: var(--soft); opacity: 1; }
.hint { grid-column: 1 / -1; margin: 4px 2px 0; font-size: 0.78rem; color: var(--soft); }
@media (max-width: 480px), (pointer: coarse) { .hint { display: none; } }
.noscript { padding: 16px; text-align: center; }

.crash { padding: 12px 16px; border-top: 1px solid var(--line); background: var(--card); overflow-y: auto; max-height: 45%; }
.crash summary { font-weight: 650; cursor: pointer; }
.crash p { margin: 8px 0; font-size: 0.9rem; }
.crash .small { color: var(--soft); font-size: 0.78rem; }
.danger { width: 100%; background: var(--card); border-color: var(--bad); color: var(--bad); }
.danger:hover:not(:disabled) { background: var(--code); }
.danger:disabled { opacity: 0.55; cursor: default; }
.steps { margin: 12px 0; padding-inline-start: 22px; font-size: 0.9rem; }
.steps li { margin: 4px 0; }
.steps .when { color: var(--soft); font-size: 0.78rem; white-space: nowrap; }
.steps .waiting { color: var(--soft); list-style: none; }
.verdict { padding: 10px 12px; border-inline-start: 4px solid var(--soft); background: var(--code); border-radius: 4px; font-weight: 600; }
.verdict[data-kind="good"] { border-color: var(--good); }
.verdict[data-kind="good"]::before { content: "✓ " / ""; color: var(--good); }
.verdict[data-kind="bad"] { border-color: var(--bad); }
.verdict[data-kind="bad"]::before { content: "! " / ""; color: var(--bad); }
@media (min-width: 900px) {
  .local main { flex-direction: row; }
  .local .talk { margin: 0 auto; }
  .crash { width: 340px; flex: none; max-height: none; border-top: 0; border-inline-start: 1px solid var(--line); }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before { animation: none !important; }
}
`;
