// The prompt editor: autosave, previews, conflicts with other tabs, dialogs and keys.

import { token } from "../../common/api.js";
import { keyOf } from "../../common/keys.js";
import { Draft, joined, tooLong } from "./editor_draft.js";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const LOOK = 300; // ms from the last key to the preview

const form = $("#editor");
const state = $("#draft-state");
const panes = $$("textarea", form);
const inputs = (name) => $$(`input[name=${name}]`, state).concat($$(`#publish input[name=${name}]`));
let leaving = false; // on purpose: no warning

// ---------- the draft ----------

function content() {
  const texts = Object.fromEntries(panes.map(({ name, value }) => [name, value]));
  return "text" in texts ? texts : { sections: texts };
}

const draft = new Draft({
  url: form.dataset.draft,
  store: form.dataset.store,
  base: Number($("[name=base]", state).value),
  revision: Number($("[name=revision]", state).value),
  longest: Number(form.dataset.longest),
  unstored: "unstored" in form.dataset,
  content,
  on: { state: showState, stored, refused, clash },
});

function showState(words, kind = "") {
  const line = $("#save");
  line.className = `save soft ${kind}`;
  line.textContent = words;
  if (kind !== "busy") $("#announcement").textContent = words; // not for every key
}

function stored({ revision }) {
  for (const input of inputs("revision")) input.value = revision;
  $("[data-open=discard]").hidden = false;
  document.body.dispatchEvent(new CustomEvent("draft-saved"));
  changed();
}

// problem: {field: ["why"]}, {} if there is none
function refused(problem) {
  for (const { name } of panes) {
    const line = $(`#wrong-${name}`);
    const why = problem[`sections.${name}`] ?? problem[name];
    line.textContent = why ? why.join(" ") : "";
    line.hidden = !why;
    $(`#text-${name}`).ariaInvalid = why ? "true" : null;
  }
}

form.addEventListener("input", ({ target }) => {
  draft.edited();
  compare(target);
  look(target.closest(".pane"), LOOK);
});
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("beforeunload", (event) => {
  if (draft.unsaved && !leaving) event.preventDefault();
});

function resume() {
  const saved = draft.savedLocally();
  if (!saved) return;
  const { sections } = saved.content;
  const whole = panes.some(({ name }) => name === "text");
  // It may come from the other view: sections, or the whole text.
  if (!sections && !whole) return leave("?as=markdown");
  if (sections && whole && $("#as-sections")) return leave(location.pathname);
  const texts = whole ? { text: sections ? joined(sections) : saved.content.text } : sections;
  if (panes.every(({ name, value }) => value === texts[name])) return draft.forget();
  for (const pane of panes) {
    if (pane.value === pane.defaultValue) pane.value = texts[pane.name]; // else it was just typed
    compare(pane);
  }
  draft.resume(saved);
}

function leave(address) {
  leaving = true;
  location.replace(address);
}

// What was typed before this script ran.
function catchUp() {
  if (leaving) return;
  for (const pane of panes.filter(({ value, defaultValue }) => value !== defaultValue)) {
    if (!draft.unsaved) draft.edited();
    compare(pane);
  }
}

// ---------- conflict with another tab ----------

const conflict = $("#conflict");

async function clash() {
  const place = $("[data-changes]", conflict);
  conflict.hidden = false;
  const body = new FormData(form);
  const headers = { "X-CSRFToken": token() };
  const answer = await fetch(place.dataset.changes, { method: "POST", body, headers }).catch(() => null);
  if (answer?.ok) place.innerHTML = await answer.text();
  else place.textContent = "The differences cannot be shown now. Your text stays on this page.";
  conflict.scrollIntoView({ block: "start" });
}

conflict.addEventListener("click", async ({ target }) => {
  const choice = target.closest("button")?.value;
  if (choice === "mine") {
    conflict.hidden = true;
    if (await draft.keepMine()) location.reload(); // to show the other draft's examples
  }
  if (choice === "theirs") {
    draft.drop();
    leaving = true;
    location.reload();
  }
});

document.body.addEventListener("draft-stored", ({ detail }) => {
  draft.changed(detail.revision);
  $("#pick").close();
});
document.body.addEventListener("htmx:responseError", ({ detail }) => {
  if (detail.xhr.status === 409 && detail.elt.closest("#examples, #pick")) {
    $("#pick").close();
    draft.dirty = true;
    draft.save();
  } else {
    failed();
  }
});
document.body.addEventListener("htmx:sendError", failed);

// For an unsaved draft the status line already shows it.
function failed() {
  if (!draft.unsaved) showState("The server returned an error. Try again.", "off");
}

// Removing the last example removes the focused button.
$("#chosen").addEventListener("htmx:afterSettle", () => {
  if (document.activeElement === document.body) $("#example-add").focus();
});

// ---------- actions on the stored draft wait until it is saved ----------

