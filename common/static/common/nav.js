// On a narrow screen the bars scroll sideways: scroll to the current page's entry.
for (const item of document.querySelectorAll("nav [aria-current]")) {
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// After "back", the filters show the state of the page, not later choices.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) for (const form of document.querySelectorAll("form.filters")) form.reset();
});

// Back to the page that led here keeps its scroll position and its own way back.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-origin]");
  const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
  if (!link || !plain || link.href !== document.referrer || history.length < 2) return;
  event.preventDefault();
  history.back();
});
