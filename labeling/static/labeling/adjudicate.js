// One item of the adjudication queue: keys, the walk through the queue, evidence marked in the chat.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const pane = $("#main");
const form = $("#decide");
const reason = $("#reason");
const given = new FormData(form);
let leaving = false;

// ---------- evidence ----------

const places = $$("[data-turn]");
let at = -1;

// The range of a quote in a turn as it is shown: Markdown and white space may differ from the message's text.
function rangeOf(body, quote, nth) {
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const letters = []; // each printed character with its node and offset
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (let i = 0; i < node.length; i++) if (!/[\s*_`#>]/.test(node.data[i])) letters.push({ node, i });
  const shown = letters.map(({ node, i }) => node.data[i]).join("");
  const wanted = quote.replace(/[\s*_`#>]/g, "");
  if (!wanted) return null;
  let start = -1;
  for (let n = 0; n <= nth; n++) {
    const found = shown.indexOf(wanted, start + 1);
    if (found < 0) break;
    start = found;
  }
  if (start < 0) return null;
  const first = letters[start];
  const last = letters[start + wanted.length - 1];
  const range = new Range();
  range.setStart(first.node, first.i);
  range.setEnd(last.node, last.i + 1);
  return range;
}

function markQuotes() {
  if (!window.CSS?.highlights) return; // the turn is tinted and the quote stands beside the label anyway
  const ranges = places
    .filter((place) => place.dataset.quote)
    .map((place) => {
      const body = $(`#m${place.dataset.turn} .md, #m${place.dataset.turn} pre`);
      return body && rangeOf(body, place.dataset.quote, Number(place.dataset.nth || 0));
    })
    .filter(Boolean);
  CSS.highlights.set("evidence", new Highlight(...ranges));
}

function nextEvidence() {
  if (!places.length) return;
  at = (at + 1) % places.length;
  const turn = $(`#m${places[at].dataset.turn}`);
  for (const other of $$(".turn.here")) other.classList.remove("here");
  turn.classList.add("here");
  $("details", turn)?.setAttribute("open", "");
  turn.scrollIntoView({ block: "center" });
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
  g: () => $(".guide")?.toggleAttribute("open"),
  u: follow("[data-undo]"),
  q: follow(".talk-head a"),
  pagedown: () => scrollChat(1),
  pageup: () => scrollChat(-1),
  "?": () => $("#keys").showModal(),
};
const REPEATABLE = new Set(["pagedown", "pageup", "e"]);
const TEXT_FIELD = "textarea, select, [contenteditable], input:not([type=radio])";

function commandFor(event) {
  const key = event.key.toLowerCase();
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return key === "enter" ? () => form.requestSubmit() : null;
  if (event.target.closest(TEXT_FIELD)) return key === "escape" ? () => event.target.blur() : null;
  if (event.shiftKey && /^[a-z]$/.test(key)) return null;
  if (/^arrow/.test(key) && event.target.matches("input[type=radio]")) return null; // chooses another answer
  return KEYS[key] ?? null;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || $("dialog[open]")) return;
  const command = commandFor(event);
  if (!command) return;
  event.preventDefault();
  if (event.repeat && !REPEATABLE.has(event.key.toLowerCase())) return; // a held key acts once
  command();
});

// ---------- wiring ----------

for (const owner of $$("form")) owner.addEventListener("submit", () => (leaving = true));
addEventListener("pageshow", () => (leaving = false));
addEventListener("beforeunload", (event) => {
  if (!leaving && reason.value.trim() && reason.value !== given.get("reason")) event.preventDefault();
});
$("#show-keys").addEventListener("click", KEYS["?"]);
markQuotes();
$("[role=alert]", form)?.scrollIntoView({ block: "nearest" });
