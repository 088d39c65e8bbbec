// The rating screen: keys, answers, evidence. It starts from #rate-state; people's text is only ever set as text.

import { Saving, call, reasons, token } from "./rate_saving.js";
import { Picking, scrollChat, wireSearch } from "./rate_turns.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const page = JSON.parse($("#rate-state").textContent);
const WORDS = { true: "True", false: "False", null: "Not applicable" };
const UNDO_STEPS = 100;
const TYPING_PAUSE = 800; // ms without a key before a comment is saved

// ---------- what is known ----------

const EMPTY = { answered: false, value: null, rationale: "", evidence: [] };
const criteria = page.criteria.map(({ key, version, allow_na }) => {
  const item = $(`[data-criterion="${key}"]`);
  return { key, version, allow_na, item, row: $(".crit", item), form: $("form", item), group: item.closest("[data-group]") };
});
const byKey = new Map(criteria.map((criterion) => [criterion.key, criterion]));
const keys = criteria.map((criterion) => criterion.key);
const answers = {};

const saving = new Saving({
  store: page.store,
  url: page.urls.assignment,
  versions: Object.fromEntries(criteria.map(({ key, version }) => [key, version])),
  on: { state: showSaving, stop: showStop, refuse: (message) => say(`Not saved: ${message}`) },
});
const { kept } = saving;

for (const key of keys) {
  const saved = page.answers[key];
  answers[key] = saved ? { answered: true, ...saved } : { ...EMPTY, ...kept.loose[key] };
  if (kept.pending[key]) answers[key] = kept.pending[key].answer; // newer than what the server has
}

let opened = "";
let typing = 0;
let leaving = false;

function change(key, next, { history = true } = {}) {
  const before = answers[key];
  if (saving.stopped || JSON.stringify(before) === JSON.stringify(next)) return;
  answers[key] = next;
  if (history) {
    kept.undo = [...kept.undo, { key, before, after: next }].slice(-UNDO_STEPS);
    kept.redo = [];
  }
  delete kept.loose[key];
  if (!next.answered) kept.loose[key] = { rationale: next.rationale, evidence: next.evidence }; // until there is an answer
  if (next.answered || before.answered) saving.put(key, next);
  saving.keep();
  render(key);
}

// ---------- showing ----------

function showSaving(text, kind) {
  const anything = keys.some((key) => answers[key].answered);
  const words = text || (anything ? "Saved" : "Saves as you answer");
  const field = $("#save");
  field.className = `save soft nowrap ${kind}`;
  if (field.textContent !== words) field.textContent = words;
}

function showStop(message) {
  $("#stopped p").textContent = message;
  $("#stopped").hidden = false;
  for (const control of $$("input, textarea, .pick-turns, .ev button", $("#ask"))) control.disabled = true;
  renderTotals();
}

function render(key) {
  const { row, form, item } = byKey.get(key);
  const answer = answers[key];
  const word = $(".ans", row);
  word.textContent = answer.answered ? WORDS[answer.value] : "open";
  word.classList.toggle("none", !answer.answered);
  $(".name", row).classList.toggle("done", answer.answered);
  $(".name", row).classList.toggle("strong", !answer.answered);
  for (const radio of $$("input[type=radio]", form)) radio.checked = answer.answered && radio.value === String(answer.value);
  const comment = $("textarea", form);
  if (comment !== document.activeElement || !typing) comment.value = answer.rationale;
  $(".evidence", item).replaceChildren(...answer.evidence.map((part) => evidenceRow(key, part)));
  if (key === opened) picking.mark(answer.evidence);
  renderTotals();
}

function renderTotals() {
  for (const group of $$("[data-group]")) {
    const here = criteria.filter((criterion) => criterion.group === group);
    $("h2 span", group).textContent = `${here.filter(({ key }) => answers[key].answered).length} of ${here.length}`;
  }
  const open = openKeys().length;
  const done = keys.length - open;
  $("#why").textContent = page.submitted ? "Changes count at once" : open ? `${done} of ${keys.length} answered, ${open} open` : "All answered";
  if (page.submitted) return;
  $("#submit").disabled = saving.stopped || open > 0;
  $("#skip-chat").disabled = saving.stopped;
}

