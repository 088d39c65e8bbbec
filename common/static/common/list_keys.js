// Keyboard navigation through chats: row by row in a list, chat by chat on a chat's page.

const rows = [...document.querySelectorAll(".disc .meta a")];
const TYPED = "input, textarea, select, [contenteditable]";

function follow(rel) {
  document.querySelector(`a[rel=${rel}]`)?.click();
}

function step(by) {
  const at = rows.indexOf(document.activeElement);
  const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  if (!row) return;
  row.focus({ preventScroll: true });
  row.closest(".disc").scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => (rows.length ? step(1) : follow("next")),
  k: () => (rows.length ? step(-1) : follow("prev")),
  ArrowRight: () => follow("next"),
  ArrowLeft: () => follow("prev"),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.repeat) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  // Elements that scroll sideways, such as wide tables, keep their arrow keys.
  const sideways = event.target.closest(".scroll") && event.key.startsWith("Arrow");
  const key = KEYS[event.key];
  if (!key || sideways || event.target.closest(TYPED)) return;
  event.preventDefault();
  key();
});
