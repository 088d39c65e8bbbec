// The chats beside the editor: run them with Ctrl S; mark the section one writes in; show a rendered prompt.

const RUN_ON_SAVE = "lace-run-on-save";

const $ = (selector, root = document) => root.querySelector(selector);

// Storage may be off: then the choice lasts as long as the page.
let running = attempt(() => localStorage.getItem(RUN_ON_SAVE)) === "on";

function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

// The checkbox is replaced with the chats.
document.body.addEventListener("htmx:afterSettle", () => {
  const box = $("#run-on-save");
  if (box) box.checked = running;
});
document.addEventListener("change", ({ target }) => {
  if (target.id !== "run-on-save") return;
  running = target.checked;
  attempt(() => localStorage.setItem(RUN_ON_SAVE, running ? "on" : "off"));
});
document.body.addEventListener("draft-kept", () => {
  if (running) $("#try-form")?.requestSubmit($("#try-all"));
});

// ---------- the version to start from, and the section one writes in ----------

$("#from-version").addEventListener("change", ({ target }) => {
  $("#from-go").hidden = target.selectedOptions[0].defaultSelected;
});

document.addEventListener("focusin", ({ target }) => {
  if (!target.matches("#editor textarea")) return;
  for (const tab of document.querySelectorAll("[data-tab]")) {
    tab.ariaCurrent = tab.dataset.tab === target.name ? "true" : null;
  }
});

// ---------- the rendered prompt of one of the chats ----------

$("#rendered").addEventListener("opened", () => {
  const chats = [...document.querySelectorAll(".try-chat")];
  const select = $("#rendered-chat");
  const chosen = select.value;
  select.replaceChildren(
    ...chats.map((chat) => new Option($("header a", chat).textContent, $("[name=chats]", chat).value)),
  );
  if (chats.some((chat) => $("[name=chats]", chat).value === chosen)) select.value = chosen;
  select.closest("label").hidden = chats.length === 0;
  globalThis.htmx.trigger("#exact", "look");
});
