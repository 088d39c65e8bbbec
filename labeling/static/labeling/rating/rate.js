// Keys and buttons of the rating screen; the chat may change without a page load.

import { Keys, keyOf } from "../../common/keys.js";
import { Screen } from "./rate_screen.js";
import { byTouch } from "./rate_switch.js";
import { foldTurns, labelFold, scrollChat } from "./rate_turns.js";

const $ = (selector) => document.querySelector(selector);
const keys = new Keys();
let screen = null;

const COMMANDS = {
  true: () => screen.answer(true),
  false: () => screen.answer(false),
  na: () => screen.answer(null),
  next: () => screen.move(1),
  previous: () => screen.move(-1),
  down: () => scrollChat(1),
  up: () => scrollChat(-1),
  undo: () => screen.travel(true),
  redo: () => screen.travel(false),
  comment: () => screen.view().focusComment(),
  evidence: () => screen.addEvidence(),
  definition: () => screen.view().toggleDefinition(),
  guideline: () => screen.guide.toggle(),
  knowledge: () => screen.knowledge.toggle(),
  fold: foldTurns,
  flag: () => screen.note("flag"),
  unclear: () => screen.note("unclear"),
  skip: () => {
    if (screen.submitted) screen.say("A submitted chat can’t be skipped");
    else if (!screen.stopped) $("#skip").showModal();
  },
  again: () => {
    if ($("#submitted").hidden) screen.say("No chat was submitted in the last ten seconds");
    else $("#submitted a").click();
  },
  search: () => screen.search.focus(),
  submit: () => screen.finish.submit(),
};
const { true: yes, false: no, na, undo, fold, definition, guideline, knowledge } = COMMANDS;
const PICKING = {
  ...{ true: yes, false: no, na, undo, fold, definition, guideline, knowledge },
  next: () => screen.picking.step(1),
  previous: () => screen.picking.step(-1),
  evidence: () => (screen.spans.selected() ? screen.addEvidence() : screen.endPicking()),
  comment: () => {
    screen.picking.end();
    COMMANDS.comment();
  },
};
const BRACKETS = { "[": PICKING.previous, "]": PICKING.next };
const DIGIT = /^\d$/;
const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", Enter: "Enter" };
const REPEATABLE = new Set(["next", "previous", "down", "up"]);
const TEXT_FIELD = "textarea, select, [contenteditable], input:not([type=radio]):not([type=checkbox])";
const OWN_KEYS = "a[href], button, summary"; // Enter and Space belong to them

// Words of a turn: arrows move, Shift extends, Enter adds them as evidence.
function wordCommand(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by) return () => screen.picking.move(by, event.shiftKey);
  if (event.key === "Enter") return () => screen.addEvidence();
  return event.key === "Escape" ? () => screen.picking.leave() : null;
}

// Digits are numbers of turns; letters keep their meaning.
function pickingCommand(event) {
  if (DIGIT.test(event.key)) return () => screen.picking.digit(event.key);
  const turn = BRACKETS[event.key] ?? PICKING[keys.command(event)];
  if (screen.picking.words) return wordCommand(event) ?? turn;
  if (event.key === "Enter" && !event.target.closest(OWN_KEYS)) return () => screen.picking.enter();
  return event.key === "Escape" ? () => screen.endPicking() : turn;
}

function commandFor(event) {
  const key = keyOf(event);
  if (!DIGIT.test(key)) screen.picking.settle(); // any other key ends the number of a turn
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) {
    if (key === "enter") return COMMANDS.submit;
    return key === "z" ? COMMANDS[event.shiftKey ? "redo" : "undo"] : null;
  }
  if (event.shiftKey && /^[a-z]$/.test(key)) return key === "z" ? COMMANDS.redo : null;
  if (screen.picking.active) return pickingCommand(event);
  if (inPane(event) && /^(arrow|page)/.test(key)) return null;
  return COMMANDS[keys.command(event)];
}

// Whether arrows and Space scroll the part that has the focus.
function inPane({ target }) {
  return target.closest("#main, #guideline, #knowledge") && target.tagName !== "H1";
}

// A key without a meaning here says so; Space never answers.
function meaningless(event) {
  const { key, target } = event;
  const name = NAMES[key] ?? (key?.length === 1 && `“${key}”`);
  if (!name || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const isAnswer = target.closest(".choice button") && key !== "Enter";
  const isOwn = target.closest(`${OWN_KEYS}, input`) || inPane(event);
  if (isOwn && !isAnswer && NAMES[key]) return;
  event.preventDefault();
  screen.say(byTouch() ? `${name} has no meaning here` : `${name} has no meaning here. ? lists all keys`);
}

// Text fields keep their keys, except Ctrl Enter: a comment is often the last missing part.
function fieldCommand(event, field) {
  const submits = event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.matches("textarea");
  return submits ? COMMANDS.submit : null;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || $("dialog[open]")) return;
  const field = event.target.closest?.(TEXT_FIELD);
  const command = field ? fieldCommand(event, field) : commandFor(event);
  if (!command) return field ? undefined : meaningless(event);
  event.preventDefault();
  const held = event.repeat && !screen.picking.words && !REPEATABLE.has(keys.command(event));
  if (!held && !screen.leaving) command(); // a key that is held down acts once
});

// Offers selected words of the chat as evidence of the open criterion.
document.addEventListener("selectionchange", () => {
  const part = screen.picking.words || screen.stopped ? null : screen.spans.selected();
  const offer = $("#selected");
  if (offer.hidden === !part?.message) return;
  offer.hidden = !part?.message;
  $("#selected span").textContent = `Selected words, for ${screen.name(screen.opened)}`;
});

addEventListener("beforeunload", (event) => {
  screen.commitComment();
  if (screen.saving.unsent && !screen.stopped && !screen.finish.left) event.preventDefault();
});
// A page from the browser's cache is out of date.
addEventListener("pageshow", (event) => event.persisted && location.reload());
// Back and forward lead to another chat; a link to a turn of this one stays here.
addEventListener("popstate", () => {
  if (location.pathname !== screen.path) location.reload();
});

function wireButtons() {
  $("#picking button").addEventListener("click", () => screen.endPicking());
  // Keeps the selection.
  $("#selected button").addEventListener("pointerdown", (event) => event.preventDefault());
  $("#selected button").addEventListener("click", COMMANDS.evidence);
  $("#undo").addEventListener("click", COMMANDS.undo);
  // The answers are kept in this browser and are sent after the sign-in, which returns here.
  $("#signed-out a").addEventListener("click", () => (screen.finish.left = true));
  $("#flag").addEventListener("click", COMMANDS.flag);
  $("#fold").addEventListener("click", foldTurns);
  $("#submit")?.addEventListener("click", COMMANDS.submit);
  $("#skip-chat")?.addEventListener("click", COMMANDS.skip);
  $("#skip button[value=cancel]").addEventListener("click", () => $("#skip").close());
  $("#skip form").addEventListener("submit", (event) => {
    event.preventDefault();
    screen.finish.skip(event.target);
  });
  for (const turn of document.querySelectorAll("#main details")) turn.addEventListener("toggle", labelFold);
}

// age: ms since this page was fetched to replace another one; undefined for a loaded page
function start(age) {
  screen?.end();
  screen = new Screen(start, age);
  wireButtons();
  labelFold();
  keys.label();
  keys.wire($("#key-set"));
  if (age !== undefined) $("h1").focus(); // screen readers announce the chat
}

start();