function evidenceRow(key, part) {
  const row = document.createElement("li");
  row.className = "ev";
  const turn = document.createElement("a");
  turn.className = "t";
  turn.href = `#m${part.message}`;
  turn.textContent = `turn ${part.message}`;
  const what = document.createElement(part.quote ? "q" : "span");
  what.textContent = part.quote ?? "whole turn";
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove turn ${part.message}`);
  remove.addEventListener("click", () => change(key, { ...answers[key], evidence: answers[key].evidence.filter((other) => other !== part) }));
  row.append(turn, what, remove);
  return row;
}

let saidTimer = 0;
function say(text) {
  const toast = $("#said");
  toast.hidden = false;
  toast.textContent = text;
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => (toast.hidden = true), 5000);
}

// ---------- moving ----------

function openKeys() {
  return keys.filter((key) => !answers[key].answered);
}

function open(key, { focus = true } = {}) {
  commitComment();
  picking.end();
  opened = key;
  for (const criterion of criteria) {
    const here = criterion.key === key;
    criterion.form.hidden = !here;
    criterion.row.hidden = here;
    criterion.row.setAttribute("aria-expanded", String(here));
  }
  picking.mark(answers[key].evidence);
  if (!focus) return;
  const { form } = byKey.get(key);
  focusAnswer();
  form.scrollIntoView({ block: form.offsetHeight > innerHeight * 0.6 ? "start" : "nearest" });
}

function focusAnswer() {
  const { form } = byKey.get(opened);
  ($("input:checked", form) ?? $("input", form)).focus({ preventScroll: true });
}

function move(step) {
  open(keys[(keys.indexOf(opened) + step + keys.length) % keys.length]);
}

function advance() {
  const at = keys.indexOf(opened);
  const next = [...keys.slice(at + 1), ...keys.slice(0, at)].find((key) => !answers[key].answered);
  if (next) open(next);
  else focusAnswer();
}

// ---------- answering ----------

function answer(value, { stay = false } = {}) {
  if (saving.stopped || (value === null && !byKey.get(opened).allow_na)) return;
  commitComment();
  change(opened, { ...answers[opened], answered: true, value });
  if (!stay) advance();
}

function undo() {
  travel(kept.undo, kept.redo, "before", "Undone");
}

function redo() {
  travel(kept.redo, kept.undo, "after", "Redone");
}

function travel(from, to, side, word) {
  if (saving.stopped) return;
  commitComment();
  const step = from.pop();
  if (!step) return say(word === "Undone" ? "Nothing to undo" : "Nothing to redo");
  if (page.submitted && !step[side].answered) return say("A submitted answer can be changed, not cleared");
  to.push(step);
  change(step.key, step[side], { history: false });
  saving.keep();
  open(step.key);
  say(`${word}: ${$(".name", byKey.get(step.key).row).textContent}`);
}

function commitComment() {
  clearTimeout(typing);
  typing = 0;
  if (!opened || saving.stopped) return;
  const text = $("textarea", byKey.get(opened).form).value;
  if (text !== answers[opened].rationale) change(opened, { ...answers[opened], rationale: text });
}

// ---------- evidence ----------

const picking = new Picking((n, on) => {
  const others = answers[opened].evidence.filter((part) => part.message !== n);
  const evidence = on ? [...others, { message: n }].sort((a, b) => a.message - b.message) : others;
  change(opened, { ...answers[opened], evidence });
});

function startPicking() {
  if (saving.stopped) return;
  $("#said").hidden = true;
  picking.start(answers[opened].evidence);
}

function endPicking() {
  picking.end();
  focusAnswer();
  byKey.get(opened).form.scrollIntoView({ block: "nearest" });
}

// ---------- finishing ----------

async function submit() {
  if (saving.stopped || leaving) return;
  commitComment();
  const [next] = page.submitted ? [] : openKeys();
  if (next) {
    open(next);
    return say($("#why").textContent);
  }
  leaving = true;
  try {
    await saving.flush();
    if (saving.stopped) return;
    if (saving.unsent) return say("Not submitted: answers are not saved yet");
    if (page.submitted) return location.assign(page.urls.queue);
    await finish(await call("POST", page.urls.submit));
  } catch {
    say("Not submitted: the server can’t be reached. Try again.");
  } finally {
    leaving = false;
  }
}

async function skip(form) {
  const problem = $(".error", form);
  const reason = new FormData(form).get("reason");
  const text = $("#skip-text").value;
  try {
    const response = await call("POST", page.urls.skip, { reason, text });
    problem.textContent = response.status === 400 ? reasons(await response.json()) : "";
    if (response.status !== 400) {
      $("#skip").close();
      await finish(response);
    }
  } catch {
    problem.textContent = "The server can’t be reached. Try again.";
  }
  problem.hidden = !problem.textContent;
}

async function finish(response) {
  const body = await response.json();
  if (response.ok) {
    saving.forget();
    return openNext(body.next);
  }
  if (body.code === "unanswered") return say(body.detail);
  return saving.stop(body.detail ?? "This chat is no longer yours.");
}

// Taking a chat changes something, so it is a POST; the server redirects to the chat.
function openNext(url) {
  const form = $("#next");
  form.action = url;
  form.elements.csrfmiddlewaretoken.value = token();
  form.submit();
}

// ---------- keys ----------

const KEYS = {
  t: () => answer(true),
  1: () => answer(true),
  f: () => answer(false),
  2: () => answer(false),
  n: () => answer(null),
  3: () => answer(null),
  j: () => move(1),
  k: () => move(-1),
  arrowdown: () => move(1),
  arrowup: () => move(-1),
  pagedown: () => scrollChat(1),
  pageup: () => scrollChat(-1),
  u: undo,
  c: () => $("textarea", byKey.get(opened).form).focus(),
  e: startPicking,
  g: () => $(".guide", byKey.get(opened).form)?.toggleAttribute("open"),
  s: () => !page.submitted && !saving.stopped && $("#skip").showModal(),
  "/": () => $("#search").focus(),
  "?": () => $("#keys").showModal(),
};
const PICKING_KEYS = {
  j: () => picking.step(1),
  k: () => picking.step(-1),
  arrowdown: () => picking.step(1),
  arrowup: () => picking.step(-1),
  enter: () => document.activeElement.click(),
  e: endPicking,
  escape: endPicking,
  "?": KEYS["?"],
};
const REPEATABLE = new Set(["j", "k", "arrowdown", "arrowup", "pagedown", "pageup"]);
const TEXT_FIELD = "textarea, select, [contenteditable], input:not([type=radio]):not([type=checkbox])";

function commandFor(event) {
  const key = event.key.toLowerCase();
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) {
    if (key === "enter") return submit;
    return key === "z" ? (event.shiftKey ? redo : undo) : null;
  }
  if (event.shiftKey && /^[a-z]$/.test(key)) return key === "z" ? redo : null;
  if (!picking.active && /^(arrow|page)/.test(key) && event.target.closest("#main")) return null; // scrolls the chat
  return (picking.active ? PICKING_KEYS : KEYS)[key] ?? null;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || $("dialog[open]")) return;
  if (event.target.closest?.(TEXT_FIELD)) return;
  const command = commandFor(event);
  if (!command) return;
  event.preventDefault();
  if (event.repeat && !REPEATABLE.has(event.key.toLowerCase())) return; // a held key answers once
  command();
});

// ---------- wiring ----------

let byArrow = false; // arrows inside a radio group choose without leaving the question
for (const { key, row, form } of criteria) {
  const comment = $("textarea", form);
  row.addEventListener("click", () => open(key));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("keydown", (event) => (byArrow = /^Arrow(Left|Right)$/.test(event.key)));
  form.addEventListener("pointerdown", () => (byArrow = false));
  form.addEventListener("change", (event) => {
    if (event.target.name === "answer") answer(JSON.parse(event.target.value), { stay: byArrow });
  });
  comment.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(commitComment, TYPING_PAUSE);
  });
  comment.addEventListener("blur", commitComment);
  comment.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    commitComment();
    focusAnswer();
  });
  $(".pick-turns", form).addEventListener("click", () => (picking.active ? endPicking() : startPicking()));
}

wireSearch(focusAnswer);
$("#picking button").addEventListener("click", endPicking);
$("#show-keys").addEventListener("click", KEYS["?"]);
$("#submit")?.addEventListener("click", submit);
$("#skip-chat")?.addEventListener("click", KEYS.s);
$("#skip button[value=cancel]").addEventListener("click", () => $("#skip").close());
$("#skip form").addEventListener("submit", (event) => {
  event.preventDefault();
  skip(event.target);
});

addEventListener("beforeunload", (event) => {
  commitComment();
  if (saving.unsent && !saving.stopped) event.preventDefault();
});

for (const key of keys) render(key);
open(openKeys()[0] ?? keys[0], { focus: false });
saving.show();
if (saving.unsent) saving.flush();
