// Announces changes of regions that htmx swaps repeatedly. The texts of [data-announced] elements within a
// [data-live-region] region go into its permanent status line when they change. Focus stays in the region.

const announced = new WeakMap(); // the text of each region
const focused = new WeakMap(); // the focused element when a request started

const part = ({ target }) => target.closest("[data-live-region]");

function words(place) {
  const own = (line) => line.closest("[data-live-region]") === place;
  const lines = [...place.querySelectorAll("[data-announced]")].filter(own);
  return lines.map((line) => line.textContent.replace(/\s+/g, " ").trim()).join(" ");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (part(event)?.contains(document.activeElement)) focused.set(event.detail.xhr, document.activeElement);
});

// The focused element may be gone, or was disabled during the request.
function refocus(place, before) {
  if (!before || document.activeElement !== document.body) return;
  (before.isConnected ? before : place.querySelector("[tabindex='-1']"))?.focus();
}

document.addEventListener("htmx:afterSettle", (event) => {
  const place = part(event);
  if (!place) return;
  const now = words(place);
  if (announced.has(place) && announced.get(place) !== now) {
    place.querySelector(":scope > [role=status]").textContent = now;
  }
  announced.set(place, now);
  setTimeout(() => refocus(place, focused.get(event.detail.xhr))); // htmx enables the elements first
});
