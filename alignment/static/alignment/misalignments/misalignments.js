// Triage by keyboard. Each change is saved at once and in order; a change that fails is kept and sent again.

import { call, reasons, tryAgain } from "../../common/api.js";
import { keyOf } from "../../common/keys.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const list = $(".triage");
const trouble = $("#trouble");
const saving = $("#saving");
const queue = []; // {row, change} or {undo}: not saved yet, the first one is being sent
let busy = false;
const NOTE_SHOWN = 60; // characters of a note in a status message

const rows = () => $$(".item", list);
const current = () => $(".item:has([aria-current])", list);
const form = () => $(".triage-form", list);
const note = () => $("#note", list);
const me = list?.dataset.me;

// ---------- display ----------

function words(cause) {
  const button = cause && $(`.causes [data-cause=${cause}]`);
  return button ? button.firstChild.textContent.trim() : "";
}

function paint(row) {
  const { cause, owner } = row.dataset;
  $("[data-cause-words]", row).textContent = words(cause);
  $("[data-owner-name]", row).textContent = owner;
  if (row !== current() || $(".one-item")?.dataset.item !== row.dataset.id || !form()) return;
  form().dataset.cause = cause;
  for (const button of $$(".causes button")) {
    button.setAttribute("aria-pressed", String(button.dataset.cause === cause));
  }
  $("[data-owner]").value = owner;
  if (document.activeElement !== note() && !row.typed) note().value = row.dataset.note;
}

function warn(text) {
  trouble.hidden = !text;
  trouble.textContent = text;
}

// ---------- saving ----------

function copyStored(row, stored) {
  for (const name of ["revision", "cause", "note", "owner"]) row.dataset[name] = stored[name] ?? "";
}

function enqueue(row, change) {
  Object.assign(row.dataset, change);
  queue.push({ row, change });
  paint(row);
  sendQueue();
}

async function sendQueue() {
  if (busy) return;
  busy = true;
  while (queue.length) {
    saving.textContent = "Saving…";
    if (!(await (queue[0].undo ? sendUndo() : sendChange(queue[0])))) break;
    queue.shift();
    if (queue.length) saving.textContent = "Saving…";
  }
  busy = false;
  if (queue.length) setTimeout(sendQueue, 3000);
}

// False when the request has to be sent again.
async function sendChange({ row, change }) {
  const url = `${list.dataset.api}${row.dataset.id}/`;
  try {
    const response = await call("PATCH", url, { revision: Number(row.revision), ...change });
    const body = await response.json();
    if (response.ok) {
      applyStored(row, body);
      if ("note" in change) dropDraft(row, body.note);
      saving.textContent = `Saved: ${inWords(change)}`;
      warn("");
    } else {
      saving.textContent = "Not saved";
      await showRefusal(row, url, change, reasonFor(response.status, body));
    }
    return true;
  } catch (error) {
    saving.textContent = "Not saved";
    warn(`${tryAgain(error)} Your change is kept on this page and sent again.`);
    return false;
  }
}

// The note is stored, unless somebody has typed on.
function dropDraft(row, stored) {
  if (row !== current() || note()?.value !== stored) return;
  form().dispatchEvent(new Event("draft:accepted", { bubbles: true }));
}

function reasonFor(status, body) {
  if (status === 409) return body.detail;
  return status === 404 ? "You can no longer see this disagreement." : reasons(body);
}

// The server knows your last change, even from before this page was opened.
// NB: never sent again automatically: the undo may have been stored although no answer came.
async function sendUndo() {
  try {
    const response = await call("POST", `${list.dataset.api}undo/`);
    const body = await response.json();
    if (!response.ok) saving.textContent = `Nothing undone: ${body.detail}`;
    else {
      const row = rows().find((one) => one.dataset.id === String(body.id));
      if (row) applyStored(row, body);
      else updateCounts();
      if (row && row !== current()) open(row);
      saving.textContent = undoInWords(body);
    }
  } catch (error) {
    saving.textContent = "Not undone";
    warn(tryAgain(error));
  }
  return true;
}

function inWords({ cause, note: text, owner }) {
  if (cause !== undefined) return words(cause) || "no cause";
  if (text !== undefined) return text ? "note" : "no note";
  return owner ? `owner ${owner}` : "unassigned";
}

// Old and new values, in the words of the history.
function undoInWords({ chat, criterion, history: [{ was, now }] }) {
  const changes = Object.keys(now).map(
    (name) => `${name} ${valueInWords(name, was[name])} → ${valueInWords(name, now[name])}`,
  );
  return [`Undone on ${chat}, ${criterionName(criterion)}`, changes.join(", ")].filter(Boolean).join(": ");
}

function criterionName(key) {
  const option = $$("[name=criterion] option").find((one) => one.value === key);
  return option ? option.textContent.trim() : key;
}