document.body.addEventListener("htmx:confirm", async (event) => {
  const { elt, issueRequest, question } = event.detail;
  if (!elt.matches("[data-needs-saved]") || !draft.dirty) return;
  event.preventDefault();
  if (await draft.flush()) issueRequest(!question);
});
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-needs-saved]");
  if (!link || !draft.dirty || !draft.unsaved) return;
  event.preventDefault();
  if (await draft.flush()) location.assign(link.href);
});
$("#publish form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (leaving) return; // pressed twice
  leaving = true;
  if (await draft.flush()) return event.target.submit();
  leaving = false;
  $("#publish").close();
});
document.addEventListener("submit", ({ target }) => {
  if (!target.matches("[data-discard]")) return;
  draft.drop();
  leaving = true;
});

// ---------- previews ----------

const waits = new WeakMap();

function look(pane, after = 0) {
  const seen = $(".seen", pane);
  if (!seen.open) return;
  clearTimeout(waits.get(seen));
  const far = tooLong({ text: $("textarea", pane).value }, draft.longest);
  if (far) return void ($("[hx-post]", seen).textContent = `No preview: ${far}.`);
  waits.set(seen, setTimeout(() => globalThis.htmx.trigger($("[hx-post]", seen), "look"), after));
}
for (const pane of $$(".pane")) $(".seen", pane).addEventListener("toggle", () => look(pane));

// Whether a section differs from the version that the draft starts from, and its number of words.
function compare(text) {
  const tab = $(`[data-tab=${text.name}]`);
  if (!tab) return;
  const changed = text.value.trim() !== text.dataset.base.trim();
  const words = text.value.split(/\s+/).filter(Boolean).length.toLocaleString("en");
  tab.classList.toggle("chg", changed);
  const line = $("[data-words]", text.closest(".pane"));
  line.textContent = `${changed ? "changed" : "unchanged"}, ${words} words`;
}

// Load the changes of the stored draft since its version.
function changed() {
  const since = $("#since");
  if (since.open) globalThis.htmx.trigger($("[hx-get]", since), "look");
}
$("#since").addEventListener("toggle", changed);

// ---------- dialogs ----------

// list: whether the dialog to pick examples shows the chats, not the example that is edited.
function open(name, { list = true } = {}) {
  const dialog = $(`#${name}`);
  if (dialog.open || $("dialog[open]")) return;
  dialog.showModal();
  if (name === "pick") {
    $("#pick-title").textContent = list ? "Add a worked example" : "Edit a worked example";
    $("#pick-chat").replaceChildren();
    $("#pick-list").hidden = !list;
    if (list) globalThis.htmx.trigger("#pick-list", "open");
  }
  if (name === "publish") $("[name=reason]", dialog).focus();
  dialog.dispatchEvent(new CustomEvent("opened"));
}

let picked = null; // the list row whose chat is shown

document.addEventListener("click", ({ target }) => {
  const opener = target.closest("[data-open]");
  if (opener) open(opener.dataset.open);
  if (target.closest("[data-edit-example]")) open("pick", { list: false });
  const shut = target.closest("dialog button[value=cancel]");
  if (shut) shut.closest("dialog").close();
  picked = target.closest(".picks button") ?? picked;
  if (target.closest("[data-back]")) {
    $("#pick-chat").replaceChildren(); // the list is still there
    picked.focus();
  }
  const use = target.closest("[data-use]");
  if (use) {
    $("#pick [name=rationale]").value = use.dataset.use;
    $("#pick [name=rationale]").focus();
  }
  const goto = target.closest("[data-goto]");
  const place = goto && $(goto.getAttribute("href"));
  if (place) requestAnimationFrame(() => place.focus());
});

// Highlight the turns of the excerpt in the chat beside the form.
function mark() {
  const [first, last] = ["first", "last"].map((name) => Number($(`#pick [name=${name}]`)?.value));
  for (const turn of $$("#pick [data-n]")) {
    const n = Number(turn.dataset.n);
    turn.classList.toggle("in", n >= first && n <= last);
  }
}
$("#pick").addEventListener("input", mark);
$("#pick").addEventListener("htmx:afterSettle", () => {
  mark();
  $("#pick-chat [aria-invalid=true]")?.focus();
});

// ---------- keys ----------

// Save now; the chats beside the editor may run after it.
async function keep() {
  if (!draft.theirs && (await draft.flush())) document.body.dispatchEvent(new CustomEvent("draft-kept"));
}

document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (event.isComposing || event.defaultPrevented || event.altKey || event.shiftKey) return;
  if (event.ctrlKey || event.metaKey) {
    if (key === "s") {
      event.preventDefault();
      keep();
    } else if (key === "enter" && !event.repeat) {
      event.preventDefault();
      const dialog = $("dialog[open]");
      if (!dialog) open("publish");
      else $("form:not([method=dialog])", dialog)?.requestSubmit();
    }
  }
});

resume();
catchUp();
if ("failed" in $("#publish").dataset) open("publish");
