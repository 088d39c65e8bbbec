// On every page: Ctrl K searches, ? lists the keys. The rating screen replaces the whole body, so nothing
// here keeps an element.

import { keyOf } from "./keys.js";

const PAUSE = 150; // ms without a key
const TEXT_FIELD = "textarea, select, [contenteditable], input:not([type=radio]):not([type=checkbox])";
const MAC = /^(Mac|iP)/.test(navigator.platform);

const $ = (selector) => document.querySelector(selector);
const dialog = () => $("#search-everywhere");
const field = () => $("#search-everywhere input");
const list = () => $("#search-everywhere-hits");
const hits = () => [...list().querySelectorAll("[role=option]")];
const chosen = () => list().querySelector("[aria-selected=true]");

let timer = 0;
let request = null; // aborts the running one

// ---------- the dialog of the search ----------

function open() {
  const other = $("dialog[open]");
  if (other && other.id !== "keys") return;
  other?.close();
  if (!dialog()) return;
  dialog().showModal();
  field().select();
  if (field().value.trim()) find();
}

function later() {
  clearTimeout(timer);
  request?.abort();
  timer = setTimeout(find, PAUSE);
}

async function find() {
  const text = field().value.trim();
  request?.abort();
  if (!text) return show("", "");
  request = new AbortController();
  const { signal } = request;
  try {
    const address = `${dialog().dataset.hits}?${new URLSearchParams({ q: text })}`;
    const response = await fetch(address, { signal, headers: { "HX-Request": "true" } });
    if (response.redirected) return show("", "You are signed out. Reload the page to sign in.");
    if (!response.ok) throw new Error(response.statusText);
    const html = await response.text();
    if (!signal.aborted) show(html, "Nothing that you may open matches.");
  } catch {
    if (!signal.aborted) show("", "The server does not answer. Try again.");
  }
}

// html is made by the server; otherwise says why there is none
function show(html, otherwise) {
  list().innerHTML = html;
  const found = hits();
  list().hidden = !found.length;
  field().setAttribute("aria-expanded", String(found.length > 0));
  const n = found.filter((one) => one.id.startsWith("hit-")).length; // without "More"
  const count = n === 1 ? "1 result" : `${n} results`;
  $("#search-everywhere [role=status]").textContent = found.length ? count : otherwise;
  choose(found[0]);
}

function choose(hit) {
  chosen()?.setAttribute("aria-selected", "false");
  hit?.setAttribute("aria-selected", "true");
  hit?.scrollIntoView({ block: "nearest" });
  if (hit) field().setAttribute("aria-activedescendant", hit.id);
  else field().removeAttribute("aria-activedescendant");
}

function step(by) {
  const found = hits();
  if (found.length) choose(found[(found.indexOf(chosen()) + by + found.length) % found.length]);
}

function fieldKey(event) {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
  else if (event.key === "Enter" && chosen() && !event.shiftKey) {
    if (event.ctrlKey || event.metaKey) globalThis.open(chosen().href, "_blank", "noopener");
    else chosen().click();
  } else return;
  event.preventDefault();
}

document.addEventListener("input", ({ target }) => target === field() && later());
document.addEventListener("pointermove", ({ target }) => {
  const hit = target.closest?.("#search-everywhere-hits [role=option]");
  if (hit && hit !== chosen()) choose(hit);
});
addEventListener("pageshow", ({ persisted }) => persisted && dialog()?.close());

// ---------- keys and buttons of every page ----------

const showKeys = () => $("dialog[open]") || $("#keys")?.showModal();

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || event.altKey) return;
  const key = keyOf(event);
  const command = event.ctrlKey || event.metaKey;
  if (event.target === field() && !(command && key === "k")) return fieldKey(event);
  if (command && key === "k" && !event.shiftKey) {
    event.preventDefault();
    if (event.repeat) return;
    if (dialog()?.open) dialog().close();
    else open();
  } else if (key === "?" && !command && !event.target.closest?.(TEXT_FIELD) && !$("dialog[open]")) {
    event.preventDefault();
    showKeys();
  }
});

document.addEventListener("click", (event) => {
  const { target } = event;
  if (target.matches("#search-everywhere, #keys")) target.close(); // beside the dialog
  if (target.closest("#search-everywhere [data-close]")) dialog().close();
  if (target.closest("[data-show-keys]")) showKeys();
  const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
  if (target.closest("[data-search]") && !elsewhere) {
    event.preventDefault();
    $("#keys")?.close();
    open();
  }
});

if (MAC) for (const hint of document.querySelectorAll("kbd[data-command]")) hint.textContent = "⌘";