function valueInWords(name, value) {
  if (name === "cause") return words(value) || "none yet";
  if (name === "owner") return value || "unassigned";
  return !value ? "none" : value.length > NOTE_SHOWN ? `“${value.slice(0, NOTE_SHOWN)}…”` : `“${value}”`;
}

// htmx reloads the counts.
const updateCounts = () => document.body.dispatchEvent(new Event("counts"));

// Shows the stored values, and on top of them the changes that still wait to be sent.
function applyStored(row, body) {
  row.revision = body.revision;
  if (row.typed && note()?.value === body.note) row.typed = false;
  copyStored(row, body);
  updateCounts();
  for (const one of queue.slice(1)) if (one.row === row) Object.assign(row.dataset, one.change);
  paint(row);
  if (row === current()) document.body.dispatchEvent(new Event("triaged")); // htmx reloads the history
}

async function showRefusal(row, url, change, reason) {
  const response = await call("GET", url);
  if (response.ok) applyStored(row, await response.json());
  const note = "note" in change && change.note ? ` Your note was: ${change.note}` : "";
  warn(`Not saved: ${reason}.${note}`.replace("..", "."));
}

// ---------- keys ----------

function select(row) {
  if (!row) return;
  saveNote();
  for (const link of $$(".item [aria-current]", list)) link.removeAttribute("aria-current");
  const link = $("a", row);
  link.setAttribute("aria-current", "true");
  link.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function open(row) {
  if (row) $("a", row).click(); // htmx loads the chat
}

function step(by) {
  const all = rows();
  const next = all[all.indexOf(current()) + by];
  if (next) return open(next);
  const page = $(`a[rel=${by > 0 ? "next" : "prev"}]`, list);
  if (page) page.click();
  else saving.textContent = by > 0 ? "Last disagreement" : "First disagreement";
}

function saveNote() {
  const row = $(".one-item") && rows().find((one) => one.dataset.id === $(".one-item").dataset.item);
  if (!row || !note() || note().value === row.dataset.note) return;
  row.typed = false;
  enqueue(row, { note: note().value });
}

function undo() {
  saveNote();
  queue.push({ undo: true });
  sendQueue();
}

function openNextStep() {
  const shown = $$(".next-step span").find((one) => one.checkVisibility());
  const link = shown && $("a", shown);
  if (link) link.click();
  else if (!current().dataset.cause) saving.textContent = "Set a cause first";
  else {
    const none = "No next step for this cause. Describe it in the note.";
    saving.textContent = shown?.textContent.trim() || none;
  }
}

const toggleOwner = () => enqueue(current(), { owner: current().dataset.owner === me ? "" : me });
const toggleCause = (cause) => enqueue(current(), { cause: current().dataset.cause === cause ? "" : cause });
const WRITES = {
  n: () => note().focus(),
  o: toggleOwner,
  u: undo,
  g: openNextStep,
};
const MOVES = { j: () => step(1), k: () => step(-1) };
const help = () => $("#keys").showModal();

function commandFor(event) {
  const key = keyOf(event);
  if (event.target === note()) {
    const leaves = key === "escape" || (key === "enter" && (event.ctrlKey || event.metaKey));
    return leaves ? () => select(current()) : null;
  }
  if (event.altKey || event.ctrlKey || event.metaKey) return null;
  if (event.target.closest("input, select, textarea, dialog")) return null;
  if (key === "?") return help;
  if (MOVES[key]) return MOVES[key];
  if (!form()) return null;
  const button = /^[1-6]$/.test(key) && $$(".causes button")[key - 1];
  return button ? () => toggleCause(button.dataset.cause) : WRITES[key];
}

// ---------- wiring ----------

function wire() {
  for (const row of rows()) {
    row.revision = row.dataset.revision;
  }
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || !current()) return;
    const command = commandFor(event);
    if (!command) return;
    event.preventDefault();
    if (!event.repeat || MOVES[keyOf(event)]) command();
  });
  list.addEventListener("click", ({ target }) => {
    const row = target.closest(".item");
    if (row) select(row);
    const cause = target.closest(".causes button");
    if (cause) toggleCause(cause.dataset.cause);
    if (target.closest("[data-undo]")) undo();
    if (target.closest("[data-keys]")) help();
  });
  list.addEventListener("change", ({ target }) => {
    if (target.matches("[data-owner]")) enqueue(current(), { owner: target.value });
  });
  list.addEventListener("input", ({ target }) => {
    if (target === note()) current().typed = true;
  });
  list.addEventListener("focusout", ({ target }) => {
    if (target === note()) saveNote();
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "item" && current()) paint(current()); // values saved meanwhile
  });
  addEventListener("beforeunload", (event) => {
    saveNote();
    if (queue.length) event.preventDefault();
  });
}

if (list && current()) wire();
