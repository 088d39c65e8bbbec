// One item of the adjudication queue: keys, navigation, evidence marked in the chat.

import { keyOf } from "../../common/keys.js";
import { TurnText } from "../rating/rate_text.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const pane = $("#main");
const form = $("#decide");
const reason = $("#reason");
let leaving = false;

// ---------- evidence ----------

const texts = JSON.parse($("#texts").textContent);
const turns = new Map(Object.entries(texts).map(([n, text]) => [n, new TurnText($(`#m${n}`), text)]));
const places = () => $$("[data-turn]");
let at = -1;
let voice = -1;

function markQuotes() {
  if (!window.CSS?.highlights) return; // the turn is tinted and the label shows the quote anyway
  const ranges = places()
    .filter(({ dataset }) => dataset.end)
    .map(({ dataset: { turn, start, end } }) =>
      turns.get(turn)?.range({ start: Number(start), end: Number(end) }),
    )
    .filter(Boolean);
  CSS.highlights.set("evidence", new Highlight(...ranges));
}

function nextEvidence() {
  const all = places();
  if (!all.length) return;
  at = (at + 1) % all.length;
  const turn = $(`#m${all[at].dataset.turn}`);
  for (const other of $$(".turn.here")) other.classList.remove("here");
  turn.classList.add("here");
  $("details", turn)?.setAttribute("open", "");
  turn.scrollIntoView({ block: "center" });
}

// A long definition or many raters push labels out of sight.
function nextLabel() {
  const all = $$(".label-cards article");
  if (!all.length) return;
  voice = (voice + 1) % all.length;
  all[voice].focus({ preventScroll: true });
  all[voice].scrollIntoView({ block: "center" });
}

// ---------- keys ----------

function choose(value) {
  const radio = $(`input[name=value][value=${value}]`);
  if (!radio) return;
  radio.checked = true;
  if (!reason.value.trim()) write();
}

function write() {
  reason.focus();
  form.scrollIntoView({ block: "nearest" });
}

function scrollChat(direction) {
  const target = pane.scrollHeight > pane.clientHeight ? pane : document.scrollingElement;
  target.scrollBy({ top: direction * target.clientHeight * 0.8 });
}

const follow = (selector) => () => $(selector)?.click();
const KEYS = {
  t: () => choose("true"),
  1: () => choose("true"),
  f: () => choose("false"),
  2: () => choose("false"),
  n: () => choose("null"),
  3: () => choose("null"),
  r: write,
  c: write,
  j: follow("a[rel=next]"),
  arrowright: follow("a[rel=next]"),
  k: follow("a[rel=prev]"),
  arrowleft: follow("a[rel=prev]"),
  e: nextEvidence,
  l: nextLabel,
  g: () => $(".guide")?.toggleAttribute("open"),
  u: follow("[data-undo]"),
  q: follow(".talk-head a"),
  pagedown: () => scrollChat(1),
  pageup: () => scrollChat(-1),
};
const REPEATABLE = new Set(["pagedown", "pageup", "e", "l"]);
const TEXT_FIELD = "textarea, select, [contenteditable], input:not([type=radio])";

function commandFor(event) {
  const key = keyOf(event);
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return key === "enter" ? () => form.requestSubmit() : null;
  if (event.target.closest(TEXT_FIELD)) return key === "escape" ? () => event.target.blur() : null;
  if (event.shiftKey && /^[a-z]$/.test(key)) return null;
  // Arrows change the answer.
  if (/^arrow/.test(key) && event.target.matches("input[type=radio]")) return null;
  return KEYS[key] ?? null;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || $("dialog[open]")) return;
  const command = commandFor(event);
  if (!command) return;
  event.preventDefault();
  if (event.repeat && !REPEATABLE.has(keyOf(event))) return; // a key that is held down acts once
  command();
});

// ---------- wiring ----------

for (const owner of $$("form")) owner.addEventListener("submit", () => (leaving = true));
addEventListener("pageshow", () => (leaving = false));
addEventListener("beforeunload", (event) => {
  if (!leaving && reason.value.trim()) event.preventDefault(); // the text is not saved yet
});
addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id === "label-cards") $("#names span")?.focus(); // the button that was pressed is gone
});
markQuotes();
$("[role=alert]", form)?.scrollIntoView({ block: "nearest" });
