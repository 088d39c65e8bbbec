// Parts of a page that htmx swaps again and again are not read out each time: the words marked [data-said] within a
// [data-heard] go into its own status line, which stays, and only where they have changed. Focus stays in the part, too.

const heard = new WeakMap(); // the words of each part
const focused = new WeakMap(); // what had the focus when a request left

const part = ({ target }) => target.closest("[data-heard]");

function words(place) {
  const lines = [...place.querySelectorAll("[data-said]")].filter((line) => line.closest("[data-heard]") === place);
  return lines.map((line) => line.textContent.replace(/\s+/g, " ").trim()).join(" ");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (part(event)?.contains(document.activeElement)) focused.set(event.detail.xhr, document.activeElement);
});

// What had it may be gone, or was switched off while it waited.
function refocus(place, before) {
  if (!before || document.activeElement !== document.body) return;
  (before.isConnected ? before : place.querySelector("[tabindex='-1']"))?.focus();
}

document.addEventListener("htmx:afterSettle", (event) => {
  const place = part(event);
  if (!place) return;
  const now = words(place);
  if (heard.has(place) && heard.get(place) !== now) place.querySelector(":scope > [role=status]").textContent = now;
  heard.set(place, now);
  setTimeout(() => refocus(place, focused.get(event.detail.xhr))); // htmx first switches on again what waited
});
