// Opens and folds the rows of a report in place. Without a script the links do the same by their address.

function fold(button, opens) {
  const row = button.closest("tr");
  row.classList.toggle("opened", opens);
  button.setAttribute("aria-expanded", String(opens));
}

const isOpen = (button) => button.getAttribute("aria-expanded") === "true";

document.addEventListener("click", (event) => {
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const button = event.target.closest(".by-criterion .unfold");
  if (button) {
    event.preventDefault();
    fold(button, !isOpen(button));
    return;
  }
  const every = event.target.closest("[data-every-row]");
  if (!every) return;
  event.preventDefault();
  const buttons = [...document.querySelectorAll(".by-criterion .unfold")];
  const opens = buttons.some((one) => !isOpen(one));
  for (const one of buttons) fold(one, opens);
  every.textContent = opens ? "Fold all" : "Unfold all";
});

document.addEventListener("keydown", (event) => {
  const button = event.target.closest?.(".by-criterion .unfold");
  if (!button || event.key !== " ") return;
  event.preventDefault();
  fold(button, !isOpen(button));
});
