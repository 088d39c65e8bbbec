// Triage by keyboard: a change is stored at once, one after the other; what could not be stored is kept and told.

import { call, reasons, tryAgain } from "../../common/api.js";
import { keyOf } from "../../common/keys.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const list = $(".triage");
const trouble = $("#trouble");
const saving = $("#saving");
const queue = []; // {row, wanted}, or {undo}: not stored yet, the first is on its way
let busy = false;
const NOTE_TOLD = 60; // characters of a note that a line of status tells

const rows = () => $$(".item", list);
const current = () => $(".item:has([aria-current])", list);
const form = () => $(".triage-form", list);
const note = () => $("#note", list);
const me = list?.dataset.me;

// ---------- what is shown ----------

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
  for (const button of $$(".causes button")) button.setAttribute("aria-pressed", String(button.dataset.cause === cause));
  $("[data-owner-words]").textContent = owner ? `Owner: ${owner}` : "Nobody owns this one.";
  $("[data-own]").textContent = owner === me ? "Give it up" : "Take it";
  if (document.activeElement !== note() && !row.typed) note().value = row.dataset.note;
}

function tell(text) {
  trouble.hidden = !text;
  trouble.textContent = text;
}

// ---------- storing ----------

function take(row, stored) {
  for (const name of ["revision", "cause", "note", "owner"]) row.dataset[name] = stored[name] ?? "";
}

function change(row, wanted) {
  Object.assign(row.dataset, wanted);
  queue.push({ row, wanted });
  paint(row);
  store();
}

async function store() {
  if (busy) return;
  busy = true;
  while (queue.length) {
    saving.textContent = "Saving…";
    if (!(await (queue[0].undo ? undone() : stored(queue[0])))) break;
    queue.shift();
    if (queue.length) saving.textContent = "Saving…";
  }
  busy = false;
  if (queue.length) setTimeout(store, 3000); // what waits is sent again by itself
}

// Whether the server has dealt with it; otherwise it is sent again.
async function stored({ row, wanted }) {
  const url = `${list.dataset.api}${row.dataset.id}/`;
  try {
    const response = await call("PATCH", url, { revision: Number(row.revision), ...wanted });
    const body = await response.json();
    if (response.ok) {
      settle(row, body);
      saving.textContent = `Saved: ${inWords(wanted)}`;
      tell("");
    } else {
      saving.textContent = "Not saved";
      await refused(row, url, wanted, response.status === 409 ? body.detail : response.status === 404 ? "This one is not there for you any more." : reasons(body));
    }
    return true;
  } catch (error) {
    saving.textContent = "Not saved";
    tell(`${tryAgain(error)} What you did is kept on this page and sent again.`);
    return false;
  }
}

// The server knows what came last, before this page was opened too. NB: never sent again by itself, it may have
// been done though no answer came.
async function undone() {
  try {
    const response = await call("POST", `${list.dataset.api}undo/`);
    const body = await response.json();
    if (!response.ok) saving.textContent = `Nothing undone: ${body.detail}`;
    else {
      const row = rows().find((one) => one.dataset.id === String(body.id));
      if (row) settle(row, body);
      if (row && row !== current()) open(row);
      saving.textContent = undoneInWords(body);
    }
  } catch (error) {
    saving.textContent = "Not undone";
    tell(tryAgain(error));
  }
  return true;
}

function inWords({ cause, note: text, owner }) {
  if (cause !== undefined) return words(cause) || "no cause";
  if (text !== undefined) return text ? "note" : "no note";
  return owner ? `owner ${owner}` : "no owner";
}

// From what to what, as the history tells it.
function undoneInWords({ chat, criterion, history: [{ was, now }] }) {
  const changes = Object.keys(now).map((name) => `${name} ${valueInWords(name, was[name])} → ${valueInWords(name, now[name])}`);
  return [`Undone on ${chat}, ${criterion}`, changes.join(", ")].filter(Boolean).join(": ");
}

function valueInWords(name, value) {
  if (name === "cause") return words(value) || "none yet";
  if (name === "owner") return value || "nobody";
  return !value ? "none" : value.length > NOTE_TOLD ? `“${value.slice(0, NOTE_TOLD)}…”` : `“${value}”`;
}

// What the server holds now; changes that still wait for their turn stand above it.
function settle(row, body) {
  row.revision = body.revision;
  if (row.typed && note()?.value === body.note) row.typed = false;
  take(row, body);
  for (const one of queue.slice(1)) if (one.row === row) Object.assign(row.dataset, one.wanted);
  paint(row);
  if (row === current()) document.body.dispatchEvent(new Event("triaged")); // htmx brings who did what
}

async function refused(row, url, wanted, why) {
  const response = await call("GET", url);
  if (response.ok) settle(row, await response.json());
  const kept = "note" in wanted && wanted.note ? ` Your note was: ${wanted.note}` : "";
  tell(`Not stored: ${why}.${kept}`.replace("..", "."));
}

// ---------- keys ----------

function select(row) {
  if (!row) return;
  keepNote();
  for (const link of $$(".item [aria-current]", list)) link.removeAttribute("aria-current");
  const link = $("a", row);
  link.setAttribute("aria-current", "true");
  link.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function open(row) {
  if (row) $("a", row).click(); // htmx brings the chat
}

function step(by) {
  const all = rows();
  const next = all[all.indexOf(current()) + by];
  if (next) return open(next);
  const page = $(`a[rel=${by > 0 ? "next" : "prev"}]`, list);
  if (page) page.click();
  else saving.textContent = by > 0 ? "This is the last one" : "This is the first one";
}

function keepNote() {
  const row = $(".one-item") && rows().find((one) => one.dataset.id === $(".one-item").dataset.item);
  if (!row || !note() || note().value === row.dataset.note) return;
  row.typed = false;
  change(row, { note: note().value });
}

function takeBack() {
  keepNote();
  queue.push({ undo: true });
  store();
}

function goOn() {
  const shown = $$(".next-step span").find((one) => one.checkVisibility());
  const link = shown && $("a", shown);
  if (link) link.click();
  else if (!current().dataset.cause) saving.textContent = "Give it a cause first: the cause says where to go";
  else saving.textContent = shown?.textContent.trim() || "This cause leads nowhere: say in the note what it is";
}

const own = () => change(current(), { owner: current().dataset.owner === me ? "" : me });
const setCause = (cause) => change(current(), { cause: current().dataset.cause === cause ? "" : cause });
const WRITES = {
  n: () => note().focus(),
  o: own,
  u: takeBack,
  g: goOn,
};
const MOVES = { j: () => step(1), k: () => step(-1) };
const help = () => $("#keys").showModal();

function commandFor(event) {
  const key = keyOf(event);
  if (event.target === note()) {
    if (key === "escape" || (key === "enter" && (event.ctrlKey || event.metaKey))) return () => select(current());
    return null;
  }
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return null;
  if (event.target.closest("dialog")) return null;
  if (key === "?") return help;
  if (MOVES[key]) return MOVES[key];
  if (!form()) return null;
  const button = /^[1-6]$/.test(key) && $$(".causes button")[key - 1];
  return button ? () => setCause(button.dataset.cause) : WRITES[key];
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
    if (cause) setCause(cause.dataset.cause);
    if (target.closest("[data-own]")) own();
    if (target.closest("[data-undo]")) takeBack();
    if (target.closest("[data-keys]")) help();
  });
  list.addEventListener("input", ({ target }) => {
    if (target === note()) current().typed = true;
  });
  list.addEventListener("focusout", ({ target }) => {
    if (target === note()) keepNote();
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (target.id === "item" && current()) paint(current()); // what is stored meanwhile
  });
  addEventListener("beforeunload", (event) => {
    keepNote();
    if (queue.length) event.preventDefault();
  });
}

if (list && current()) wire();
